"""The plain msgspec Structs of typedmcp, with the public `decode` and `encode`: the types that handlers get."""

from __future__ import annotations

import mcpspec
from bench.contenders.codecs import CodecContender, make_everyday_codec
from bench.corpus import Message


def make_codec(message: Message) -> CodecContender:
    return make_everyday_codec(mcpspec.revision(message.revision).structs, message)
