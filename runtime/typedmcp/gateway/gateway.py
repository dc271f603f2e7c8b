"""The gateway: a handler that forwards every request to the server that it is for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Unpack

from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.client.config import ServerEntry
from typedmcp.client.negotiation import ServerDescription
from typedmcp.client.pool import ClientPool
from typedmcp.client.targets import Target
from typedmcp.errors import UsageError
from typedmcp.gateway.audit import Audit, outcome_of, outcome_of_error
from typedmcp.gateway.callers import CallerFinder, GatewayCaller
from typedmcp.gateway.forwarding import Forwarder, plain_codec
from typedmcp.gateway.names import NameRules
from typedmcp.gateway.options import GatewayOptions, check_options
from typedmcp.gateway.questions import ParkedCalls
from typedmcp.gateway.servers import GatewayServer, Leases, describe
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.revisions.features import structs_of
from typedmcp.server.changes import Changes
from typedmcp.server.config import ServerConfig, ServerDefaults
from typedmcp.server.context import Context

__all__ = ["Gateway"]

D = dialect.structs

_START_SECONDS: Final = 30.0
"""Seconds that a server may take to describe itself when the gateway starts."""
_MAX_LEASES: Final = 1000
"""Calls at a time over one connection to a server."""
_IMPLIED: Final[Mapping[str, dict[str, bool]]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
}
_ALONE: Final = GatewayCaller("gateway", False, None)
"""The gateway itself, as a caller."""


class Gateway:
    """A handler that offers a server of any revision and transport to clients of any other.

    ```python
    typedmcp.serve(typedmcp.Gateway("https://api.example/mcp"))
    ```

    Whatever serves a handler serves it: `serve`, `asgi`, `connect`. `target` is one of `connect`; `GatewayOptions`
    describes the options. Raises `UsageError` for a target or an option that is not valid.
    """

    def __init__(self, target: Target, **options: Unpack[GatewayOptions]) -> None:
        check_options(options)
        self._options = options
        self.info: D.Implementation = D.Implementation(
            name=options.get("name", "typedmcp-gateway"), version=options.get("version", "0")
        )
        self.capabilities: D.ServerCapabilities = D.ServerCapabilities()
        """The capabilities of the servers, as far as they are known."""
        self.changes: Changes = Changes()
        self._servers: dict[str, GatewayServer] = {}
        entry = target if isinstance(target, ServerEntry) else ServerEntry("server", target)
        self._servers[entry.name] = GatewayServer(
            entry.name, entry, options.get("rules", {}).get(entry.name) or NameRules()
        )
        self._callers = CallerFinder()
        self._parked = ParkedCalls(options.get("max_parked", 1000), options.get("answer_seconds", 600.0))
        self._forwarder: Forwarder | None = None
        self._config: ServerConfig | None = None

    def __server_config__(self) -> ServerDefaults:
        """Return the defaults for the options of `typedmcp.ServerConfig`."""
        return {
            "info": self.info,
            "instructions": self._options.get("instructions"),
            "changes": self.changes,
            "capabilities": self.capabilities,
            "lifespans": lambda: {self: self._lifespan},
            "bind": self._bind,
        }

    def _bind(self, config: ServerConfig) -> None:
        self._config = config

    def _report(self, diagnostic: Diagnostic) -> None:
        if self._config is not None:
            self._config.report(diagnostic)

    # Starting and ending

    @asynccontextmanager
    async def _lifespan(self, _owner: object) -> AsyncGenerator[None]:
        pool = ClientPool(
            max_clients=self._options.get("max_connections", 100),
            max_leases=_MAX_LEASES,
            idle_seconds=self._options.get("idle_seconds", 300.0),
        )
        async with pool:
            leases = Leases(pool, self._options.get("credentials"), self._options.get("connect", {}), self._report)
            await asyncio.gather(*(self._describe(leases, pool, server) for server in self._servers.values()))
            self._forwarder = Forwarder(leases, self._parked, self._options.get("answer_seconds", 600.0))
            try:
                yield
            finally:
                self._parked.close()
                self._forwarder = None

    async def _describe(self, leases: Leases, pool: ClientPool, server: GatewayServer) -> None:
        """Ask a server for its capabilities and instructions. One that is down is asked again by its first caller."""
        await describe(leases, server, _ALONE, _START_SECONDS)
        if not server.is_stateless:
            pool.retire(server.entry.target)  # the session of the gateway itself, which no caller shares
        if server.error is not None:
            self._report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, f"server {server.name!r}: {server.error}"))
        self._declare()

    def _declare(self) -> None:
        """Declare the capabilities and instructions of the servers. A server that is not known may have all."""
        described = [server.description for server in self._servers.values()]
        for name in ("tools", "prompts", "resources", "completions"):
            if any(each is None or _may_have(each, name) for each in described):
                made = D.from_builtins({name: _IMPLIED[name]}, D.ServerCapabilities)
                setattr(self.capabilities, name, getattr(made, name))
        self.capabilities.logging = {}
        if self._config is not None and self._options.get("instructions") is None:
            texts = [each.instructions for each in described if each is not None and each.instructions]
            self._config.instructions = "\n\n".join(texts) or None

    # Requests

    async def list_tools(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """Handle `tools/list`."""
        return await self._forward(params, ctx)

    async def call_tool(self, params: D.CallToolRequestParams, ctx: Context) -> Any:
        """Handle `tools/call`."""
        return await self._forward(params, ctx)

    async def list_prompts(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """Handle `prompts/list`."""
        return await self._forward(params, ctx)

    async def get_prompt(self, params: D.GetPromptRequestParams, ctx: Context) -> Any:
        """Handle `prompts/get`."""
        return await self._forward(params, ctx)

    async def list_resources(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """Handle `resources/list`."""
        return await self._forward(params, ctx)

    async def list_resource_templates(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """Handle `resources/templates/list`."""
        return await self._forward(params, ctx)

    async def read_resource(self, params: D.ReadResourceRequestParams, ctx: Context) -> Any:
        """Handle `resources/read`."""
        return await self._forward(params, ctx)

    async def complete(self, params: D.CompleteRequestParams, ctx: Context) -> Any:
        """Handle `completion/complete`."""
        return await self._forward(params, ctx)

    async def _forward(self, params: Any, ctx: Context) -> Any:
        caller = self._callers.find(ctx)
        audit = Audit(
            self._options.get("on_call"), ctx, caller, has_arguments=self._options.get("audit_arguments", False)
        )
        try:
            result = await self._route(params, ctx, caller, audit)
        except BaseException as error:
            audit.end(params, outcome_of_error(error, ctx.revision))
            raise
        audit.end(params, outcome_of(result))
        if is_object(result):
            ctx.method_codec = plain_codec(ctx.method)
        return result

    async def _route(self, params: Any, ctx: Context, caller: GatewayCaller, audit: Audit) -> Any:
        if self._forwarder is None:
            raise UsageError("the gateway is not running: its lifespan has not begun")
        server = next(iter(self._servers.values()))
        audit.server = server.name
        return await self._forwarder.forward(server, params, ctx, caller)


def _may_have(server: ServerDescription, capability: str) -> bool:
    """Return whether a server has declared a capability, or its revision has no way to do so."""
    known = structs_of(server.revision).ServerCapabilities.__struct_fields__
    return capability not in known or getattr(server.capabilities, capability) is not None
