"""`json` of the standard library: plain dictionaries, nothing checked."""

from __future__ import annotations

import json

from bench.contenders.codecs import Codec
from bench.corpus import Message


def codec(_message: Message) -> Codec:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    return Codec(json.loads, lambda value: encode(value).encode(), checks=False)  # pyright: ignore[reportUnknownLambdaType]
