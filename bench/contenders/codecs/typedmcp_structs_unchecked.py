"""The msgspec Structs of typedmcp, without checks inside open objects.

Servers also decode in this way: most requests repeat the same `_meta`, which is checked only once.
"""

from __future__ import annotations

from typing import Any

import msgspec

import mcpspec
from bench.contenders.codecs import CodecContender, find_message_type
from bench.corpus import Message
from mcpspec.support.structs import OpenObject, dec_hook, encode


def _keep_open_object(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, OpenObject):
        kept = kind.__new__(kind)
        kept |= value
        return kept
    return dec_hook(kind, value)


def make_codec(message: Message) -> CodecContender:
    kind = find_message_type(message, mcpspec.revision(message.revision).exact.structs)
    return CodecContender(msgspec.json.Decoder(kind, dec_hook=_keep_open_object).decode, encode)
