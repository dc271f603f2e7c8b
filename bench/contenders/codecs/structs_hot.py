"""Our msgspec Structs with what is inside open objects kept, and not checked.

Servers do without that check, too: the `_meta` of a request is mostly the same as before, and checked once.
"""

from __future__ import annotations

from typing import Any

import msgspec

import mcpspec
from bench.contenders.codecs import Codec, type_of
from bench.corpus import Message
from mcpspec._support.structs import OpenObject, dec_hook, encode


def _keep(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, OpenObject):
        kept = kind.__new__(kind)
        kept |= value
        return kept
    return dec_hook(kind, value)


def codec(message: Message) -> Codec:
    kind = type_of(message, mcpspec.revision(message.revision).structs)
    return Codec(msgspec.json.Decoder(kind, dec_hook=_keep).decode, encode)
