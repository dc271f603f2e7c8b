"""Results of servers: whether they can be passed on as they are.

A result is checked by the schema of its method, and its text is passed on. The check decodes all but the `_meta`, which
servers repeat: that is compared with those of earlier results.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

from typedmcp import Client, Context
from typedmcp.dialect import structs
from typedmcp.revisions.features import is_modern, methods_of, structs_of
from typedmcp_gateway.extension_results import find_added_result
from typedmcp_gateway.protocol import SERVER_INFO

__all__ = ["pass_result"]

_MAX_METAS: Final = 16
_MAX_META_BYTES: Final = 512
"""The `_meta` of results that are remembered for each method and revision."""


class _ResultCheck:
    """Checks the results of one method in one revision."""

    def __init__(self, method: str, revision: str) -> None:
        self._decode: Any = structs_of(revision).decode
        self._exact: Any = methods_of(revision).METHODS[method].exact.result
        self._is_modern = is_modern(revision)
        self._type: Any = None
        """The type of the results that pass."""
        self._encoded_meta_type: Any = None
        """That type, with `_meta` left encoded."""
        self._metas: set[bytes | None] = set()

    def passes(self, raw: Raw) -> bool:
        """Return whether a result is complete, valid, and has the `_meta` of an earlier one."""
        if not self._metas:
            return False
        try:
            result = self._decode(raw, self._encoded_meta_type)
        except ValueError:
            return False
        if self._is_modern and result.result_type != "complete":
            return False
        return (None if result.meta is UNSET else b"%b" % result.meta) in self._metas

    def decode(self, raw: Raw) -> Any:
        """Return a result as its exact type. Raises `ValueError` for one that does not fit the method."""
        result = self._decode(raw, self._exact)
        if self._is_modern and result.result_type == "complete" and hasattr(result, "input_requests"):
            raise ValueError("a complete result lacks members that it must have")
        return result

    def remember(self, raw: Raw, result: Any) -> None:
        """Let results of the same type with the same `_meta` pass, as this one has, which is decoded, too."""
        if type(result) is not self._type:
            self._type = type(result)
            self._encoded_meta_type = _with_encoded_meta(self._type)
            self._metas.clear()
        meta = self._decode(raw, self._encoded_meta_type).meta
        if meta is UNSET or len(meta) <= _MAX_META_BYTES:
            if len(self._metas) >= _MAX_METAS:
                self._metas.clear()
            self._metas.add(None if meta is UNSET else bytes(meta))


def _with_encoded_meta(kind: type[msgspec.Struct]) -> Any:
    """Return a type of results that leaves their `_meta` encoded."""
    hints = get_type_hints(kind, include_extras=True)
    fields: list[Any] = [
        (field.name, hints[field.name], msgspec.field(name=field.encode_name, default=field.default))
        for field in msgspec.structs.fields(kind)
        if field.name != "meta"
    ]
    fields.append(("meta", Raw | UnsetType, msgspec.field(name="_meta", default=UNSET)))
    return msgspec.defstruct(kind.__name__, fields, kw_only=True, gc=False)


_check_of = cache(_ResultCheck)


def pass_result(client: Client, method: str, raw: Raw, ctx: Context) -> Any:
    """Return a result as it is if it fits its method, else what can be understood of it. Raises `ProtocolError`."""
    check = _check_of(method, client.revision)
    if check.passes(raw):
        return raw
    try:
        typed = check.decode(raw)
    except ValueError:
        return find_added_result(raw, ctx) or client.decode(method, raw)
    if not is_modern(client.revision) or (typed.result_type == "complete" and typed.meta and SERVER_INFO in typed.meta):
        check.remember(raw, typed)
        return raw
    if typed.result_type not in ("complete", "input_required"):
        return find_added_result(raw, ctx) or client.decode(method, raw)
    value = msgspec.json.decode(raw)
    return structs.from_builtins(value, structs.InputRequiredResult) if typed.result_type == "input_required" else value
