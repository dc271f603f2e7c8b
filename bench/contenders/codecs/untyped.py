"""msgspec without types: plain dictionaries, nothing checked."""

from __future__ import annotations

import msgspec

from bench.contenders.codecs import Codec
from bench.corpus import Message


def codec(_message: Message) -> Codec:
    return Codec(msgspec.json.Decoder().decode, msgspec.json.Encoder().encode, checks=False)
