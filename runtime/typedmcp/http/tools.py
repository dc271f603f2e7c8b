"""Which arguments of which tools have to be repeated in headers: what the handler's own list of tools says."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpspec._support.structs import to_builtins
from typedmcp import dialect
from typedmcp.backends import as_struct, models
from typedmcp.codec import codec_for
from typedmcp.context import Context
from typedmcp.dispatch import is_awaitable
from typedmcp.edge.revisions import DIALECT
from typedmcp.facts import Facts
from typedmcp.http.headers import HeaderParam, header_params
from typedmcp.meta import CAPABILITIES, VERSION
from typedmcp.peer import Kind, Report
from typedmcp.service import Service

if TYPE_CHECKING:
    from typedmcp.engine import Engine

__all__ = ["ToolHeaders"]

D = dialect.structs

_PAGES = 1000
"""How many pages of a list are read."""
_PRINCIPALS = 256
"""For how many principals that is remembered: each may see other tools."""
_TTL = 60.0
"""How many seconds a list counts that says nothing of it itself."""
_NONE: Mapping[str, tuple[HeaderParam, ...]] = {}


class ToolHeaders:
    """The tools that have such arguments, as far as each principal sees them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: OrderedDict[str | None, tuple[float, Mapping[str, tuple[HeaderParam, ...]]]] = OrderedDict()
        self._generation = 0
        self._reading: dict[str | None, asyncio.Lock] = {}
        self._is_listed = "list_tools" in service.functions

    def of(self, principal: str | None) -> Mapping[str, tuple[HeaderParam, ...]] | None:
        """The tools by name, each with those arguments. None where the list has to be read first."""
        known = self._known.get(principal)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        return None if self._is_listed else _NONE

    def forget(self) -> None:
        """The tools have changed."""
        self._known.clear()
        self._generation += 1

    async def learn(self, engine: Engine, principal: str | None) -> Mapping[str, tuple[HeaderParam, ...]]:
        """Read the list, once for all who need it now.

        Where that fails, headers are not compared for a while, which is reported.
        """
        lock = self._reading.setdefault(principal, asyncio.Lock())
        try:
            async with lock:
                known = self.of(principal)
                return await self._learn(engine, principal) if known is None else known
        finally:
            if not lock.locked():
                self._reading.pop(principal, None)

    async def _learn(self, engine: Engine, principal: str | None) -> Mapping[str, tuple[HeaderParam, ...]]:
        found: dict[str, tuple[HeaderParam, ...]] = {}
        seconds, generation = _TTL, self._generation
        try:
            seconds = await self._read(engine, principal, found)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # what a handler raises must not end the server
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            text = f"headers of tools are not checked: their list cannot be read: {error!r}"
            engine.report(Report(Kind.FAILED, text, "tools/list", error=error))
        if generation == self._generation:  # else the tools have changed meanwhile
            self._known[principal] = time.monotonic() + seconds, found
        if len(self._known) > _PRINCIPALS:
            self._known.popitem(last=False)
        return found

    async def _read(self, engine: Engine, principal: str | None, found: dict[str, tuple[HeaderParam, ...]]) -> float:
        seconds, cursor = _TTL, None
        for _ in range(_PAGES):
            result = as_struct(await self._page(engine, principal, cursor))
            for tool in result.tools:
                self._note(engine, tool, found)
            if isinstance(result.ttl_ms, int) and result.ttl_ms > 0:
                seconds = result.ttl_ms / 1000
            cursor = result.next_cursor
            if not isinstance(cursor, str):
                break
        return seconds

    async def _page(self, engine: Engine, principal: str | None, cursor: str | None) -> Any:
        meta = D.RequestMetaObject(protocol_version=DIALECT, client_capabilities=D.ClientCapabilities())
        plain: dict[str, Any] = {"_meta": {VERSION: DIALECT, CAPABILITIES: {}}}
        if cursor is not None:
            plain["cursor"] = cursor
        kind = D if self._service.codec == "msgspec" else models()
        params = kind.from_builtins(plain, kind.PaginatedRequestParams)
        entry = codec_for(DIALECT, self._service.codec).entries["tools/list"]
        channel: Any = _Nowhere(principal)
        ctx = Context(engine, entry, None, Facts(DIALECT, meta), meta, b"", channel)
        result = engine.enter(ctx, params)
        return await result if is_awaitable(result) else result

    def _note(self, engine: Engine, tool: Any, found: dict[str, tuple[HeaderParam, ...]]) -> None:
        try:
            params = header_params(to_builtins(tool.input_schema))
        except ValueError as error:
            text = f"the tool {tool.name} has headers that clients refuse: {error}"
            engine.report(Report(Kind.PROBLEM, text, "tools/list"))
            return
        if params:
            found[tool.name] = params


class _Nowhere:
    """Takes what is told to nobody."""

    stream = None
    request_headers: Mapping[str, str] = {}

    def __init__(self, principal: str | None) -> None:
        self.principal = principal

    def tell(self, ctx: Context, line: bytes) -> bool:  # noqa: ARG002
        """Nobody is there."""
        return False

    def hang_up(self, retry: float) -> None:
        """Nobody is there."""
