"""Our msgspec Structs, through the public `decode` and `encode`: all that the schema says is checked."""

from __future__ import annotations

import mcpspec
from bench.contenders.codecs import Codec, through
from bench.corpus import Message


def codec(message: Message) -> Codec:
    return through(mcpspec.revision(message.revision).structs, message)
