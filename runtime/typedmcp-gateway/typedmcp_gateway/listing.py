"""Lists of several servers as one: names, filters and cursors."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from typedmcp.building import is_object
from typedmcp.errors import InvalidParamsError
from typedmcp_gateway.names import Kind
from typedmcp_gateway.servers import MAX_LISTED, GatewayServer

__all__ = ["LISTS", "ListPlace", "decode_cursor", "encode_cursor", "make_private", "merge"]


class ListPlace(NamedTuple):
    """The members of the result of a list."""

    kind: Kind
    member: str
    """The member with the items, in JSON."""
    attribute: str
    key: str
    """The member of an item that identifies it, in JSON."""
    key_attribute: str

    def names(self, page: Any) -> list[str]:
        """Return what identifies the items of a page, which is typed or plain JSON."""
        if is_object(page):
            items: list[Any] = page[self.member]
            return [item[self.key] for item in items]
        return [getattr(item, self.key_attribute) for item in getattr(page, self.attribute)]


LISTS: Final[Mapping[str, ListPlace]] = {
    "tools/list": ListPlace("tools", "tools", "tools", "name", "name"),
    "prompts/list": ListPlace("prompts", "prompts", "prompts", "name", "name"),
    "resources/list": ListPlace("resources", "resources", "resources", "uri", "uri"),
    "resources/templates/list": ListPlace(
        "resources", "resourceTemplates", "resource_templates", "uriTemplate", "uri_template"
    ),
}


def merge(
    place: ListPlace,
    pages: Mapping[GatewayServer, Sequence[Any]],
    is_visible: Callable[[GatewayServer, str], bool],
    *,
    is_private: bool,
    is_complete: bool,
) -> Any:
    """Return one page with the items of several of each server, which are all typed or all plain JSON.

    Items are left out that are not visible, or whose name another item has. `is_private` is true if the list depends
    on the principal, `is_complete` if no server failed: a list without one of them must not be kept.
    """
    first, *_ = next(iter(pages.values()))
    items: dict[str, Any] = {}
    for server, page in ((server, page) for server, several in pages.items() for page in several):
        own_items: list[Any] = page[place.member] if is_object(page) else getattr(page, place.attribute)
        own_names = server.listed.setdefault(place.member, set())
        for item in own_items:
            own: str = item[place.key] if is_object(item) else getattr(item, place.key_attribute)
            if len(own_names) < MAX_LISTED:
                own_names.add(own)
            if place.kind == "tools" and own in own_names:
                server.schemas[own] = item.get("inputSchema") if is_object(item) else item.input_schema
            name = own if place.kind == "resources" else server.rules.expose(own)
            if name is not None and name not in items and is_visible(server, own):
                items[name] = _renamed(item, name) if name != own else item
    listed = list(items.values())
    ttl, is_shared = _cache_of(chain.from_iterable(pages.values()))
    if ttl is not None and not is_complete:
        ttl = 0
    made: Any
    if is_object(first):
        made = {**first, place.member: listed, **({} if ttl is None else {"ttlMs": ttl})}
        made.pop("nextCursor", None)
    else:
        made = msgspec.structs.replace(first, **{place.attribute: listed, "next_cursor": None, "ttl_ms": ttl})
    return made if is_shared and not is_private else make_private(made)


def _cache_of(pages: Iterable[Any]) -> tuple[Any, bool]:
    """Return the milliseconds for which all of some pages may be kept, and whether a shared cache may keep all."""
    ttls: list[Any] = []
    is_shared = True
    for page in pages:
        plain = is_object(page)
        ttl = page.get("ttlMs") if plain else page.ttl_ms
        ttls += [] if ttl is None else [ttl]
        is_shared = is_shared and (page.get("cacheScope") if plain else page.cache_scope) == "public"
    return min(ttls, default=None), is_shared


def make_private(result: Any) -> Any:
    """Return a result that only the cache of one client may keep. One that says nothing about caches stays as it is."""
    if is_object(result):
        return {**result, "cacheScope": "private"} if "cacheScope" in result else result
    return msgspec.structs.replace(result, cache_scope="private") if hasattr(result, "cache_scope") else result


def _renamed(item: Any, name: str) -> Any:
    return {**item, "name": name} if is_object(item) else msgspec.structs.replace(item, name=name)


def encode_cursor(cursors: Mapping[str, str]) -> str | None:
    """Return the cursor for the next pages of some servers, by their names; None if there are none."""
    if not cursors:
        return None
    return base64.urlsafe_b64encode(msgspec.json.encode(cursors)).decode()


def decode_cursor(cursor: str) -> dict[str, str]:
    """Return the cursors of the servers in a cursor of the gateway. Raises `InvalidParamsError`."""
    try:
        return msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=dict[str, str])
    except ValueError:
        text = "params.cursor: not one of this gateway; list again without it"
        raise InvalidParamsError(text, {"path": "params.cursor"}) from None
