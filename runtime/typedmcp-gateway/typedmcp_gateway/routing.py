"""Routing: which server a request is for, and what a principal may see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from typedmcp import Context
from typedmcp.building import is_object
from typedmcp.dialect import structs
from typedmcp.errors import InvalidParamsError, MethodNotFoundError, RemoteError, ResourceNotFoundError
from typedmcp_gateway.audit import Audit
from typedmcp_gateway.callers import GatewayCaller
from typedmcp_gateway.forwarding import STATE, Forwarder
from typedmcp_gateway.listing import LISTS, decode_cursor, encode_cursor, make_private, merge
from typedmcp_gateway.names import Kind
from typedmcp_gateway.options import Policy
from typedmcp_gateway.servers import GatewayServer

__all__ = ["Route", "Router"]

Route: TypeAlias = Callable[[Any, Context, GatewayCaller, Audit], Awaitable[Any]]
"""Returns the result of a request: an awaitable that raises `RemoteError`."""

_MAX_PAGES: Final = 64
"""Pages of one server that become one page. Clients get a cursor for those after them."""
_MAX_FOUND: Final = 1024
"""Names whose server is remembered."""
_MAX_FOUND_NAME: Final = 128
"""Characters of a name whose server is remembered."""


class Router:
    """Routes the requests of clients to servers."""

    def __init__(self, servers: Mapping[str, GatewayServer], forwarder: Forwarder, policy: Policy | None) -> None:
        self._servers = servers
        self._forwarder = forwarder
        self._policy = policy
        self._found: dict[str, tuple[GatewayServer, str]] = {}
        """The only server that can have a tool or prompt, and its own name there, by the names of those called last."""

    def routes(self) -> dict[str, Route]:
        """Return the functions that route requests, by method."""
        return {
            "tools/call": partial(self._forward, "tools"),
            "prompts/get": partial(self._forward, "prompts"),
            "resources/read": self._read_resource,
            "completion/complete": self._complete,
            **dict.fromkeys(LISTS, self._list),
        }

    def _forward(self, kind: Kind, params: Any, ctx: Context, caller: GatewayCaller, audit: Audit) -> Awaitable[Any]:
        server, own = self.find(kind, params.name, caller)
        audit.server = server.name
        return self._forwarder.forward(
            server, params if own == params.name else _replace(params, name=own), ctx, caller
        )

    def find(self, kind: Kind, name: str, caller: GatewayCaller) -> tuple[GatewayServer, str]:
        """Return the server of a tool or prompt, and its own name there.

        Raises `InvalidParamsError` for a name that no server has, or that the principal may not use.
        """
        found = self._found.get(name) or self._search(kind, name)
        if found is None or not self.is_visible(caller, found[0], kind, found[1]):
            raise InvalidParamsError(f"unknown {kind[:-1]}: {name}", {"path": "params.name"})
        return found

    def _search(self, kind: Kind, name: str) -> tuple[GatewayServer, str] | None:
        found = [(server, own) for server in self._servers.values() if (own := server.rules.resolve(name)) is not None]
        if len(found) > 1:
            return min(
                found, key=lambda each: (each[1] not in each[0].listed.get(kind, ()), -len(each[0].rules.prefix))
            )
        if found and len(name) <= _MAX_FOUND_NAME:
            if len(self._found) >= _MAX_FOUND:
                self._found.clear()
            self._found[name] = found[0]
        return found[0] if found else None

    def forget_names(self) -> None:
        """Search for names again: there are other servers, or other rules."""
        self._found.clear()

    def is_visible(self, caller: GatewayCaller, server: GatewayServer, kind: Kind, own: str) -> bool:
        """Return whether a principal may see and use something of a server."""
        return self._policy is None or bool(self._policy(caller.principal, server.name, kind, own))

    # Lists

    async def _list(self, params: Any, ctx: Context, caller: GatewayCaller, _audit: Audit) -> Any:
        place = LISTS[ctx.method]
        cursors: dict[str, Any] = dict.fromkeys(self._servers, params.cursor)
        if len(self._servers) != 1:
            cursors = dict.fromkeys(self._servers) if params.cursor is None else decode_cursor(params.cursor)
        named = [server.spoken_to(ctx.revision) for name, server in self._servers.items() if name in cursors]
        servers = [server for server in named if server.may_have(place.kind)]
        is_plain = all(server.revision == ctx.revision for server in servers)
        answers = await asyncio.gather(
            *(self._list_one(each, cursors[each.name], params, ctx, caller, is_plain=is_plain) for each in servers),
            return_exceptions=True,
        )
        pages: dict[GatewayServer, list[Any]] = {}
        for server, answer in zip(servers, answers, strict=True):
            if not isinstance(answer, BaseException):
                pages[server] = answer
            elif not isinstance(answer, RemoteError) or len(servers) == 1:
                raise answer
        if not pages:
            errors = [answer for answer in answers if isinstance(answer, RemoteError)]
            raise errors[0] if errors else MethodNotFoundError(ctx.method)
        made = merge(
            place,
            pages,
            lambda server, own: self.is_visible(caller, server, place.kind, own),
            is_private=self._policy is not None,
            is_complete=len(pages) == len(servers),
        )
        following = {server.name: cursor for server, page in pages.items() if (cursor := _next_cursor(page[-1]))}
        cursor = next(iter(following.values()), None) if len(self._servers) == 1 else encode_cursor(following)
        if cursor is None:
            return made
        return {**made, "nextCursor": cursor} if is_object(made) else _replace(made, next_cursor=cursor)

    async def _list_one(
        self,
        server: GatewayServer,
        cursor: str | None,
        params: Any,
        ctx: Context,
        caller: GatewayCaller,
        *,
        is_plain: bool,
    ) -> list[Any]:
        """Return the pages of a server, to the last one: clients of several frameworks read only one page.

        They end with a page that brings nothing new, and has a cursor that an earlier page had.
        """
        pages: list[Any] = []
        names, cursors = set[str](), set[int]()
        while not pages or (cursor and len(pages) < _MAX_PAGES):
            own = _replace(params, cursor=cursor)
            page = _decoded(await self._forwarder.forward(server, own, ctx, caller, is_plain=is_plain))
            cursor = _next_cursor(page)
            new = {*LISTS[ctx.method].names(page)} - names
            if cursor is not None and not new and hash(cursor) in cursors:
                page = {**page, "nextCursor": None} if is_object(page) else _replace(page, next_cursor=None)
                cursor = None
            names |= new
            cursors.add(hash(cursor))
            pages.append(page)
        return pages

    # Resources and completion

    async def _read_resource(self, params: Any, ctx: Context, caller: GatewayCaller, audit: Audit) -> Any:
        read = await self._find_resource(params.uri, params, ctx, caller, audit)
        return read if self._policy is None else make_private(_decoded(read))

    async def _find_resource(
        self, uri: str, params: Any, ctx: Context, caller: GatewayCaller, audit: Audit, member: str = "resources"
    ) -> Any:
        """Ask the server that listed a URI, or one after the other until one finds it."""
        first_error: RemoteError | None = None
        for server in self.servers_of(uri, caller, getattr(params, "request_state", None), member):
            audit.server = server.name
            try:
                return await self._forwarder.forward(server, params, ctx, caller)
            except (InvalidParamsError, MethodNotFoundError) as error:
                first_error = first_error or error
            except RemoteError as error:
                if uri in server.listed.get(member, ()):
                    raise
                first_error = error if first_error is None else first_error
        raise first_error or ResourceNotFoundError(uri)

    def servers_of(
        self, uri: str, caller: GatewayCaller, state: object = None, member: str = "resources"
    ) -> list[GatewayServer]:
        """Return the servers that may have a resource, the most probable first."""
        found = [
            server
            for server in self._servers.values()
            if server.may_have("resources") and self.is_visible(caller, server, "resources", uri)
        ]
        if isinstance(state, str) and state.startswith(STATE):
            found = [server for server in found if state.startswith(f"{STATE}{server.name}:")]
        return sorted(found, key=lambda server: uri not in server.listed.get(member, ()))

    async def _complete(self, params: Any, ctx: Context, caller: GatewayCaller, audit: Audit) -> Any:
        if not isinstance(params.ref, structs.PromptReference):
            return await self._find_resource(params.ref.uri, params, ctx, caller, audit, "resourceTemplates")
        server, own = self.find("prompts", params.ref.name, caller)
        audit.server = server.name
        return await self._forwarder.forward(server, _replace(params, ref=_replace(params.ref, name=own)), ctx, caller)


def _decoded(result: Any) -> Any:
    """Return a result that may be encoded as plain JSON."""
    return msgspec.json.decode(result) if isinstance(result, msgspec.Raw) else result


def _replace(params: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(params, **changes)


def _next_cursor(page: Any) -> str | None:
    cursor: Any = page.get("nextCursor") if is_object(page) else page.next_cursor
    return cursor if isinstance(cursor, str) else None
