"""Our Pydantic models, through the public `decode` and `encode`."""

from __future__ import annotations

import mcpspec
from bench.contenders.codecs import Codec, through
from bench.corpus import Message


def codec(message: Message) -> Codec:
    return through(mcpspec.revision(message.revision).models, message)
