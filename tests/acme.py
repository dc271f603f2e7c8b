"""An extension of a vendor, written by hand in the form of a compiled package: a search, and what was indexed."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, Final

from msgspec import field as member

from mcpspec.support.everyday_structs import ConstantStruct, Struct, constant
from mcpspec.support.methods import Method
from mcpspec.support.structs import decode, from_builtins, to_builtins
from typedmcp import Extension
from typedmcp.revisions.features import DIALECT

__all__ = [
    "ACME", "IDENTIFIER", "INDEXED", "METHODS", "PACKAGE", "SEARCH", "SEEN", "Hit", "IndexedParams", "SearchParams",
    "SearchResult", "SeenParams", "decode", "from_builtins", "to_builtins",
]  # fmt: skip

IDENTIFIER: Final = "com.acme/search"


class SearchParams(Struct, kw_only=True):
    query: str
    meta: dict[str, Any] | None = member(name="_meta", default=None)


class Hit(Struct, kw_only=True):
    title: str


class SearchResult(ConstantStruct, kw_only=True):
    result_type: str = constant("complete", name="resultType")
    hits: list[Hit]
    meta: dict[str, Any] | None = member(name="_meta", default=None)


class SeenParams(Struct, kw_only=True):
    count: int


class IndexedParams(Struct, kw_only=True):
    folder: str
    documents: int
    meta: dict[str, Any] | None = member(name="_meta", default=None)


class _Message(Struct, kw_only=True):
    method: str


SEARCH: Final[Method[SearchParams, SearchResult]] = Method(
    name="acme/search", sender="client", kind="request", message=_Message, params=SearchParams, params_required=True,
    result=SearchResult, handler="search",
)  # fmt: skip
SEEN: Final[Method[SeenParams, None]] = Method(
    name="notifications/acme/seen", sender="client", kind="notification", message=_Message, params=SeenParams,
    params_required=True, result=NoneType, handler="seen",
)  # fmt: skip
INDEXED: Final[Method[IndexedParams, None]] = Method(
    name="notifications/acme/indexed", sender="server", kind="notification", message=_Message, params=IndexedParams,
    params_required=True, result=NoneType, handler="indexed",
)  # fmt: skip
METHODS: Final[dict[str, Method[Any, Any]]] = {each.name: each for each in (SEARCH, SEEN, INDEXED)}


class _Package:
    PROTOCOL_VERSION: str = DIALECT
    METHODS: Mapping[str, Method[Any, Any]] = METHODS
    CLIENT_REQUESTS: Mapping[str, Method[Any, Any]] = {SEARCH.name: SEARCH}
    CLIENT_NOTIFICATIONS: Mapping[str, Method[Any, Any]] = {SEEN.name: SEEN, INDEXED.name: INDEXED}


PACKAGE: Final = _Package()
"""The module `methods` of the package."""

ACME: Final = Extension(IDENTIFIER, PACKAGE, names={"acme/search": "query"})
