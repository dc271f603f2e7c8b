"""Documents of OAuth in JSON: metadata, registrations and tokens, as authorization servers write them."""

from __future__ import annotations

from collections.abc import Generator
from types import NoneType
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct

from typedmcp.auth import AuthResponse
from typedmcp.building import decode_json, visible
from typedmcp.errors import SignInError

__all__ = ["read_document"]

D = TypeVar("D", bound=Struct)


def read_document(response: AuthResponse, kind: type[D], place: str) -> tuple[D, str]:
    """Return a document, and what it writes otherwise than it should, if anything.

    Null is absence, and a member of another type is taken where only one thing can be meant: a number or a truth value
    as text, a list as text with blanks between its items, and the reverse of both. Raises `SignInError` for any other
    document.
    """
    try:
        document: D = decode_json(response.body, kind)
    except ValueError as error:
        strict = error
    else:
        return document, ""
    try:
        members: dict[str, Any] = decode_json(response.body, dict[str, Any])
        changed = dict(_changes(members, kind))
        plain = {name: changed.get(name, value) for name, value in members.items() if value is not None}
        document = msgspec.convert(plain, kind, strict=False)
    except ValueError:
        raise SignInError(f"{place}: {visible(str(strict), 200)}") from None
    return document, visible(f"{strict}, which has been understood", 300)


def _changes(members: dict[str, Any], kind: type[Struct]) -> Generator[tuple[str, Any]]:
    """Yield the members that get another value, with that."""
    for field in msgspec.structs.fields(kind):
        name, types = field.encode_name, {field.type, *get_args(field.type)}
        value: Any = members.get(name)
        is_text = types <= {str, str | None, NoneType}
        if isinstance(value, str) and list[str] in types:
            yield name, value.split()
        elif is_text and isinstance(value, list):
            yield name, " ".join(msgspec.convert(value, list[str]))
        elif is_text and type(value) is int:
            yield name, str(value)
