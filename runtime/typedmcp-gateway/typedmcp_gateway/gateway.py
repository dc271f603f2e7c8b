"""The gateway: a handler that forwards every request to the server that it is for."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, ForwardRef, NamedTuple, TypeAlias, Unpack

import msgspec

from typedmcp import Context, Diagnostic, DiagnosticKind
from typedmcp.building import is_object
from typedmcp.client import Target
from typedmcp.dialect import structs
from typedmcp.errors import UsageError
from typedmcp.revisions.features import SUPPORTED
from typedmcp.services import AppLink, JsonResult, OfferedExtension, OpenMember, Service
from typedmcp_gateway.audit import NO_AUDIT, Audit, OnCall, RecordedCall, outcome_of, outcome_of_error
from typedmcp_gateway.callers import GATEWAY, CallerKey, GatewayCaller, find_caller
from typedmcp_gateway.configuration import load_rules
from typedmcp_gateway.exchange import ExchangedCredentials
from typedmcp_gateway.extensions import ExtensionRouter, declared_extensions
from typedmcp_gateway.filters import FilterRelay
from typedmcp_gateway.forwarding import Forwarder
from typedmcp_gateway.listing import LISTS
from typedmcp_gateway.names import NameRules
from typedmcp_gateway.options import GatewayOptions, ServersConfig, check_options
from typedmcp_gateway.pool import ClientPool
from typedmcp_gateway.protocol import TASK_NAMES
from typedmcp_gateway.questions import ParkedCalls
from typedmcp_gateway.routing import Route, Router
from typedmcp_gateway.server_identity import passed_info, read_stderr
from typedmcp_gateway.servers import GatewayServer, Leases, ServerStatus, describe, input_capabilities, wants_logs
from typedmcp_gateway.shares import ConnectionShares
from typedmcp_gateway.tasks import TaskIds
from typedmcp_gateway.watches import LIST_CHANGES, ChangeMerger, Holder, Watches, announced_lists
from typedmcp_gateway.workers import WorkerCalls
from typedmcp_hosts import Config, ServerEntry, load_entries

if TYPE_CHECKING:
    from typedmcp.server.http.asgi import AsgiApp, AsgiOptions
else:  # for `inspect.signature`
    AsgiApp = ForwardRef("AsgiApp", module="typedmcp.server.http.asgi")
    AsgiOptions = ForwardRef("AsgiOptions", module="typedmcp.server.http.asgi")

__all__ = ["Gateway"]

_Handle: TypeAlias = Callable[[Any, Any, Context], Coroutine[Any, Any, Any]]

_START_SECONDS: Final = 30.0
"""Seconds that a server may take to describe itself when the gateway starts."""
_IMPLIED: Final[Mapping[str, dict[str, bool]]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
}
_ONLY: Final = "server"
"""The name of the server of a gateway with one target."""


class Gateway(Service):
    """A handler that offers a server of any revision and transport to clients of any other.

    ```python
    typedmcp.serve(Gateway("https://api.example/mcp"))
    ```

    Whatever serves a handler serves it: `serve`, `asgi`, `connect`. `target` is one of `connect`; `GatewayOptions`
    describes the options. Raises `UsageError` for a target or an option that is not valid.
    """

    def __init__(
        self, target: Target = None, *, servers: ServersConfig = None, **options: Unpack[GatewayOptions]
    ) -> None:
        """Make a gateway for one `target`, or for several `servers`: a configuration as for `connect_all`."""
        check_options(options)
        if (target is None) is (servers is None):
            raise UsageError("Gateway takes either a target or servers={…}")
        super().__init__()
        self._options = options
        self.info: structs.Implementation = self._own_info()
        self.instructions = options.get("instructions")
        self.header_params = TASK_NAMES
        self._servers: dict[str, GatewayServer] = {}
        self._app: AppLink | None = None
        if servers is None:
            entry = target if isinstance(target, ServerEntry) else ServerEntry(_ONLY, target)
            self._servers.update(self._make_servers({_ONLY: entry}, options.get("rules", {})))
        else:
            self._servers.update(self._load(servers))
        self._file = os.fspath(servers) if isinstance(servers, str | os.PathLike) else None
        self._task_ids = TaskIds(self._servers, is_single=servers is None)
        exchange = options.get("exchange")
        self._on_call = options.get("on_call")
        self._exchanged = None if exchange is None else ExchangedCredentials(exchange)
        self._parked = ParkedCalls(options.get("max_parked", 1000), options.get("answer_seconds", 600.0))
        self._running: _Running | None = None
        self._merger = ChangeMerger(self.changes)
        self._checking: asyncio.Future[Any] | None = None
        """The check that is running, which all who ask share."""
        self._seen: dict[CallerKey, _LegacyClient] = {}
        """The legacy clients whose lists are followed."""

    def _own_info(self) -> structs.Implementation:
        """Return how the gateway describes itself where it does not pass the description of its only server on."""
        options = self._options
        return structs.Implementation(name=options.get("name", "typedmcp-gateway"), version=options.get("version", "0"))

    def _load(self, config: Config) -> dict[str, GatewayServer]:
        """Return the servers of a configuration, with the rules of the option or, without it, of the configuration."""
        entries = load_entries(config, self._report)
        prefixes = self._prefixes(entries)
        rules = self._options.get("rules")
        return self._make_servers(entries, load_rules(config, prefixes) if rules is None else rules)

    def _prefixes(self, entries: Mapping[str, ServerEntry]) -> dict[str, str]:
        enabled = [name for name, entry in entries.items() if not entry.disabled]
        separator = self._options.get("separator", "_")
        return {name: f"{name}{separator}" if len(enabled) > 1 else "" for name in enabled}

    def _make_servers(
        self, entries: Mapping[str, ServerEntry], rules: Mapping[str, NameRules]
    ) -> dict[str, GatewayServer]:
        """Return servers in their order. Raises `UsageError` for rules of a server that there is not."""
        if unknown := [name for name in rules if name not in entries]:
            raise UsageError(f"rules: unknown server {unknown[0]!r}; known: {', '.join(entries)}")
        revisions = self._options.get("connect", {}).get("revisions", SUPPORTED)
        on_stderr = self._options.get("on_stderr")
        return {
            name: GatewayServer(
                name,
                read_stderr(entries[name], on_stderr),
                (rules.get(name) or NameRules(prefix)).without(entries[name].disabled_tools),
                revisions,
            )
            for name, prefix in self._prefixes(entries).items()
        }

    def asgi(self, **options: Unpack[AsgiOptions]) -> AsgiApp:
        """Return an ASGI application like `typedmcp.asgi`, with two more routes.

        GET `/health` answers 200 while the gateway runs. GET `/ready` answers 200 if a server can be reached, else 503,
        with the state of each server.
        """
        from typedmcp_gateway.http import make_app  # other transports do not need it

        return make_app(self, self.check, **options)

    def input_schema_of(self, tool: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool, for the check of headers. None for a tool that no list had so far."""
        for server in self._servers.values():
            own = server.rules.resolve(tool)
            if own is not None and own in server.schemas:
                schema: Mapping[str, Any] = server.schemas[own]
                return schema
        return None

    def _report(self, diagnostic: Diagnostic) -> None:
        if self._app is not None:
            self._app.report(diagnostic)

    def _report_text(self, text: str) -> None:
        self._report(Diagnostic(DiagnosticKind.INVALID_DATA, text))

    @property
    def server_names(self) -> list[str]:
        """The names of the servers, in order."""
        return [*self._servers]

    @property
    def rules(self) -> dict[str, NameRules]:
        """The rules for the names of each server."""
        return {name: server.rules for name, server in self._servers.items()}

    # Starting and ending

    @asynccontextmanager
    async def open(self, app: AppLink) -> AsyncGenerator[None]:
        """Connect to the servers, and serve until the end of the block."""
        self._app, limits = app, app.limits
        workers = None if app.workers is None else WorkerCalls(app.workers, self._parked, limits.http_body_bytes)
        pool = ClientPool(
            max_clients=self._options.get("max_connections", 100),
            max_leases=sys.maxsize,  # calls and subscriptions are limited apart, for each client
            idle_seconds=self._options.get("idle_seconds", 300.0),
        )
        async with pool:
            leases = self._make_leases(pool, limits.client_share_percent)
            await asyncio.gather(*(self._describe(leases, pool, server) for server in self._servers.values()))
            answer_seconds = self._options.get("answer_seconds", 600.0)
            describe = partial(self._describe_once, leases, pool)
            tells = self._options.get("tell_causes", False)
            forwarder = Forwarder(
                leases, self._parked, answer_seconds, describe, self._task_ids, workers, tells_causes=tells
            )
            router = Router(self._servers, forwarder, self._options.get("policy"))
            extensions = ExtensionRouter(self._servers, router, forwarder, self._task_ids)
            max_connections = self._options.get("max_connections", 100)
            limited: tuple[Any, ...] = (self._report, max_connections, limits.client_share_percent)
            watches = Watches(leases, self._merger, *limited)
            filters = FilterRelay(self._servers, leases, self._task_ids, *limited)
            self._running = _Running(pool, leases, router, router.routes(), watches, extensions, filters)
            tasks = [asyncio.get_running_loop().create_task(self._sweep())]
            if (seconds := self._options.get("reload_seconds")) is not None and self._file is not None:
                tasks.append(asyncio.get_running_loop().create_task(self._follow_file(self._file, seconds)))
            try:
                yield
            finally:
                self._running = None
                self._parked.close()
                tasks += [server.describing for server in self._servers.values() if server.describing is not None]
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await watches.close()

    def _make_leases(self, pool: ClientPool, percent: int) -> Leases:
        """Return the leases of a pool. One client over HTTP has `percent` of the connections, and of the calls."""
        total = self._options.get("max_connections", 100)
        retire = partial(pool.retire, only_idle=True)
        shares = ConnectionShares(max(1, total * percent // 100), total, retire)
        credentials = self._exchanged or self._options.get("credentials")
        max_calls = self._options.get("max_calls", 1000)
        return Leases(pool, credentials, self._options.get("connect", {}), self._report, shares, max_calls, percent)

    # State and configuration

    @property
    def status(self) -> list[ServerStatus]:
        """The state of each server, as far as it is known."""
        return [
            ServerStatus(
                server.name,
                server.description is not None and server.error is None,
                server.revision,
                server.error,
            )
            for server in self._servers.values()
        ]

    async def check(self) -> list[ServerStatus]:
        """Connect to the servers that could not be reached the last time, and return the state of all."""
        running = self._require_running()
        if self._checking is None or self._checking.done():
            failed = [server for server in self._servers.values() if server.error is not None]
            describing = asyncio.gather(*(self._describe(running.leases, running.pool, each) for each in failed))
            self._checking = asyncio.ensure_future(describing)
        await asyncio.shield(self._checking)
        return self.status

    async def reload(self, servers: Config) -> None:
        """Use another configuration. Clients stay connected, and calls that are open at a server go on.

        Raises `UsageError` for a configuration with an entry that has become invalid, and keeps the old one.
        """
        running, loaded, known = self._require_running(), self._load(servers), dict(self._servers)
        for name, server in loaded.items():
            if (problem := server.entry.problem) and (name not in known or known[name].entry.problem != problem):
                raise UsageError(problem)
        added = [server for name, server in loaded.items() if name not in known or known[name].entry != server.entry]
        for name, server in known.items():
            if name in loaded and loaded[name].entry == server.entry:
                server.follow_rules(loaded[name].rules)
                loaded[name] = server
            else:
                running.watches.end_server(name)
                running.pool.retire(server.entry.target)
        self._servers.clear()
        self._servers.update(loaded)
        running.router.forget_names()
        for client in self._seen.values():
            client.following = None  # so that it follows the lists of new servers
        await asyncio.gather(*(self._describe(running.leases, running.pool, server) for server in added))
        self._declare()
        for kind in LIST_CHANGES:
            self._merger.publish(kind)

    async def _follow_file(self, file: str, seconds: float) -> None:
        """Load the configuration again whenever its file changes. One that is not valid is reported and ignored."""
        last = _file_state(file)
        while True:
            await asyncio.sleep(seconds)
            state = _file_state(file)
            if state == last or state is None:
                continue
            last = state
            try:
                await self.reload(file)
            except UsageError as error:
                text = f"the configuration is not loaded: {error}"
                self._report(Diagnostic(DiagnosticKind.INVALID_DATA, text, error=error))

    async def _describe(self, leases: Leases, pool: ClientPool, server: GatewayServer) -> None:
        """Ask a server for its capabilities and instructions. One that is down is asked again by its first caller."""
        await describe(leases, server, GATEWAY, _START_SECONDS)
        if not server.is_stateless:
            pool.retire(server.entry.target)  # the session of the gateway itself, which no caller shares
        if server.error is not None:
            self._report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, f"server {server.name!r}: {server.error}"))
        self._declare()

    async def _describe_once(self, leases: Leases, pool: ClientPool, server: GatewayServer) -> None:
        """Ask a server for its capabilities, once for all callers that need them at the moment."""
        task = server.describing
        if task is None or task.done():
            describing = self._describe(leases, pool, server)
            task = server.describing = asyncio.get_running_loop().create_task(describing)
        await asyncio.shield(task)

    def _declare(self) -> None:
        """Declare what the servers are and can do. A server that is not known may have all capabilities."""
        described = [server.description for server in self._servers.values()]
        if self._app is not None:
            only = described[0] if len(described) == 1 and "name" not in self._options else None
            info = None if only is None else passed_info(only.info)
            self.info = self._own_info() if info is None else info
            self._app.describe(self.info)
        for name in ("tools", "prompts", "resources", "completions"):
            if any(server.may_have(name) for server in self._servers.values()):
                made = structs.from_builtins({name: _IMPLIED[name]}, structs.ServerCapabilities)
                setattr(self.capabilities, name, getattr(made, name))
        self.capabilities.logging = {}
        self.extensions: Sequence[OfferedExtension] = [
            *declared_extensions(self._servers.values(), self._report_text).values()
        ]
        if self._options.get("instructions") is None:
            texts = [each.instructions for each in described if each is not None and each.instructions]
            self.instructions = "\n\n".join(texts) or None

    # Requests

    async def _forward(self, params: Any, ctx: Context) -> Any:
        """Handle a request."""
        caller = self._find_caller(ctx)
        audit = NO_AUDIT if self._on_call is None else self._begin_audit(self._on_call, ctx, caller)
        try:
            running = self._require_running()
            route = running.routes.get(ctx.method)
            if route is None:
                route = running.extensions.route
            elif not ctx.is_modern:
                self._follow_lists(running, ctx, caller)
            result = await route(params, ctx, caller, audit)
        except BaseException as error:
            audit.end(params, outcome_of_error(error, ctx.revision))
            raise
        if audit is not NO_AUDIT:
            audit.end(params, outcome_of(result))
        return JsonResult(result, ctx.revision) if isinstance(result, msgspec.Raw) or is_object(result) else result

    list_tools: ClassVar[_Handle] = _forward
    call_tool: ClassVar[_Handle] = _forward
    list_prompts: ClassVar[_Handle] = _forward
    get_prompt: ClassVar[_Handle] = _forward
    list_resources: ClassVar[_Handle] = _forward
    list_resource_templates: ClassVar[_Handle] = _forward
    read_resource: ClassVar[_Handle] = _forward
    complete: ClassVar[_Handle] = _forward

    async def fallback(self, _method: str, params: Any, ctx: Context) -> Any:
        """Handle the requests and notifications of extensions."""
        if ctx.id is None:
            return await self._require_running().extensions.notify(ctx, self._find_caller(ctx))
        return await self._forward(params, ctx)

    def _begin_audit(self, on_call: OnCall, ctx: Context, caller: GatewayCaller) -> Audit:
        return RecordedCall(on_call, ctx, caller, has_arguments=self._options.get("audit_arguments", False))

    def _find_caller(self, ctx: Context) -> GatewayCaller:
        if self._exchanged is not None:
            self._exchanged.remember(ctx)
        return find_caller(ctx)

    def _require_running(self) -> _Running:
        if self._running is None:
            raise UsageError("the gateway is not running: its lifespan has not begun")
        return self._running

    # Subscriptions

    def members(self, names: Sequence[str], ctx: Context) -> Mapping[str, OpenMember]:
        """Return the functions for the members of a filter that are for the extensions of servers."""
        return self._require_running().filters.find(names, ctx, self._find_caller(ctx))

    async def authorize_subscriptions(self, params: Any, ctx: Context) -> structs.SubscriptionFilter:
        """Subscribe at the servers to what a client wants, and return what they grant."""
        running, caller = self._require_running(), self._find_caller(ctx)
        wanted: structs.SubscriptionFilter = params.notifications
        holder: Holder = caller.key
        if ctx.is_modern:
            holder = task = asyncio.current_task()
            assert task is not None
            task.add_done_callback(lambda _: running.watches.release(task))
        capabilities = input_capabilities(ctx)
        if wanted.tools_list_changed or wanted.prompts_list_changed or wanted.resources_list_changed:
            waiting = [
                running.watches.hold(holder, server, caller, capabilities, wants_logs=wants_logs(ctx))
                for server in self._servers_for(ctx)
                if announced_lists(server)
            ]
            await asyncio.gather(*waiting)
        granted = msgspec.structs.replace(wanted, resource_subscriptions=None)
        if wanted.resource_subscriptions:
            subscribed = [
                uri for uri in wanted.resource_subscriptions if await self._subscribe(running, holder, caller, ctx, uri)
            ]
            granted.resource_subscriptions = subscribed
        return granted

    def _servers_for(self, ctx: Context) -> list[GatewayServer]:
        return [server.spoken_to(ctx.revision) for server in self._servers.values()]

    async def _subscribe(
        self, running: _Running, holder: Holder, caller: GatewayCaller, ctx: Context, uri: str
    ) -> bool:
        """Subscribe to a resource at the first server that grants it."""
        capabilities = input_capabilities(ctx)
        for server in (each.spoken_to(ctx.revision) for each in running.router.servers_of(uri, caller)):
            if await running.watches.hold(holder, server, caller, capabilities, uri, wants_logs=wants_logs(ctx)):
                return True
            running.watches.release(holder, [uri])
        return False

    def topic_of(self, uri: str, ctx: Context) -> str:
        """Return the topic of a resource for a client: of a change hear those alone whose connection reports it."""
        holder: Holder = asyncio.current_task() if ctx.is_modern else find_caller(ctx).key
        return self._require_running().watches.topic_of(holder, uri)

    async def on_unsubscribed(self, uri: str, ctx: Context) -> None:
        """End the subscription at the server."""
        self._require_running().watches.release(find_caller(ctx).key, [uri])

    def _follow_lists(self, running: _Running, ctx: Context, caller: GatewayCaller) -> None:
        """Subscribe to the lists of the servers for a legacy client, which does not ask for that.

        A server that needs a connection for each client gets one for this once the client has asked for a list.
        """
        client = self._seen.get(caller.key)
        if client is None:
            forget = ctx.on_session_end(partial(self._release, caller.key))
            client = self._seen[caller.key] = _LegacyClient(ctx.caller.kind == "connection", forget)
        before = client.following
        has_listed = ctx.method in LISTS or (before is not None and before.has_listed)
        client.following = following = _Following(wants_logs(ctx), has_listed)
        client.seen = asyncio.get_running_loop().time()
        if following != before:  # its calls may have another connection now
            capabilities = input_capabilities(ctx)
            for server in self._servers_for(ctx):
                if announced_lists(server) and (has_listed or server.is_stateless):
                    running.watches.hold(caller.key, server, caller, capabilities, wants_logs=wants_logs(ctx))

    def _release(self, key: CallerKey) -> None:
        """Release the subscriptions and connections of a client that has gone."""
        if (client := self._seen.pop(key, None)) is not None:
            client.forget_end()
        if self._running is not None:
            self._running.watches.release(key)
            self._running.leases.end_session(key)

    async def _sweep(self) -> None:
        """Release the subscriptions of sessions over HTTP that have not been used for a while."""
        seconds = self._options.get("idle_seconds", 300.0)
        while True:
            await asyncio.sleep(max(0.05, seconds / 4))
            now = asyncio.get_running_loop().time()
            idle = [key for key, each in self._seen.items() if not each.is_connection and now - each.seen >= seconds]
            for key in idle:
                self._release(key)


def _file_state(file: str) -> tuple[int, int] | None:
    """Return what changes with a file; None if it cannot be read at the moment."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class _Following(NamedTuple):
    """The state in which the lists of the servers are followed for a legacy client."""

    wants_logs: bool
    has_listed: bool
    """True once the client has asked for a list."""


@dataclass
class _LegacyClient:
    """A legacy client whose lists are followed."""

    is_connection: bool
    """True if its end is always noticed. A session over HTTP may be left without a word."""
    forget_end: Callable[[], None]
    """Undoes `on_session_end`."""
    following: _Following | None = None
    seen: float = 0.0
    """The time of the loop at its last request."""


class _Running(NamedTuple):
    """The parts of a gateway that exist while it is served."""

    pool: ClientPool
    leases: Leases
    router: Router
    routes: Mapping[str, Route]
    """The functions that route the requests of the protocol, by method."""
    watches: Watches
    extensions: ExtensionRouter
    filters: FilterRelay
