"""orjson: plain dictionaries, no checks."""

from __future__ import annotations

import orjson

from bench.contenders.codecs import CodecContender
from bench.corpus import Message


def make_codec(_message: Message) -> CodecContender:
    return CodecContender(orjson.loads, orjson.dumps, checks=False)
