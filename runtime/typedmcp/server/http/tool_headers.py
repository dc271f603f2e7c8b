"""The parameters of tools that headers repeat, to compare the headers of a call with its arguments.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters

A `Server` knows the schemas of its tools. For other handlers, and for tools that only middleware has, the handler's
list is read as if the client of the call had asked for it, and kept for as long as it says that clients may keep it. If
that fails, the call is rejected: a proxy may have acted on headers that were never compared.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from math import inf
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from mcpspec.support.objects import is_object
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.errors import INTERNAL_ERROR, DecodeError, RemoteError
from typedmcp.protocol import headers as mcp_headers
from typedmcp.protocol.backends import to_struct
from typedmcp.protocol.codec import JsonResult
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, classify
from typedmcp.protocol.notifications import Change
from typedmcp.revisions.features import DIALECT
from typedmcp.server.channel import InnerChannel
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context
from typedmcp.server.http.channel import HttpChannel
from typedmcp.server.http.header_checks import HeaderParams, copy_error
from typedmcp.server.metadata import RequestMetadata
from typedmcp.server.principal import Principal
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["ToolHeaders"]

D = dialect.structs

_MAX_PAGES = 1000
"""Pages of the handler's list that are read: a list without an end must not hold up requests."""
_CACHED_LISTS = 256
"""Lists that are cached: each principal may see different tools."""

_ListKey: TypeAlias = "tuple[str, frozenset[str]] | None"
"""The things that a list of tools may depend on: the key of the principal, and the scopes of the token."""


_NO_NAME: Final = frozenset[bytes]()


class _ToolList(NamedTuple):
    """The content of one list of tools, as far as it is about headers."""

    expires: float
    """The time from which it must not be used."""
    plain: frozenset[bytes]
    """The values of `Mcp-Name` of the tools that repeat no parameter."""
    params: Mapping[str, HeaderParams]
    """The parameters of the other tools that headers repeat."""


