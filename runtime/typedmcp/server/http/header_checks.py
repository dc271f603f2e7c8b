"""Checks that the headers of a request agree with its body.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, TypeAlias

from mcpspec.features import NAME_PARAMS
from mcpspec.support.objects import is_object
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.errors import HeaderMismatchError, UnsupportedVersionError
from typedmcp.protocol import headers as mcp_headers
from typedmcp.protocol.backends import models, to_struct
from typedmcp.protocol.codec import codec_for
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame
from typedmcp.protocol.headers import HeaderParam, header_params
from typedmcp.protocol.meta import VERSION
from typedmcp.revisions.features import DIALECT
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context
from typedmcp.server.dispatcher import Dispatcher
from typedmcp.server.http.messages import Headers
from typedmcp.server.metadata import RequestMetadata
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["ToolHeaderParams", "ToolHeaders", "check_arguments", "check_method", "check_no_version", "check_version"]

D = dialect.structs

_MAX_PAGES = 1000
"""Pages of the handler's list that are read: a list without an end must not hold up requests."""
_CACHED_PRINCIPALS = 256
"""Principals whose tools are cached: each may see different tools."""
_DEFAULT_TTL = 60.0
"""Seconds for which a list without a time to live is cached."""

ToolHeaderParams: TypeAlias = Mapping[str, tuple[HeaderParam, ...]]
"""The parameters that are repeated in headers, by tool. Tools without any are left out."""

_NO_PARAMS: ToolHeaderParams = {}


class ToolHeaders:
    """The tool parameters that are repeated in headers, for the list of tools that each principal sees."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._cache: OrderedDict[str | None, tuple[float, ToolHeaderParams]] = OrderedDict()
        self._generation = 0
        """Grows when the tools change."""
        self._locks: dict[str | None, asyncio.Lock] = {}
        self._has_list = "list_tools" in config.functions

    def of(self, principal: str | None) -> ToolHeaderParams | None:
        """Return the parameters of the tools that a principal sees. None if the list has to be read first."""
        entry = self._cache.get(principal)
        if entry is not None and entry[0] > monotonic():
            return entry[1]
        return None if self._has_list else _NO_PARAMS

    def forget(self) -> None:
        """Drop all lists, since the tools have changed."""
        self._cache.clear()
        self._generation += 1

    async def learn(self, dispatcher: Dispatcher, principal: str | None) -> ToolHeaderParams:
        """Read the list of tools, once for all requests that are waiting for it.

        If that fails, it is reported, and headers are not compared for a while.
        """
        lock = self._locks.setdefault(principal, asyncio.Lock())
        try:
            async with lock:
                params = self.of(principal)
                return await self._learn(dispatcher, principal) if params is None else params
        finally:
            if not lock.locked():
                self._locks.pop(principal, None)

    async def _learn(self, dispatcher: Dispatcher, principal: str | None) -> ToolHeaderParams:
        params: dict[str, tuple[HeaderParam, ...]] = {}
        ttl, generation = _DEFAULT_TTL, self._generation
        try:
            ttl = await self._read_list(dispatcher, principal, params)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an exception of the handler must not end the server
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            text = f"headers of tools are not checked: the list of tools cannot be read: {error!r}"
            dispatcher.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, "tools/list", error=error))
        if generation == self._generation:  # otherwise the tools have changed in the meantime
            self._cache[principal] = monotonic() + ttl, params
        if len(self._cache) > _CACHED_PRINCIPALS:
            self._cache.popitem(last=False)
        return params

    async def _read_list(
        self, dispatcher: Dispatcher, principal: str | None, params: dict[str, tuple[HeaderParam, ...]]
    ) -> float:
        """Add the parameters of all tools to `params`. Return the seconds for which the list may be cached."""
        ttl, cursor = _DEFAULT_TTL, None
        for _ in range(_MAX_PAGES):
            result = to_struct(await self._read_page(dispatcher, principal, cursor))
            for tool in result.tools:
                self._add_tool(dispatcher, tool, params)
            if isinstance(result.ttl_ms, int) and result.ttl_ms > 0:
                ttl = result.ttl_ms / 1000
            cursor = result.next_cursor
            if not isinstance(cursor, str):
                break
        return ttl

    async def _read_page(self, dispatcher: Dispatcher, principal: str | None, cursor: str | None) -> Any:
        """Call the handler's `list_tools`, as a request of this principal would."""
        metadata = RequestMetadata.anonymous(DIALECT)
        plain: dict[str, Any] = {"_meta": metadata.members}
        if cursor is not None:
            plain["cursor"] = cursor
        types = D if self._config.codec == "msgspec" else models()
        params = types.from_builtins(plain, types.PaginatedRequestParams)
        method_codec = codec_for(DIALECT, self._config.codec).methods["tools/list"]
        sink: Any = _DiscardingSink(principal)
        ctx = Context(dispatcher, method_codec, None, metadata, metadata.members, b"", sink)
        result = dispatcher.call_handler(ctx, params)
        return await result if is_awaitable(result) else result

    def _add_tool(self, dispatcher: Dispatcher, tool: Any, params: dict[str, tuple[HeaderParam, ...]]) -> None:
        try:
            header = header_params(to_builtins(tool.input_schema))
        except ValueError as error:
            text = f"clients will reject the tool {tool.name}: {error}"
            dispatcher.report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list"))
            return
        if header:
            params[tool.name] = header


