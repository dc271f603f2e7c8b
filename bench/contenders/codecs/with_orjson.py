"""orjson: plain dictionaries, nothing checked."""

from __future__ import annotations

import orjson

from bench.contenders.codecs import Codec
from bench.corpus import Message


def codec(_message: Message) -> Codec:
    return Codec(orjson.loads, orjson.dumps, checks=False)
