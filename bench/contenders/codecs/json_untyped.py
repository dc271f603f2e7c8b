"""`json` of the standard library: plain dictionaries, no checks."""

from __future__ import annotations

import json

from bench.contenders.codecs import CodecContender
from bench.corpus import Message


def make_codec(_message: Message) -> CodecContender:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    return CodecContender(json.loads, lambda value: encode(value).encode(), checks=False)  # pyright: ignore[reportUnknownLambdaType]
