"""The servers behind a gateway: leases of their clients, and calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from typedmcp import Client, ConnectOptions, Context, Diagnostic, DiagnosticKind
from typedmcp.building import to_builtins
from typedmcp.client import ServerDescription, Target, is_url
from typedmcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Error,
    RemoteError,
    UnsupportedVersionError,
)
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.revisions.features import SUPPORTED, is_modern, structs_of
from typedmcp_gateway.callers import GATEWAY, CallerKey, GatewayCaller
from typedmcp_gateway.names import NameRules
from typedmcp_gateway.notifications import QUIET_EXTENSIONS, PassedExtensions, passed_extensions
from typedmcp_gateway.options import CredentialsOf
from typedmcp_gateway.pool import ClientLease, ClientPool
from typedmcp_gateway.protocol import META_PREFIX
from typedmcp_gateway.questions import ForwardedCall, ServerQuestions
from typedmcp_gateway.shares import CallShares, ConnectionNumbers, ConnectionShares
from typedmcp_hosts import ServerEntry

__all__ = [
    "MAX_LISTED",
    "GatewayServer",
    "Leases",
    "ServerLease",
    "ServerStatus",
    "call_options",
    "can_be_asked",
    "describe",
    "encode_identity",
    "follow_level",
    "input_capabilities",
    "plain_params",
    "wants_logs",
]


_OWN_MEMBERS: Final = frozenset(("name", "uri", "cursor", "ref"))
"""The parameters that the gateway may have changed."""
_INPUTS: Final = ("sampling", "elicitation", "roots")
"""The capabilities of clients for questions."""
_OF_CLIENTS: Final = frozenset(
    META_PREFIX + name for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
)
"""The members of the `_meta` of a modern request that describe its client."""
_MAX_PASSED: Final = 256
"""Capabilities of clients of which is known what servers get of them."""
_LOWEST_LEVEL: Final = "emergency"
"""The level of log messages while no caller asked for any: the protocol has no level for none."""
MAX_LISTED: Final = 10_000
"""Names of one list of a server that are remembered. Further ones are asked for as if they were not listed."""
_REFUSALS: Final = frozenset((METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS))
"""The codes with which servers without a handshake refuse one."""
_QUESTION_SECONDS: Final = 30.0
"""Seconds that a question outside of a call waits for the next call."""


@dataclass(eq=False)
class _Reached:
    """The outcome of the last attempt to reach a server."""

    error: Exception | None = None


@dataclass(eq=False)
class GatewayServer:
    """One server behind a gateway, as clients of some revisions use it.

    Clients whose own revision the server speaks, too, use it on that one: see `spoken_to`.
    """

    name: str
    entry: ServerEntry
    rules: NameRules
    revisions: Collection[str] = SUPPORTED
    """The revisions that the gateway may speak with the server."""
    description: ServerDescription | None = None
    """The last description that the server gave of itself. None before its first connection."""
    revision: str | None = None
    """The revision that the server speaks with the gateway."""
    is_stateless: bool = False
    """True if all callers with the same credentials can share one connection."""
    extensions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The extensions that the server has declared, with their settings, without those of its connection."""
    shared: ServerQuestions | None = None
    """The callbacks of the connection that callers share, if they all have the same credentials."""
    reached: _Reached = field(default_factory=_Reached)
    describing: asyncio.Task[None] | None = None
    """The attempt to connect that calls share while the server is unknown."""
    listed: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The own names and URIs that the server has listed, by the member of the list."""
    schemas: dict[str, Any] = field(default_factory=dict[str, Any])
    """The input schemas of the tools that it has listed, by their own names."""
    spoken: dict[str, GatewayServer | None] = field(default_factory=dict[str, "GatewayServer | None"])
    """The same server on the revisions of clients. None for a revision that it has named and then refused."""
    is_used: bool = False
    """True once a client has used the server on this revision."""
    origin: GatewayServer | None = None
    """The server on the revision that it speaks with the gateway itself. None if this is it."""

    @property
    def error(self) -> Exception | None:
        """Why the server could not be reached the last time. None if it could."""
        return self.reached.error

    @error.setter
    def error(self, error: Exception | None) -> None:
        self.reached.error = error

    def spoken_to(self, revision: str) -> GatewayServer:
        """Return the server as clients of a revision use it.

        That is on the revision itself if the server says that it speaks it: then nothing is converted, and its
        questions and log messages pass as they do without a gateway. Otherwise it is on the newest revision.
        """
        if self.revision == revision or self.description is None:
            return self
        if revision in self.spoken:
            return self.spoken[revision] or self
        if is_modern(revision) or revision not in self.revisions or revision not in self.description.supported:
            return self
        made = replace(self, spoken={}, origin=self, shared=None, describing=None)
        made.describe(replace(self.description, revision=revision))
        self.spoken[revision] = made
        return made

    def refuse(self) -> GatewayServer:
        """Use the server on the newest revision from now on, and return it so."""
        if self.origin is None or self.revision is None:
            return self
        self.origin.spoken[self.revision] = None
        return self.origin

    def follow_rules(self, rules: NameRules) -> None:
        """Use other rules for names."""
        for each in (self, *filter(None, self.spoken.values())):
            each.rules = rules

    def describe(self, description: ServerDescription) -> None:
        """Keep the description of a connection that has just been opened."""
        self.description, self.revision = description, description.revision
        self.is_stateless = is_modern(description.revision)
        self.extensions = passed_extensions(description.capabilities.extensions, description.revision)

    def may_notify(self, extensions: Mapping[str, Any]) -> bool:
        """Return whether a client with these extensions may get notifications of one during its calls."""
        own = self.extensions
        return any(name in own and name not in QUIET_EXTENSIONS for name in extensions)

    def may_have(self, capability: str) -> bool:
        """Return whether the server has declared a capability, or had no way to do so."""
        if self.description is None:
            return True
        known = structs_of(self.description.revision).ServerCapabilities.__struct_fields__
        return capability not in known or getattr(self.description.capabilities, capability) is not None


class ServerStatus(NamedTuple):
    """The state of a server behind a gateway."""

    name: str
    is_up: bool
    """True if the server could be reached the last time."""
    revision: str | None
    """The revision that it speaks with the gateway. None before the first connection."""
    error: Exception | None
    """The reason why it could not be reached."""


class ServerLease:
    """The use of a client of a server. `Leases.lease` makes it. `with` ends it, after `try_enter` or `enter`."""

    client: Client
    """The client, once the lease is entered."""
    _slot: Any = None
    _has_turn: bool = False
    _has_connection: bool = False

    def __init__(
        self,
        leases: Leases,
        server: GatewayServer,
        caller: GatewayCaller,
        questions: ServerQuestions,
        call: ForwardedCall | None,
        *,
        is_own: bool = False,
        number: tuple[ConnectionNumbers, int] | None = None,
    ) -> None:
        self.questions: ServerQuestions = questions
        """The callbacks of the client."""
        self.server: GatewayServer = server
        self._leases = leases
        self._caller = caller
        self._call = call
        self._pooled: ClientLease = questions.lease
        self._number = number
        # Subscriptions, which have no call, are limited apart.
        self._is_own = is_own and call is not None and caller.client is not None

    def refuses_revision(self, error: RemoteError) -> bool:
        """Return whether the server refuses the revision of the client, which it has named as supported."""
        is_refusal = isinstance(error, UnsupportedVersionError) or (self._slot is None and error.code in _REFUSALS)
        return self.server.origin is not None and is_refusal

    def try_enter(self) -> bool:
        """Enter the lease if nothing has to be waited for. Return whether it is entered."""
        call, shares = self._call, self.questions.shares
        if self._is_own or (call is not None and not shares.try_enter(self._caller)):
            return False
        slot = self._leases.pool.try_acquire(self._pooled)
        if slot is None:
            if call is not None:
                shares.leave(self._caller)
            return False
        self._has_turn = call is not None
        self._begin(slot)
        return True

    async def enter(self) -> ServerLease:
        """Enter the lease. Raises the errors of `connect`, and `RequestTimeoutError` if it waits for too long."""
        leases, caller = self._leases, self._caller
        try:
            if self._is_own:
                await leases.shares.enter(caller.client, self._pooled.identity, caller.key)
                self._has_connection = True
            if self._call is not None:
                await self.questions.shares.enter(caller)
                self._has_turn = True
            slot = await leases.pool.acquire(self._pooled, caller.turn)
        except BaseException:
            self._leave()
            raise
        self._begin(slot)
        return self

    def _begin(self, slot: Any) -> None:
        self._slot, self.client = slot, slot.client
        server, description = self.server, self.client.server
        if server.description is not description:
            server.describe(description)
        server.error = None
        if self._call is not None:
            self.questions.add(self._call)

    def keep(self, seconds: float) -> None:
        """Keep the server's process, which alone may know a state or a task, for some seconds after this use."""
        if not is_url(self.server.entry.target):
            self._leases.pool.keep(self._slot, seconds)

    def __enter__(self) -> ServerLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._call is not None:
            self.questions.remove(self._call)
        self._leases.pool.release(self._slot, error)
        self._leave()

    def _leave(self) -> None:
        """Give back what the lease has of its client's shares, and the connection, if this call had it alone."""
        if self._has_turn:
            self.questions.shares.leave(self._caller)
        if self._has_connection:
            self._leases.shares.leave(self._caller.client, self._pooled.identity, self._pooled.target)
        if self._number is not None:
            numbers, number = self._number
            numbers.give_back(number)


