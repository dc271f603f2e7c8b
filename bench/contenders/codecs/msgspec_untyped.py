"""msgspec without types: plain dictionaries, no checks."""

from __future__ import annotations

import msgspec

from bench.contenders.codecs import CodecContender
from bench.corpus import Message


def make_codec(_message: Message) -> CodecContender:
    return CodecContender(msgspec.json.Decoder().decode, msgspec.json.Encoder().encode, checks=False)