class ToolHeaders:
    """Finds the parameters of the called tools that headers repeat."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._input_schema_of = config.input_schema_of
        self._has_list = "list_tools" in config.functions
        self.has_params: bool = self._input_schema_of is not None or self._has_list
        """False if the handler has no list of tools, so that no client can know of parameters to repeat."""
        self._own_plain: set[bytes] = set()
        """The values of `Mcp-Name` of the server's own tools that repeat no parameter, as far as they were called."""
        self._own_params: dict[str, HeaderParams] = {}
        """The parameters of the server's own tools that headers repeat, as far as the tools were called."""
        self._wrong: set[str] = set()
        """The tools whose schemas have been reported."""
        self._lists: OrderedDict[_ListKey, _ToolList] = OrderedDict()
        self._unsubscribe: Callable[[], None] | None = None
        self._generation = 0
        """Grows when the tools change."""

    def listen(self) -> None:
        """Forget the tools, and do so again as soon as the handler says that they have changed."""
        self.stop_listening()
        self._unsubscribe = self._config.own_changes.listen(self._on_change)
        self.forget()

    def stop_listening(self) -> None:
        """Undo `listen`."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _on_change(self, change: Change, uri: str | None) -> None:  # noqa: ARG002
        if change == "tools":
            self.forget()

    def forget(self) -> None:
        """Forget all tools, since some have changed. Any thread may call it."""
        self._generation += 1
        self._own_plain = set()
        self._own_params = {}
        self._wrong = set()
        self._lists.clear()

    def plain_names(self, principal: Principal | None) -> Container[bytes | None]:
        """Return the values of `Mcp-Name` of the listed tools that are known to repeat no parameter."""
        if self._input_schema_of is not None:
            return self._own_plain
        found = self._cached(principal)
        return _NO_NAME if found is None else found.plain

    async def prepare(self, channel: HttpChannel, body: bytes) -> None:
        """Give a channel the parameters of the called tool that its headers have to repeat.

        If they cannot be found, the channel gets the error that rejects the call.
        """
        headers = channel.headers
        if b"tools/call" not in headers.get(b"mcp-method", b""):
            channel.header_params = ()
            return
        try:
            name = mcp_headers.decode_header(mcp_headers.to_text(headers[b"mcp-name"]))
        except (KeyError, ValueError):  # which is an error of its own
            return
        try:
            channel.header_params = await self._params_of(name, channel, body)  # `check_arguments` copies errors
        except RemoteError as error:
            channel.header_params = copy_error(error)

    async def _params_of(self, name: str, channel: HttpChannel, body: bytes) -> HeaderParams:
        """Return the parameters of a tool that headers repeat. Raises `RemoteError` if they cannot be found."""
        schema = None if self._input_schema_of is None else self._input_schema_of(name)
        if schema is not None:
            return self._own_params_of(name, schema)
        if not self._has_list:
            return ()
        found = self._cached(channel.principal)
        return await self._read(name, channel, body) if found is None else found.params.get(name, ())

    # The tools of a `Server`

    def _own_params_of(self, name: str, schema: Mapping[str, Any]) -> HeaderParams:
        params = self._own_params.get(name)
        if params is None and schema:  # without a schema there is no such tool
            generation = self._generation
            params = self._own_params[name] = self._annotated(name, schema)
            if not params:
                self._own_plain.update(_plain_headers([name]))
            if generation != self._generation:  # another thread has changed the tools in the meantime
                self.forget()
        return params or ()

    def _annotated(self, name: str, schema: Mapping[str, Any]) -> HeaderParams:
        """Return the parameters that a schema annotates.

        A schema whose annotations break the rules is reported once. Calls of its tool get the returned error: nobody
        knows what their headers should repeat.
        """
        try:
            return mcp_headers.header_params(schema)
        except ValueError as error:
            if name not in self._wrong:
                self._wrong.add(name)
                text = f"clients will reject the tool {name}, and calls of it are rejected: {error}"
                self._config.report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list"))
            return RemoteError(INTERNAL_ERROR, f"the headers cannot be checked: the tool's schema is wrong: {error}")

    # Lists

    def _cached(self, principal: Principal | None) -> _ToolList | None:
        found = self._lists.get(_list_key(principal))
        return found if found is not None and found.expires > monotonic() else None

    async def _read(self, name: str, channel: HttpChannel, body: bytes) -> HeaderParams:
        """Return the parameters of a tool by the handler's list. Raises `RemoteError` if it cannot be read."""
        try:
            return await self._read_list(name, channel, _metadata_of(channel, body))
        except (RemoteError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an exception of the handler must not end the server
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            text = f"a call was rejected, since its headers cannot be checked: the list of tools failed: {error!r}"
            self._config.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, "tools/list", error=error))
            raise RemoteError(INTERNAL_ERROR, "the headers cannot be checked: the list of tools failed") from error

    async def _read_list(self, name: str, channel: HttpChannel, metadata: RequestMetadata) -> HeaderParams:
        """Read the list, cache it if it may be, and return the parameters of a tool."""
        generation = self._generation
        expires, schemas = await self._read_pages(channel, metadata)
        if generation != self._generation or expires <= monotonic():  # it is outdated already, and no other tool counts
            return self._annotated(name, to_builtins(schemas[name])) if name in schemas else ()
        params = {each: self._annotated(each, to_builtins(schema)) for each, schema in schemas.items()}
        plain = _plain_headers(each for each, annotated in params.items() if not annotated)
        found = _ToolList(expires, plain, {each: annotated for each, annotated in params.items() if annotated})
        self._lists[_list_key(channel.principal)] = found
        if len(self._lists) > _CACHED_LISTS:
            self._lists.popitem(last=False)
        return found.params.get(name, ())

    async def _read_pages(self, channel: HttpChannel, metadata: RequestMetadata) -> tuple[float, dict[str, Any]]:
        """Return the time from which the list must not be used, and the schemas of its tools."""
        schemas: dict[str, Any] = {}
        expires, cursor = inf, None
        for _ in range(_MAX_PAGES):
            result = to_struct(await self._read_page(channel, metadata, cursor))
            schemas.update((tool.name, tool.input_schema) for tool in result.tools)
            is_shared = channel.principal is not None or result.cache_scope == "public"
            expires = min(expires, monotonic() + result.ttl_ms / 1000) if is_shared else 0
            cursor = result.next_cursor
            if not isinstance(cursor, str):
                break
        else:
            raise ValueError(f"the list has more than {_MAX_PAGES} pages")
        return expires, schemas

    async def _read_page(self, channel: HttpChannel, metadata: RequestMetadata, cursor: str | None) -> Any:
        """Call the handler's `list_tools`, as a request of the client that makes the call would."""
        plain: dict[str, Any] = {"_meta": metadata.members}
        if cursor is not None:
            plain["cursor"] = cursor
        types = D if self._config.codec == "msgspec" else dialect.models
        params = types.from_builtins(plain, types.PaginatedRequestParams)
        method_codec = self._config.codec_for(DIALECT).methods["tools/list"]
        raw = msgspec.json.encode({"method": "tools/list", "params": plain})
        calls, members = channel.target.calls, metadata.members.copy()
        ctx = Context(calls.session, method_codec, None, metadata, members, raw, InnerChannel(channel))
        result = calls.call_handler(ctx, params)
        result = await result if is_awaitable(result) else result
        if isinstance(result, JsonResult):
            data = ctx.method_codec.downgrade(result, [])
            plain = data if is_object(data) else msgspec.json.decode(data)
            result = types.from_builtins(plain, types.ListToolsResult)
        return result


def _plain_headers(names: Iterable[str]) -> frozenset[bytes]:
    """Return the values of `Mcp-Name` for those names that need no Base64."""
    headers = ((name, name.encode()) for name in names if name.isascii())
    return frozenset(header for name, header in headers if mcp_headers.is_plain(header, name))


def _list_key(principal: Principal | None) -> _ListKey:
    return None if principal is None else (principal.key, principal.scopes)


def _metadata_of(channel: HttpChannel, body: bytes) -> RequestMetadata:
    """Return the description of the client in a request; an empty one for an invalid request, which is rejected."""
    frame = classify(body)
    params: Any = frame.value.get("params") if isinstance(frame, Frame) else None
    meta: Any = params.get("_meta") if is_object(params) else None
    try:
        return channel.target.calls.session.metadata.get(msgspec.json.encode(meta))
    except (DecodeError, RemoteError, ValueError):
        return RequestMetadata.anonymous(DIALECT)
