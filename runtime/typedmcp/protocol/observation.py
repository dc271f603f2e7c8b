"""Messages as observers see them, and what observers add to messages. Loaded where something is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from mcpspec.support.converters import with_meta
from mcpspec.support.objects import is_object
from typedmcp.dialect import methods
from typedmcp.observers import MessageInfo, MetaMembers
from typedmcp.protocol.framing import Frame
from typedmcp.revisions.features import methods_of

__all__ = ["add_to_meta", "describe_frame", "is_known_method", "read_meta"]


class _Meta(msgspec.Struct):
    meta: Any = msgspec.field(name="_meta", default=None)


_decode_meta = msgspec.json.Decoder(_Meta).decode


def read_meta(params: bytes) -> Mapping[str, Any] | None:
    """Return the `_meta` of parameters, if it is an object."""
    try:
        meta = _decode_meta(params).meta
    except ValueError:
        return None
    return meta if is_object(meta) else None


def is_known_method(method: str, revision: str | None) -> bool:
    """Return whether the dialect or a revision has a method."""
    return method in methods.METHODS or (revision is not None and method in methods_of(revision).METHODS)


def describe_frame(frame: Frame, *, is_known: bool) -> MessageInfo:
    """Return a message that was received as observers see it."""
    params: Any = frame.value.get("params")
    meta = params.get("_meta") if is_object(params) else None
    return MessageInfo(str(frame.method), frame.id, meta if is_object(meta) else None, is_known)


def add_to_meta(params: Any, members: MetaMembers) -> Any:
    """Return parameters, plain or typed, whose `_meta` has these members, in place of those of the same names."""
    if not members:
        return params
    if params is None or params is UNSET:
        return {"_meta": members}
    if isinstance(params, Raw):
        plain: dict[str, Any] = msgspec.json.decode(params, type=dict[str, Raw])
        return {**plain, "_meta": _merged(plain.get("_meta"), members)}
    if is_object(params):
        return {**params, "_meta": _merged(params.get("_meta"), members)}
    copy = with_meta(cast("type[msgspec.Struct]", type(params)))
    return copy(params, _merged(getattr(params, "meta", None), members))


def _merged(meta: Any, members: MetaMembers) -> Any:
    if isinstance(meta, Raw):  # encoded once for all requests of a client
        text = bytes(meta)
        if any(name.encode() in text for name in members):
            return {**msgspec.json.decode(text), **members}
        own = msgspec.json.encode(members)
        return Raw(own if text == b"{}" else own[:-1] + b"," + text[1:])
    return {**meta, **members} if is_object(meta) else members
