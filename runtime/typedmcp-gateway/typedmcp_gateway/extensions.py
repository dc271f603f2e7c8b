"""Extensions of the servers behind a gateway: what it declares of them, and methods that its schema does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from typedmcp import Context, Extension, ServerExtension
from typedmcp.building import format_value
from typedmcp.errors import METHOD_NOT_FOUND, MethodNotFoundError, RemoteError, UsageError
from typedmcp.revisions.features import SUPPORTED, methods_of
from typedmcp_gateway.audit import Audit
from typedmcp_gateway.callers import GatewayCaller
from typedmcp_gateway.extension_calls import named_param
from typedmcp_gateway.forwarding import Forwarder
from typedmcp_gateway.protocol import TASK_NAMES, TASK_REVISIONS, TASKS
from typedmcp_gateway.routing import Router
from typedmcp_gateway.servers import GatewayServer
from typedmcp_gateway.tasks import TaskIds

__all__ = ["ExtensionRouter", "declared_extensions"]

_MAX_EXTENSIONS: Final = 100
"""Extensions that a gateway declares."""


def declared_extensions(
    servers: Iterable[GatewayServer], report: Callable[[str], None]
) -> Mapping[str, ServerExtension]:
    """Return the extensions that a gateway declares: those of its servers, by identifier.

    Settings that not all servers with the extension have are left out.
    """
    made: dict[str, dict[str, Any]] = {}
    for server in servers:
        for name, settings in server.extensions.items():
            known = made.setdefault(name, dict(settings))
            made[name] = {key: value for key, value in known.items() if key in settings and settings[key] == value}
    offered: dict[str, ServerExtension] = {}
    for name, settings in list(made.items())[:_MAX_EXTENSIONS]:
        revisions = TASK_REVISIONS if name == TASKS else SUPPORTED
        try:
            offered[name] = ServerExtension(Extension(name, revisions=revisions), settings)
        except UsageError as error:
            report(f"a server has declared an extension that is not valid: {format_value(name)}: {error}")
    return offered


class ExtensionRouter:
    """Routes requests and notifications that the schema of the gateway does not have."""

    def __init__(
        self, servers: Mapping[str, GatewayServer], router: Router, forwarder: Forwarder, task_ids: TaskIds
    ) -> None:
        self._servers = servers
        self._router = router
        self._forwarder = forwarder
        self._task_ids = task_ids

    async def route(self, _params: Any, ctx: Context, caller: GatewayCaller, audit: Audit) -> Any:
        """Return the result of a request, as its server sent it. Raises `RemoteError`."""
        params = ctx.raw_params()
        if ctx.method in TASK_NAMES:
            return await self._route_task(params, ctx, caller, audit)
        server, params = self._find(params, ctx, caller)
        audit.server = server.name
        return await self._forwarder.forward_plain(server, params, ctx, caller)

    async def notify(self, ctx: Context, caller: GatewayCaller) -> None:
        """Pass a notification to its server. One that no server, or none in particular, is for is reported."""
        try:
            server, params = self._find(ctx.raw_params(), ctx, caller)
            plain = {member: msgspec.json.decode(value) for member, value in params.items()}
            await self._forwarder.notify_plain(server, plain, ctx, caller)
        except RemoteError as error:
            ctx.report(f"{ctx.method} did not pass: {error.message}")

    async def _route_task(self, params: dict[str, Raw], ctx: Context, caller: GatewayCaller, audit: Audit) -> Any:
        if ctx.revision not in TASK_REVISIONS:
            raise MethodNotFoundError(ctx.method)
        server, id = self._task_ids.resolve(msgspec.json.decode(params.get("taskId", b"null")), ctx)
        audit.server = server.name
        own = {**params, "taskId": Raw(msgspec.json.encode(id))}
        result = await self._forwarder.forward_plain(server, own, ctx, caller)
        return self._task_ids.expose_in(result, server, ctx) if isinstance(result, Raw) else result

    def _find(
        self, params: dict[str, Raw], ctx: Context, caller: GatewayCaller
    ) -> tuple[GatewayServer, dict[str, Raw]]:
        """Return the server of a method, and the parameters with the server's own name.

        Raises `MethodNotFoundError` if no server has extensions, and `RemoteError` if the request does not say which
        of several is meant.
        """
        method = ctx.method
        known = methods_of(ctx.revision).METHODS
        found = [
            server
            for server in self._servers.values()
            if (server.extensions or (server.description is None and len(self._servers) == 1))
            and self._router.is_visible(caller, server, "methods", method)
        ]
        if not found or method in known:
            raise MethodNotFoundError(method)
        member = "name" if bytes(params.get("name", b"")).startswith(b'"') else named_param(params, ctx)
        name: str | None = None if member is None else msgspec.json.decode(params[member])
        named = [(server, own) for server in found if name and (own := server.rules.resolve(name)) is not None]
        named.sort(key=lambda each: -len(each[0].rules.prefix))
        if member is not None and (len(named) == 1 or (named and _has_longest_prefix(named))):
            server, own = named[0]
            return server, {**params, member: Raw(msgspec.json.encode(own))}
        if len(found) == 1:
            return found[0], params
        names = ", ".join(server.name for server in found)
        text = f"the servers {names} have extensions, and neither params.name nor Mcp-Name says which is meant"
        raise RemoteError(METHOD_NOT_FOUND, f"{method}: {text}")


def _has_longest_prefix(named: list[tuple[GatewayServer, str]]) -> bool:
    """Return whether the first of several servers is the only one with its prefix."""
    return len(named[0][0].rules.prefix) > len(named[1][0].rules.prefix)
