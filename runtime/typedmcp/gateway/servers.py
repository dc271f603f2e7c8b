"""The servers behind a gateway: leases of their clients, and calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw

from mcpspec.support.methods import Method
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.client.client import Client
from typedmcp.client.config import ServerEntry
from typedmcp.client.negotiation import ServerDescription
from typedmcp.client.options import ConnectOptions
from typedmcp.client.pool import ClientPool
from typedmcp.client.result_decoder import ResultProblem, result_decoder
from typedmcp.client.targets import is_url
from typedmcp.errors import DecodeError, Error, ProtocolError, RemoteError
from typedmcp.gateway.callers import GatewayCaller
from typedmcp.gateway.names import NameRules
from typedmcp.gateway.options import CredentialsOf
from typedmcp.gateway.questions import ForwardedCall, ServerQuestions
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.meta import CAPABILITIES, LOG_LEVEL
from typedmcp.protocol.notifications import LogLevel
from typedmcp.revisions.features import is_modern, methods_of, structs_of
from typedmcp.server.context import Context

__all__ = [
    "MAX_LISTED",
    "GatewayServer",
    "LeasedClient",
    "Leases",
    "ServerStatus",
    "describe",
    "input_capabilities",
    "plain_params",
    "send",
]

D = dialect.structs

_META_PREFIX: Final = "io.modelcontextprotocol/"
_INPUTS: Final = ("sampling", "elicitation", "roots")
"""The capabilities of clients that a gateway passes on."""
_LOWEST_LEVEL: Final = "emergency"
"""The level of log messages while no caller asked for any: the protocol has no level for none."""
_PROBLEMS: Final = 100
"""Wrong items of a result that are left out. More of them make the result wrong."""
MAX_LISTED: Final = 10_000
"""Names of one list of a server that are remembered. Further ones are asked for as if they were not listed."""
_QUESTION_SECONDS: Final = 30.0
"""Seconds that a question outside of a call waits for the next call."""


@dataclass(eq=False)
class GatewayServer:
    """One server behind a gateway."""

    name: str
    entry: ServerEntry
    rules: NameRules
    description: ServerDescription | None = None
    """The last description that the server gave of itself. None before its first connection."""
    error: Exception | None = None
    """Why the server could not be reached the last time. None if it could."""
    listed: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The own names and URIs that the server has listed, by the member of the list."""
    schemas: dict[str, Any] = field(default_factory=dict[str, Any])
    """The input schemas of the tools that it has listed, by their own names."""

    @property
    def is_stateless(self) -> bool:
        """True if all callers with the same credentials can share one connection."""
        return self.description is not None and is_modern(self.description.revision)

    def has_revision(self, revision: str) -> bool:
        """Return whether the server speaks a revision with the gateway."""
        return self.description is not None and self.description.revision == revision

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


class LeasedClient(NamedTuple):
    """A client of a server, with its callbacks."""

    client: Client
    questions: ServerQuestions


def input_capabilities(ctx: Context) -> dict[str, Any]:
    """Return the capabilities of the client for questions, as plain JSON."""
    given = ctx.client_capabilities
    if given.sampling is None and given.elicitation is None and given.roots is None:
        return {}
    declared: dict[str, Any] = to_builtins(ctx.client_capabilities)
    return {name: declared[name] for name in _INPUTS if name in declared}


class Leases:
    """Finds the client of a server for a caller."""

    def __init__(
        self,
        pool: ClientPool,
        credentials: CredentialsOf | None,
        connect: ConnectOptions,
        report: Callable[[Diagnostic], None],
    ) -> None:
        self._pool = pool
        self._credentials = credentials
        self._connect = connect
        self._report = report
        self._questions: WeakValueDictionary[str, ServerQuestions] = WeakValueDictionary()
        """The callbacks of each client, while it exists."""
        self._used: set[str] = set()
        """The identities that one call uses alone."""

    def owner_of(self, caller: GatewayCaller) -> str:
        """Return the principal whose credentials the server gets; an empty text if all callers have the same."""
        return "" if caller.principal is None or self._credentials is None else caller.principal.key

    @asynccontextmanager
    async def lease(
        self,
        server: GatewayServer,
        caller: GatewayCaller,
        capabilities: Mapping[str, Any],
        call: ForwardedCall | None,
        *,
        wants_logs: bool,
    ) -> AsyncGenerator[LeasedClient]:
        """Yield the client of a server for a caller. `call` gets the questions and log messages of the server."""
        is_shared = server.is_stateless and not wants_logs
        who = self.owner_of(caller)
        if not is_shared:
            declared = "" if server.is_stateless else msgspec.json.encode(capabilities, order="sorted").decode()
            who = f"{who} {caller.key} {declared}"
        needs_all = not (is_shared or caller.is_alone) and bool(capabilities or wants_logs)
        identity = f"{server.name} {who}"
        if needs_all:
            identity = next(each for n in range(len(self._used) + 1) if (each := f"{identity} {n}") not in self._used)
            self._used.add(identity)
        questions = self._questions.get(identity)
        if questions is None:
            questions = self._questions[identity] = ServerQuestions(_QUESTION_SECONDS, self._report_text)
        options: ConnectOptions | None = questions.options
        if options is None or self._credentials is not None:  # which may have changed
            options = self._options(server, caller, {} if server.is_stateless else capabilities, questions)
            questions.options = options
        try:
            async with self._pool.lease(server.entry, identity=identity, caller=caller.key, **options) as client:
                server.description, server.error = client.server, None
                if call is not None:
                    questions.add(call)
                try:
                    yield LeasedClient(client, questions)
                finally:
                    if call is not None:
                        questions.remove(call)
        finally:
            self._used.discard(identity)

    def _options(
        self, server: GatewayServer, caller: GatewayCaller, capabilities: Mapping[str, Any], questions: ServerQuestions
    ) -> ConnectOptions:
        options: ConnectOptions = {**self._connect}
        elicitation: dict[str, Any] | None = capabilities.get("elicitation")
        if "sampling" in capabilities:
            options["sample"] = questions.sample
        if elicitation is not None and (not elicitation or "form" in elicitation):
            options["elicit"] = questions.elicit
        if elicitation is not None and "url" in elicitation:
            options["elicit_url"] = questions.elicit
        if "roots" in capabilities:
            options["roots"] = questions.roots
        if sampling := capabilities.get("sampling"):
            options["capabilities"] = {"sampling": sampling}
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


