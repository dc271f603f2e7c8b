"""Several servers at once, under the names of `mcp.client.session_group`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, fields
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeAlias

from pydantic import BaseModel

from typedmcp_mcp1 import types
from typedmcp_mcp1.client.session import (
    ClientSession,
    ElicitationFnT,
    ListRootsFnT,
    LoggingFnT,
    MessageHandlerFnT,
    SamplingFnT,
)
from typedmcp_mcp1.client.sse import sse_client
from typedmcp_mcp1.client.stdio import StdioServerParameters, stdio_client
from typedmcp_mcp1.client.streamable_http import streamablehttp_client
from typedmcp_mcp1.shared.exceptions import McpError
from typedmcp_mcp1.shared.session import ProgressFnT

__all__ = [
    "ClientSessionGroup", "ClientSessionParameters", "ServerParameters", "SseServerParameters",
    "StreamableHttpParameters",
]  # fmt: skip


class SseServerParameters(BaseModel):
    """A server over HTTP with SSE."""

    url: str
    headers: dict[str, Any] | None = None
    timeout: float = 5
    sse_read_timeout: float = 300


class StreamableHttpParameters(BaseModel):
    """A server over HTTP."""

    url: str
    headers: dict[str, Any] | None = None
    timeout: timedelta = timedelta(seconds=30)
    sse_read_timeout: timedelta = timedelta(seconds=300)
    terminate_on_close: bool = True


ServerParameters: TypeAlias = StdioServerParameters | SseServerParameters | StreamableHttpParameters


@dataclass
class ClientSessionParameters:
    """The options of the sessions of a group."""

    read_timeout_seconds: timedelta | None = None
    sampling_callback: SamplingFnT | None = None
    elicitation_callback: ElicitationFnT | None = None
    list_roots_callback: ListRootsFnT | None = None
    logging_callback: LoggingFnT | None = None
    message_handler: MessageHandlerFnT | None = None
    client_info: types.Implementation | None = None


class ClientSessionGroup:
    """The tools, prompts and resources of several servers, by names that a function may choose."""

    def __init__(
        self,
        exit_stack: AsyncExitStack | None = None,
        component_name_hook: Callable[[str, types.Implementation], str] | None = None,
    ) -> None:
        self._stack = exit_stack or AsyncExitStack()
        self._owns_stack = exit_stack is None
        self._name = component_name_hook or _own_name
        self._stacks: dict[ClientSession, AsyncExitStack] = {}
        self._owners: dict[tuple[str, str], ClientSession] = {}
        self.tools: dict[str, types.Tool] = {}
        """The tools of all servers."""
        self.prompts: dict[str, types.Prompt] = {}
        """The prompts of all servers."""
        self.resources: dict[str, types.Resource] = {}
        """The resources of all servers."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for stack in reversed([*self._stacks.values()]):
            await stack.aclose()
        if self._owns_stack:
            await self._stack.aclose()

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions, in the order in which they were added."""
        sessions = dict.fromkeys(self._owners.values())
        return [*dict.fromkeys([*self._stacks, *sessions])]

    async def connect_to_server(
        self, server_params: ServerParameters, session_params: ClientSessionParameters | None = None
    ) -> ClientSession:
        """Connect to a server, and add what it offers."""
        options = session_params or ClientSessionParameters()
        stack = AsyncExitStack()
        try:
            read, write = (await stack.enter_async_context(_open(server_params)))[:2]
            members = {each.name: getattr(options, each.name) for each in fields(options)}
            session = await stack.enter_async_context(ClientSession(read, write, **members))
            result = await session.initialize()
            self._stacks[session] = stack
            await self._add(result.server_info, session)
        except BaseException:
            await stack.aclose()
            raise
        return session

    async def connect_with_session(self, server_info: types.Implementation, session: ClientSession) -> ClientSession:
        """Add what the server of a session offers, which stays open."""
        await self._add(server_info, session)
        return session

    async def _add(self, server: types.Implementation, session: ClientSession) -> None:
        offered: dict[str, dict[str, Any]] = {"tools": {}, "prompts": {}, "resources": {}}
        for kind, listed in (
            ("prompts", session.list_prompts),
            ("resources", session.list_resources),
            ("tools", session.list_tools),
        ):
            try:
                page: Any = await listed()
            except McpError:  # the server has none
                continue
            offered[kind] = {self._name(each.name, server): each for each in getattr(page, kind)}
        for kind, items in offered.items():
            known: dict[str, Any] = getattr(self, kind)
            if taken := known.keys() & items.keys():
                raise McpError(types.ErrorData(code=types.INVALID_PARAMS, message=f"{taken} already exist in {kind}"))
        for kind, items in offered.items():
            getattr(self, kind).update(items)
            self._owners.update({(kind, name): session for name in items})

    async def disconnect_from_server(self, session: ClientSession) -> None:
        """Remove what the server of a session offers, and close the session if the group has opened it."""
        for (kind, name), owner in [*self._owners.items()]:
            if owner is session:
                del getattr(self, kind)[name], self._owners[kind, name]
        if (stack := self._stacks.pop(session, None)) is not None:
            await stack.aclose()

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: timedelta | None = None,
        progress_callback: ProgressFnT | None = None,
        *,
        meta: dict[str, Any] | None = None,
        args: dict[str, Any] | None = None,
    ) -> types.CallToolResult:
        """Call a tool by its name in the group."""
        session, tool = self._owners["tools", name], self.tools[name]
        given = arguments if args is None else args
        return await session.call_tool(tool.name, given, read_timeout_seconds, progress_callback, meta=meta)


def _own_name(name: str, _server: types.Implementation) -> str:
    return name


def _open(parameters: ServerParameters) -> AbstractAsyncContextManager[Any]:
    """Return the context manager of the streams of a server."""
    match parameters:
        case StdioServerParameters():
            return stdio_client(parameters)
        case SseServerParameters():
            return sse_client(parameters.url, parameters.headers)
        case _:
            return streamablehttp_client(parameters.url, parameters.headers)