def wants_logs(ctx: Context) -> bool:
    """Return whether the client of a request has asked for log messages."""
    return ctx.log_level is not None


_passed: Final[dict[int, tuple[Any, dict[str, Any]]]] = {}
"""The capabilities of clients, by their identity, with what servers get of them."""


def input_capabilities(ctx: Context) -> dict[str, Any]:
    """Return the capabilities that servers get of a client: those for questions, and its extensions, as plain JSON."""
    given = ctx.client_capabilities
    if given.sampling is None and given.elicitation is None and given.roots is None and given.extensions is None:
        return {}
    known = _passed.get(id(given))
    if known is None:
        declared: dict[str, Any] = to_builtins(given)
        made: dict[str, Any] = {name: declared[name] for name in _INPUTS if name in declared}
        if extensions := passed_extensions(declared.get("extensions"), ctx.revision):
            made["extensions"] = extensions
        if len(_passed) >= _MAX_PASSED:
            _passed.clear()
        known = _passed[id(given)] = given, made
    return known[1]


def can_be_asked(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client with these capabilities answers questions."""
    return any(name in capabilities for name in _INPUTS)


class Leases:
    """Finds the client of a server for a caller. `shares` bounds the connections that one client has.

    There are `max_calls` at a time over each connection. Of one that clients share, a client over HTTP has `percent`.
    """

    def __init__(
        self,
        pool: ClientPool,
        credentials: CredentialsOf | None,
        connect: ConnectOptions,
        report: Callable[[Diagnostic], None],
        shares: ConnectionShares,
        max_calls: int,
        percent: int,
    ) -> None:
        self.pool: ClientPool = pool
        self.shares: ConnectionShares = shares
        self._credentials = credentials
        self._connect = connect
        self._report = report
        self._max_calls = max_calls
        self._percent = percent
        self._questions: WeakValueDictionary[str, ServerQuestions] = WeakValueDictionary()
        """The callbacks of each client, while it exists."""
        self._numbers: WeakValueDictionary[str, ConnectionNumbers] = WeakValueDictionary()
        """The numbers of connections that one call uses alone, by the identity without them, while there are calls."""
        self._of_sessions: dict[CallerKey, dict[str, Target]] = {}
        """The connections that were opened for each session of a client: their identities and targets."""

    @property
    def has_credentials(self) -> bool:
        """True if principals have credentials of their own."""
        return self._credentials is not None

    def owner_of(self, caller: GatewayCaller) -> CallerKey:
        """Return the principal whose credentials the server gets; an empty key if all callers have the same."""
        return () if caller.principal is None or self._credentials is None else ("principal", caller.principal.key)

    def lease(
        self,
        server: GatewayServer,
        caller: GatewayCaller,
        capabilities: Mapping[str, Any],
        call: ForwardedCall | None,
        *,
        wants_logs: bool,
    ) -> ServerLease:
        """Return the use of the client of a server for a caller, to be entered.

        `call` gets the questions and log messages of the server. A subscription has no call: it uses the connection of
        the client's calls, of those at the same time the first one's, since a server may know its changes by session.
        """
        is_notified = "extensions" in capabilities and server.may_notify(capabilities["extensions"])
        is_shared = (server.is_stateless or caller is GATEWAY) and not (wants_logs or is_notified)
        server.is_used = server.is_used or caller is not GATEWAY
        if is_shared and server.shared is not None:
            return ServerLease(self, server, caller, server.shared, call)
        owner = self.owner_of(caller)
        parts: list[Any] = [server.name, owner]
        if server.origin is not None:
            parts.append({"revision": server.revision})
            if not server.origin.is_used:
                self._close_unused(server.origin)
        if not is_shared:
            parts += (caller.key, None if server.is_stateless else capabilities)
        needs_all = not (is_shared or caller.is_alone) and (wants_logs or is_notified or can_be_asked(capabilities))
        identity, number = encode_identity(parts), None
        if needs_all:
            number = None if call is None else self._take_number(identity)
            identity = encode_identity([*parts, 0 if number is None else number[1]])
        if not is_shared and caller.has_session:
            self._of_sessions.setdefault(caller.key, {})[identity] = server.entry.target
        is_alone = bool(owner) or (not is_shared and (caller.is_alone or needs_all))
        questions = self._questions_of(identity, server, caller, capabilities, is_shared=is_shared, is_alone=is_alone)
        is_own = bool(owner) or not is_shared
        return ServerLease(self, server, caller, questions, call, is_own=is_own, number=number)

    def _questions_of(
        self,
        identity: str,
        server: GatewayServer,
        caller: GatewayCaller,
        capabilities: Mapping[str, Any],
        *,
        is_shared: bool,
        is_alone: bool,
    ) -> ServerQuestions:
        """Return the callbacks of the client with an identity, with its lease."""
        questions = self._questions.get(identity)
        if questions is None:
            shares = self._share_calls(server, is_alone=is_alone)
            questions = self._questions[identity] = ServerQuestions(_QUESTION_SECONDS, self._report_text, shares)
            questions.passed = PassedExtensions(questions, self._report)
            questions.passes_logs = not is_shared
        lease: ClientLease | None = questions.lease
        # The target and the credentials may have changed.
        if lease is None or lease.target is not server.entry.target or self._credentials is not None:
            options = self._options(server, caller, {} if server.is_stateless else capabilities, questions)
            questions.lease = self.pool.lease(server.entry, identity=identity, **options)
        if is_shared and self._credentials is None:
            server.shared = questions
        return questions

    def _close_unused(self, server: GatewayServer) -> None:
        """Close the process with which the gateway has described a server, if its clients have others."""
        shared, server.shared = server.shared, None
        lease: ClientLease | None = None if shared is None else shared.lease
        if lease is not None and not is_url(server.entry.target):
            self.pool.retire(server.entry.target, lease.identity, only_idle=True)

    def end_session(self, caller: CallerKey) -> None:
        """Close the connections of a session that has ended, each as soon as nothing uses it."""
        for identity, target in self._of_sessions.pop(caller, {}).items():
            self.pool.retire(target, identity)

    def _take_number(self, identity: str) -> tuple[ConnectionNumbers, int]:
        """Return a number that no other call of callers with an identity has, and what takes it back."""
        numbers = self._numbers.get(identity)
        if numbers is None:
            numbers = self._numbers[identity] = ConnectionNumbers()
        return numbers, numbers.take()

    def _share_calls(self, server: GatewayServer, *, is_alone: bool) -> CallShares:
        """Return the shares of the calls over a new connection, which one client may have alone."""
        total, name = self._max_calls, "max_calls"
        if is_url(server.entry.target):
            limits = self._connect.get("limits", DEFAULT_LIMITS)
            total, name = min((total, name), (limits.http_calls_in_flight, "http_calls_in_flight"))
        return CallShares(total, total if is_alone else max(1, total * self._percent // 100), name)

    def _options(
        self, server: GatewayServer, caller: GatewayCaller, capabilities: Mapping[str, Any], questions: ServerQuestions
    ) -> ConnectOptions:
        options: ConnectOptions = {**self._connect}
        if server.origin is not None and server.revision is not None:
            options["revisions"] = [server.revision]
        elicitation: dict[str, Any] | None = capabilities.get("elicitation")
        if "sampling" in capabilities:
            options["sample"] = questions.sample
        if elicitation is not None and (not elicitation or "form" in elicitation):
            options["elicit"] = questions.elicit
        if elicitation is not None and "url" in elicitation:
            options["elicit_url"] = questions.elicit
        if "roots" in capabilities:
            options["roots"] = questions.roots
        if named := {name: capabilities[name] for name in ("sampling", "extensions") if capabilities.get(name)}:
            options["capabilities"] = named
        options["extensions"] = [*options.get("extensions", ()), questions.passed]
        options["on_log"] = questions.on_log
        options.setdefault("on_diagnostic", self._report)
        options.setdefault("name", "typedmcp-gateway")
        options.update({"check_output": False, "check_capabilities": False, "log_level": _LOWEST_LEVEL})
        if self._credentials is not None and is_url(server.entry.target):
            credentials = self._credentials(caller.principal, server.name)
            if credentials is not None:
                options["auth"] = credentials
        return options

    def _report_text(self, text: str) -> None:
        self._report(Diagnostic(DiagnosticKind.DROPPED, text))


def call_options(
    server: GatewayServer, call: ForwardedCall, capabilities: Mapping[str, Any], seconds: float | None = None
) -> dict[str, Any]:
    """Return the options of a call at a server, with the `_meta` of its client.

    `seconds` is the time for the answer; None for the usual one.
    """
    ctx = call.ctx
    options: dict[str, Any] = {}
    if server.is_stateless:
        if capabilities:  # the client itself has none there
            options["capabilities"] = capabilities
        if (level := ctx.log_level) is not None:
            options["log_level"] = level
    given: dict[str, Any] = ctx.meta or {}
    if not given.keys() <= _OF_CLIENTS:
        meta = {name: value for name, value in given.items() if not name.startswith(META_PREFIX)}
        if meta.pop("progressToken", None) is not None:
            options["on_progress"] = call.on_progress
        if meta:
            options["meta"] = meta
    if seconds is not None:
        options.update(timeout=seconds, max_time=None)
    return options


async def follow_level(lease: ServerLease, ctx: Context) -> None:
    """Give a legacy server the log level of a client. One that cannot set it sends what it wants."""
    level = ctx.lowest_log_level
    if level is None or level == lease.questions.level:
        return
    lease.questions.level = level
    if lease.client.server.capabilities.logging is None:
        return
    try:
        await lease.client.set_log_level(level)
    except RemoteError as error:
        ctx.report(f"logging/setLevel: {error}")


_decode_plain = msgspec.json.Decoder(dict[str, Any]).decode


def plain_params(ctx: Context, params: Any, state: str | None) -> dict[str, Any]:
    """Return the parameters of a request as its client wrote them, with the names and answers of `params`.

    `state` is the state that the server gave for the next attempt.
    """
    plain: dict[str, Any] = ctx.raw_params()
    for member in plain.keys() & _OWN_MEMBERS:
        value = getattr(params, member)
        plain[member] = value if value.__class__ is str else to_builtins(value)
    if (cursor := getattr(params, "cursor", None)) is not None:
        plain["cursor"] = cursor  # that of a further page may be the gateway's own
    elif "cursor" in plain:
        del plain["cursor"]
    if "requestState" in plain or "inputResponses" in plain:
        answers: Mapping[str, Any] = params.input_responses or {}
        written = plain.pop("inputResponses", None)
        given: dict[str, Any] = {} if written is None else _decode_plain(written)
        kept = {key: answer for key, answer in given.items() if key in answers}
        plain.pop("requestState", None)
        plain.update({"inputResponses": kept} if kept else {}, **({} if state is None else {"requestState": state}))
    return plain


def encode_identity(parts: list[Any]) -> str:
    """Return a text for the parts of an identity, which differs if they do."""
    return msgspec.json.encode(parts, order="sorted").decode()


async def describe(leases: Leases, server: GatewayServer, caller: GatewayCaller, seconds: float) -> bool:
    """Connect to a server, so that its description and its tools are known. Return whether that worked."""
    try:
        async with asyncio.timeout(seconds):
            with await leases.lease(server, caller, {}, None, wants_logs=False).enter() as lease:
                if server.may_have("tools"):
                    async for tool in lease.client.tools():
                        if len(server.schemas) < MAX_LISTED:
                            server.schemas[tool.name] = tool.input_schema
                return True
    except TimeoutError:
        server.error = Error(f"no connection within {seconds:g} s")
    except RemoteError:
        return True  # it has no tools, or none for the gateway itself
    except (Error, OSError) as error:
        server.error = error
    return False