async def send(
    leased: LeasedClient,
    record: Method[Any, Any],
    params: Any,
    call: ForwardedCall,
    state: str | None,
    seconds: float | None,
    *,
    is_plain: bool,
) -> Any:
    """Make a call at a server, and return its result: typed, or plain JSON if both sides speak the same revision.

    Members that the schema does not know survive in plain JSON. `state` is the state that the server gave for the next
    attempt. `seconds` is the time for the answer; None for the usual one.
    """
    client, questions = leased
    ctx = call.ctx
    level = ctx.metadata.log_level
    given: dict[str, Any] = ctx.meta or {}
    meta = {name: value for name, value in given.items() if not name.startswith(_META_PREFIX)}
    has_progress = meta.pop("progressToken", None) is not None
    if is_modern(client.revision):
        meta[CAPABILITIES] = input_capabilities(ctx)
        if level is not None:
            meta[LOG_LEVEL] = level
    elif level is not None and questions.level != level:
        questions.level = level
        await _set_level(client, level, ctx)
    options: dict[str, Any] = {"meta": meta, "on_progress": call.on_progress if has_progress else None}
    if seconds is not None:
        options.update(timeout=seconds, max_time=None)
    if client.revision != ctx.revision or not is_plain or not ctx.raw:  # the server itself reads a list without bytes
        if hasattr(params, "request_state"):
            params = msgspec.structs.replace(params, request_state=state)
        return await client.send(record, params, rounds=0, **options)
    plain = plain_params(ctx.raw, params, state)
    value = await client.send(record.name, plain, **options)
    return _checked(client, record.name, value, ctx)


async def _set_level(client: Client, level: str, ctx: Context) -> None:
    """Set the log level of a legacy server. One that cannot do so sends what it wants."""
    try:
        await client.set_log_level(cast("LogLevel", level))
    except RemoteError as error:
        ctx.report(f"logging/setLevel: {error}")


class _ForwardedMessage(msgspec.Struct):
    params: dict[str, Any] = {}


_decode_message = msgspec.json.Decoder(_ForwardedMessage).decode


def plain_params(raw: bytes, params: Any, state: str | None) -> dict[str, Any]:
    """Return the parameters of a message as its client wrote them, with the names and answers of `params`."""
    plain = _decode_message(raw).params
    plain.pop("_meta", None)
    for member in ("name", "uri", "cursor", "ref"):
        if member in plain:
            plain[member] = to_builtins(getattr(params, member))
    if plain.get("cursor", "") is None:
        del plain["cursor"]
    if "requestState" in plain or "inputResponses" in plain:
        answers: Mapping[str, Any] = params.input_responses or {}
        given: dict[str, Any] = plain.pop("inputResponses", {})
        kept = {key: answer for key, answer in given.items() if key in answers}
        plain.pop("requestState", None)
        plain.update({"inputResponses": kept} if kept else {}, **({} if state is None else {"requestState": state}))
    return plain


def _checked(client: Client, method: str, value: Any, ctx: Context) -> Any:
    """Return a result as it is if it fits its method, else what can be understood of it. Raises `ProtocolError`."""
    try:
        from_builtins(value, methods_of(client.revision).METHODS[method].result)
    except DecodeError:
        problems: list[ResultProblem] = []
        try:
            result = result_decoder(method, client.revision)(Raw(msgspec.json.encode(value)), problems, _PROBLEMS)
        except DecodeError as error:
            raise ProtocolError(f"result of {method}: {error}") from error
        for problem in problems:
            ctx.report(f"the server sent a wrong result: {problem}")
        return result
    if value.get("resultType") == "input_required":
        return D.from_builtins(value, D.InputRequiredResult)
    return value


async def describe(leases: Leases, server: GatewayServer, caller: GatewayCaller, seconds: float) -> bool:
    """Connect to a server, so that its description and its tools are known. Return whether that worked."""
    try:
        async with asyncio.timeout(seconds), leases.lease(server, caller, {}, None, wants_logs=False) as leased:
            if server.may_have("tools"):
                async for tool in leased.client.tools():
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
