"""The plain Pydantic models of typedmcp, with the public `decode` and `encode`."""

from __future__ import annotations

import mcpspec
from bench.contenders.codecs import CodecContender, make_everyday_codec
from bench.corpus import Message


def make_codec(message: Message) -> CodecContender:
    return make_everyday_codec(mcpspec.revision(message.revision).models, message)