class _DiscardingSink:
    """A sink for a request that the server makes itself. Discards its messages."""

    stream = None
    request_headers: Mapping[str, str] = {}

    def __init__(self, principal: str | None) -> None:
        self.principal = principal

    def send_message(self, ctx: Context, line: bytes) -> bool:  # noqa: ARG002
        """Discard a message."""
        return False

    def disconnect(self, retry: float) -> None:
        """Do nothing: there is no connection."""


def check_version(headers: Headers, frame: Frame, revisions: Sequence[str]) -> None:
    """Raise unless the header names a supported revision, and the body the same one or none.

    Raises `HeaderMismatchError` or `UnsupportedVersionError`.
    """
    header = headers.get(b"mcp-protocol-version")
    if header is None and frame.method == "initialize":  # a legacy client, which needs the supported revisions
        requested = frame.value.get("params", {}).get("protocolVersion")
        raise UnsupportedVersionError(str(requested), list(revisions))
    if header is None:
        raise HeaderMismatchError("MCP-Protocol-Version: required, but missing")
    version = mcp_headers.to_text(header)
    body_version = _meta_of(frame).get(VERSION, version)
    if body_version != version:
        raise HeaderMismatchError(f"MCP-Protocol-Version is {version!r}, but the body says {body_version!r}")
    if version not in revisions:
        raise UnsupportedVersionError(version, list(revisions))


def check_no_version(frame: Frame) -> None:
    """Raise `HeaderMismatchError` if the body names a modern revision but the headers do not."""
    meta = _meta_of(frame)
    if VERSION in meta:
        raise HeaderMismatchError(f"the body says {VERSION}: {meta[VERSION]!r}, but the headers name a legacy revision")


def _meta_of(frame: Frame) -> Mapping[str, Any]:
    meta: Any = frame.value.get("params", {}).get("_meta", {})
    return meta if is_object(meta) else {}


def check_method(headers: Headers, frame: Frame) -> None:
    """Raise `HeaderMismatchError` unless the headers repeat the method, and the name of the tool or the like."""
    method, params = str(frame.method), frame.value.get("params", {})
    _check("Mcp-Method", headers.get(b"mcp-method"), method, may_be_encoded=False)
    member = NAME_PARAMS.get(method)
    if member is not None and isinstance(params.get(member), str):
        _check("Mcp-Name", headers.get(b"mcp-name"), params[member], may_be_encoded=True)


def _check(name: str, header: bytes | None, value: str, *, may_be_encoded: bool) -> None:
    if header is None:
        raise HeaderMismatchError(f"{name}: required, but missing")
    text = mcp_headers.to_text(header)
    if may_be_encoded:
        try:
            text = mcp_headers.decode_value(text)
        except ValueError as error:
            raise HeaderMismatchError(f"{name}: {error}") from error
    if text != value:
        raise HeaderMismatchError(f"{name} is {text!r}, but the body says {value!r}")


def check_arguments(headers: Headers, frame: Frame, tools: ToolHeaderParams) -> None:
    """Raise `HeaderMismatchError` unless the headers repeat the arguments that the tool marks with `x-mcp-header`."""
    params: Any = frame.value.get("params", {})
    if frame.method != "tools/call" or not isinstance(params.get("name"), str):
        return
    for param in tools.get(params["name"], ()):
        _check_argument(param, headers.get(param.header.encode("latin-1")), params.get("arguments", {}))


def _check_argument(param: mcp_headers.HeaderParam, header: bytes | None, arguments: Any) -> None:
    value = mcp_headers.find_value(arguments, param.path) if is_object(arguments) else None
    if value is None and header is None:
        return
    name = param.header.title()
    if header is None:
        raise HeaderMismatchError(f"{name}: required, but missing")
    text = mcp_headers.to_text(header)
    try:
        is_same = value is not None and mcp_headers.header_equals(text, value)
    except ValueError as error:
        raise HeaderMismatchError(f"{name}: {error}") from error
    if not is_same:
        place = ".".join(param.path)
        raise HeaderMismatchError(f"{name} is {text!r}, but the body has another value at arguments.{place}")
