"""The msgspec Structs of typedmcp, with the public `decode` and `encode`, which check everything in the schema."""

from __future__ import annotations

import mcpspec
from bench.contenders.codecs import CodecContender, make_generated_codec
from bench.corpus import Message


def make_codec(message: Message) -> CodecContender:
    return make_generated_codec(mcpspec.revision(message.revision).exact.structs, message)
