"""A handler and its options, as needed to serve it on any number of connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, ForwardRef, Literal, TypeAlias, TypedDict, Unpack

import msgspec

from mcpspec.features import NAME_PARAMS
from mcpspec.support.converters import DroppedFields, with_meta
from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.errors import UsageError
from typedmcp.frames import FrameSink, OnFrame, check_frames, open_sink
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.observers import Instrumentation, check_telemetry, default_instrumentation
from typedmcp.protocol.budgets import Budgets
from typedmcp.protocol.codec import Backend, Codec, MethodTable, OwnMethod, codec_for
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind, deliver_diagnostic
from typedmcp.protocol.framing import Frame, RequestId
from typedmcp.protocol.meta import SERVER_INFO
from typedmcp.protocol.option_checks import (
    check_extensions,
    check_flag,
    check_grace,
    check_limits,
    check_list,
    check_seconds,
    option_names,
    unknown_option,
)
from typedmcp.protocol.text import log_failure
from typedmcp.revisions.features import DIALECT, SUPPORTED, is_modern
from typedmcp.server.changes import Changes
from typedmcp.server.handlers import (
    capabilities_of,
    empty_lists,
    functions_of,
    guard_completion,
    runs_in_thread,
    subscription_check_of,
)
from typedmcp.server.lifespan import Lifespan, LifespanManager, Lifespans
from typedmcp.server.service import Service, WorkerLink
from typedmcp.server.state_token import StateSigner, UsedStates
from typedmcp.transports.concurrency import name_function

if TYPE_CHECKING:
    from typedmcp.protocol.extensions import Extension, ExtensionResult
    from typedmcp.server.extension_setup import OfferedExtension
else:  # for `inspect.signature`
    Extension = ForwardRef("Extension", module="typedmcp.protocol.extensions")
    OfferedExtension = ForwardRef("OfferedExtension", module="typedmcp.server.extension_setup")

__all__ = ["CANCELLATION_SHARE", "ServerConfig", "ServerDefaults", "ServerOptions", "TaskSupport", "as_config"]

D = dialect.structs

_HTTP_GRACE = 5.0
_CONNECTION_GRACE = 1.0
"""The specification asks a server to exit promptly at the end of its input. Clients kill it after two seconds."""
CANCELLATION_SHARE: Final = 0.25
"""The share of the grace period that requests get to end once they are cancelled."""


TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
"""The support of a tool for tasks: it runs as a task never, on demand, or only so."""


class ServerOptions(TypedDict, total=False):
    """The options of `ServerConfig`, which `serve`, `serve_async`, `asgi` and `Server.run` take as well."""

    name: str | None
    """The server's name for clients; by default the name of the handler's class."""
    version: str | None
    """The server's version for clients; by default "0"."""
    title: str | None
    """The server's name for people."""
    instructions: str | None
    """Instructions for the client's model: the purpose of the server, and how to use it."""
    lifespan: Lifespan | None
    """A function that takes the handler and returns an async context manager. It is entered before the first request
    and left after the last one. Handlers get the value that it yields as `ctx.lifespan`."""
    revisions: Sequence[str]
    """The protocol revisions to speak; by default all that are supported."""
    methods: MethodTable
    """The `methods` module of a package that `mcpspec-codegen compile` has made, whose types the handler uses. With the
    codec "pydantic" it is `models_methods`. By default the handler has the methods of the dialect."""
    codec: Backend
    """The library whose types the handler takes and returns: "msgspec" (the default) or "pydantic"."""
    extensions: Sequence[Extension | OfferedExtension]
    """The extensions of the protocol that the server offers; none by default. A `Server` takes them itself."""
    capabilities: D.ServerCapabilities | None
    """The capabilities to declare; by default they follow from the handler's methods."""
    state_signer: StateSigner | None
    """Signs `requestState`; by default with a new key, which no other process has."""
    input_timeout: float | None
    """Seconds that a client of a legacy revision may take to answer a request of the server; by default 600. None waits
    for ever."""
    changes: Changes | None
    """The hub for changes of lists and resources; by default a new one."""
    on_diagnostic: Callable[[Diagnostic], None]
    """Called with each diagnostic; by default diagnostics go to the log `typedmcp`."""
    limits: Limits
    """The limits on what one client can make the server keep or do."""
    grace: float
    """Seconds that open requests may take after the end of the connection, before they are cancelled; by default 1 on
    connections of lines, such as standard input and output, and 5 over HTTP."""
    strict: bool
    """Reject messages that break the specification harmlessly. By default they are understood and reported."""
    record: FrameSink | str | PathLike[str] | None
    """Gets all messages as they are on the wire: a sink, or a file that `typedmcp_cli` writes; none by default."""
    on_frame: OnFrame | None
    """Called with the sender of each message, "client" or "server", and its bytes as they are on the wire, in the event
    loop."""
    telemetry: Instrumentation | None
    """The telemetry of requests, such as `typedmcp_otel.Telemetry()`; by default that of
    `typedmcp_otel.instrument()`, if it was called. None for none."""


class ServerDefaults(TypedDict, total=False):
    """The defaults that a `Server` has for its own options, returned by its `__server_config__`."""

    info: D.Implementation
    instructions: str | None
    changes: Changes
    capabilities: D.ServerCapabilities
    lifespans: Lifespans
    input_schema_of: Callable[[str], Mapping[str, Any] | None]
    task_support_of: Callable[[str], TaskSupport]
    extensions: Sequence[Extension | OfferedExtension]
    handle: Callable[..., Any]
    call_tool: Callable[..., Any]


_MISTAKES: Final = frozenset({
    DiagnosticKind.MALFORMED, DiagnosticKind.UNEXPECTED_MESSAGE, DiagnosticKind.UNEXPECTED_RESPONSE,
    DiagnosticKind.REJECTED_NOTIFICATION, DiagnosticKind.DUPLICATE_ID,
})  # fmt: skip
_MAX_MISTAKES: Final = 64
"""Mistakes that a process logs as warnings, so that no client can fill the log."""


class DiagnosticLog:
    """Logs diagnostics: failures as errors, mistakes of clients once each as warnings, all others for debugging."""

    def __init__(self) -> None:
        self._mistakes: set[str] = set()

    def __call__(self, diagnostic: Diagnostic) -> None:
        text = f"{diagnostic.kind}: {diagnostic.text}"
        if diagnostic.kind in _MISTAKES:
            self.add_mistake(text)
        else:
            is_failure = diagnostic.kind is DiagnosticKind.INTERNAL_ERROR
            log_failure(logging.ERROR if is_failure else logging.DEBUG, text, diagnostic.error)

    def add_mistake(self, text: str) -> None:
        """Log a mistake of a client: once, and while there are few."""
        is_new = text not in self._mistakes and len(self._mistakes) < _MAX_MISTAKES
        if is_new:
            self._mistakes.add(text)
        log_failure(logging.WARNING if is_new else logging.DEBUG, text, None)


class ServerConfig:
    """A handler with its options.

    `handler` is a `Server`, a subclass of `dialect.handlers.ServerStub`, or any object with some of its methods.
    `ServerOptions` describes the options. Raises `UsageError` for options that make no sense.
    """

    def __init__(self, handler: object, **options: Unpack[ServerOptions]) -> None:
        codec, revisions = options.get("codec", "msgspec"), options.get("revisions", SUPPORTED)
        _check_options(handler, options)
        self.service: Service | None = handler if isinstance(handler, Service) else None
        """The handler, if it is a service."""
        self._extensions: Sequence[OfferedExtension] = ()
        defaults = _defaults_of(handler, codec)
        self.handler = handler
        self.functions: dict[str, Callable[..., Any]] = functions_of(handler, options.get("methods", dialect.methods))
        own = {name: options.get(name) for name in ("name", "version", "title")}
        self._own_info: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        self.describe(defaults.get("info") or D.Implementation(name=type(handler).__name__, version="0"))
        self.authorize_subscriptions: Callable[[Any, Any], Any] | None = subscription_check_of(handler)
        """The method of the handler that decides what a client may subscribe to, if it has one."""
        instructions = options.get("instructions")
        self._instructions = defaults.get("instructions") if instructions is None else instructions
        lifespans = _with_lifespan(defaults.get("lifespans", dict), handler, options.get("lifespan"))
        self.lifespans: LifespanManager = LifespanManager(self._with_extensions(lifespans))
        """The lifespans. The connection or application that serves the handler enters them."""
        self.revisions: list[str] = [revision for revision in SUPPORTED if revision in revisions]
        """The revisions to speak, newest first."""
        self.modern_revisions: list[str] = [revision for revision in self.revisions if is_modern(revision)]
        self.legacy_revisions: list[str] = [revision for revision in self.revisions if not is_modern(revision)]
        self.codec: Backend = codec
        self.methods: MethodTable | None = options.get("methods")
        self._capabilities = _declared_capabilities(self.functions, defaults, options)
        self._has_own_capabilities = self.service is None or options.get("capabilities") is not None
        self.call_tool: Callable[..., Any] | None = defaults.get("call_tool") or self.functions.get("call_tool")
        """Calls a tool, without the middleware of a `Server`."""
        if "complete" in self.functions:
            self.functions["complete"] = guard_completion(self.functions["complete"], lambda: self.capabilities)
        self.empty_lists: dict[str, Callable[..., Any]] = empty_lists(
            self.functions, self.capabilities, self.codec, self.methods
        )
        """Functions for the lists that the capabilities promise and the handler lacks."""
        self.state_signer: StateSigner = options.get("state_signer") or StateSigner()
        self.used_states: UsedStates = UsedStates()
        """The states for single use that were used on connections of lines. Over HTTP the store has them."""
        self.extension_results: Mapping[tuple[str, str], ExtensionResult] = {}
        """The results that extensions add, by method and `resultType`."""
        self.extension_methods: Mapping[str, tuple[OwnMethod, ...]] = {}
        """The methods of extensions that clients can call, by revision."""
        self._name_params: Mapping[str, str] = NAME_PARAMS
        self.task_support_of: Callable[[str], TaskSupport] | None = defaults.get("task_support_of")
        """Returns whether a tool runs as a task. None for handlers other than a `Server`."""
        if given := [*defaults.get("extensions", ()), *options.get("extensions", ())]:
            if "extensions" in options and "handle" in defaults:
                raise UsageError("extensions: a Server has its own; pass them to Server(extensions=[…])")
            self._add_extensions(given, defaults)
        self.input_timeout: float | None = options.get("input_timeout", 600.0)
        changes = options.get("changes")
        self.changes: Changes = defaults.get("changes", Changes()) if changes is None else changes
        self.own_changes: Changes = defaults.get("changes", self.changes)
        """The hub that the handler publishes its changes to, even if clients listen to another one."""
        self.input_schema_of: Callable[[str], Mapping[str, Any] | None] | None = defaults.get("input_schema_of")
        """Returns the input schema of a tool: empty if there is no such tool, None if only the list of tools can tell.
        None for handlers that know their tools by their list alone."""
        self.log: DiagnosticLog = DiagnosticLog()
        self.on_diagnostic: Callable[[Diagnostic], None] = options.get("on_diagnostic", self.log)
        self.limits: Limits = options.get("limits", DEFAULT_LIMITS)
        self.budgets: Budgets = Budgets(self.limits, self._report_limit)
        self.grace: float = options.get("grace", _HTTP_GRACE)
        """Seconds that open requests may take over HTTP when the server ends."""
        self.connection_grace: float = options.get("grace", _CONNECTION_GRACE)
        """Seconds that open requests may take when a connection of lines ends."""
        self.strict: bool = options.get("strict", False)
        self.record: FrameSink | None = open_sink(options.get("record"), self.limits, options.get("on_frame"))
        """Gets the messages of all connections as they are on the wire."""
        self.telemetry: Instrumentation | None = options.get("telemetry", default_instrumentation())
        """Observes the requests of all connections, if there is one."""
        self.meta_copiers: dict[type, Callable[[Any, Any], Any]] = {}
        """For each class of results seen so far, a function that copies a result with another `_meta`."""
        self.workers: WorkerLink | None = None
        """The other workers that serve the same clients. The application with a shared store sets it."""

    # What a service may change while it is served

    def describe(self, info: D.Implementation) -> None:
        """Describe the server as `info` to clients from now on. Options that were given take precedence."""
        self.info: D.Implementation = info.__replace__(**self._own_info)
        self.result_meta: dict[str, Any] = {SERVER_INFO: D.to_builtins(self.info)}
        """The members that every modern result has in its `_meta`."""
        self.encoded_result_meta: msgspec.Raw = msgspec.Raw(msgspec.json.encode(self.result_meta))
        encoded_meta = bytes(self.encoded_result_meta).replace(b"%", b"%%")
        self.response_format: bytes = b'{"jsonrpc":"2.0","id":%d,"result":%.*b,"_meta":' + encoded_meta + b"}}"
        """The format of a modern response, for its id and its result without the closing brace."""

    @property
    def instructions(self) -> str | None:
        """The instructions for the client's model."""
        own = self._instructions
        return own if own is not None or self.service is None else self.service.instructions

    @property
    def capabilities(self) -> D.ServerCapabilities:
        """The capabilities to declare."""
        if self._has_own_capabilities or self.service is None:
            return self._capabilities
        if not (extensions := self.extensions):
            return self.service.capabilities
        from typedmcp.server.extension_setup import declare_extensions  # few servers have extensions

        return declare_extensions(self.service.capabilities, extensions)

    @property
    def extensions(self) -> Sequence[OfferedExtension]:
        """The extensions that the server offers."""
        return self._extensions if self.service is None else (*self._extensions, *self.service.extensions)

    @property
    def name_params(self) -> Mapping[str, str]:
        """The parameters that the header `Mcp-Name` repeats, by method."""
        return self._name_params if self.service is None else {**self._name_params, **self.service.header_params}

    @cached_property
    def threaded(self) -> frozenset[str]:
        """The functions that run in threads, by their names in `functions`."""
        return frozenset(name for name, function in self.functions.items() if runs_in_thread(function))

    def _add_extensions(self, given: Sequence[object], defaults: ServerDefaults) -> None:
        from typedmcp.protocol.extensions import merged_names  # few servers have extensions
        from typedmcp.server.extension_setup import declare_extensions, methods_on, offered, serve_methods

        self._extensions = extensions = offered(given)
        self.functions.update(serve_methods(extensions, self.codec, self.methods, defaults.get("handle")))
        self.extension_results = {key: kind for each in extensions for key, kind in each.extension.results.items()}
        self.extension_methods = {revision: methods_on(revision, extensions) for revision in self.revisions}
        self._name_params = merged_names(each.extension for each in extensions)
        for each in extensions:
            if each.legacy is not None and any(revision in each.legacy.revisions for revision in self.revisions):
                each.legacy.extend(self.functions, self, defaults.get("handle"))
        self._capabilities = declare_extensions(self._capabilities, extensions)

    def _with_extensions(self, lifespans: Lifespans) -> Lifespans:
        """Return the lifespans of the server, and then those of its extensions. A service comes first."""

        def extended() -> Mapping[object, Lifespan]:
            service = self.service
            made: dict[object, Lifespan] = {} if service is None else {Service: lambda _: service.open(self)}
            made.update(lifespans())
            for each in self._extensions:
                if (enter := each.lifespan) is not None:
                    made[each] = lambda _, enter=enter: enter(self)  # type: ignore[misc]  # the default is no parameter
            return made

        return extended

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`. Errors that it raises are logged."""
        deliver_diagnostic(diagnostic, self.on_diagnostic)

    def report_dropped(self, dropped: DroppedFields, method: str, revision: str, id: RequestId | None = None) -> None:
        """Report the parts of a message that the client's revision does not have, if there are any."""
        if dropped:
            text = f"{', '.join(dropped)}: not in {revision}"
            self.report(Diagnostic(DiagnosticKind.DROPPED, text, method, id, list(dropped)))

    def codec_for(self, revision: str) -> Codec:
        """Return the codec for clients that speak a revision."""
        table: Any = self.methods  # a module, which mypy does not know to be hashable
        return codec_for(revision, self.codec, table, self.extension_methods.get(revision, ()))

    def has_method(self, frame: Frame, revisions: Iterable[str]) -> bool:
        """Return whether one of these revisions has the method of a message."""
        return any(frame.method in self.codec_for(revision).methods for revision in revisions)

    def _report_limit(self, name: str, text: str) -> None:
        self.report(Diagnostic(DiagnosticKind.LIMIT_REACHED, f"{name}: {text}"))

    def report_unended(self, tasks: Iterable[asyncio.Task[Any]], seconds: float) -> None:
        """Report the functions that go on although they were cancelled this number of seconds ago."""
        for task in tasks:
            text = f"{name_function(task)} did not end within {seconds:g} s of its cancellation (grace)"
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"{text}: the server ends without it"))

    def lifespan_of(self, owner: object) -> Any:
        """Return the value that a lifespan yielded. `owner` is a mounted server, or None for the handler itself."""
        return self.lifespans.states.get(self.handler if owner is None else owner)

    def with_server_info(self, result: Any) -> Any:
        """Add the server's name and version to the `_meta` of a modern result."""
        kind: Any = result.__class__
        if (copy := self.meta_copiers.get(kind)) is not None:
            own = result.meta
            return copy(result, {**self.result_meta, **own} if own else self.encoded_result_meta)
        if is_object(result):
            return {"resultType": "complete", **result, "_meta": {**self.result_meta, **result.get("_meta", {})}}
        if not isinstance(result, msgspec.Struct) or "meta" not in result.__struct_fields__:
            return result
        self.meta_copiers[kind] = with_meta(kind)
        return self.with_server_info(result)


def as_config(handler: object, options: ServerOptions) -> ServerConfig:
    """Return the configuration of a handler with options, or a `ServerConfig`, which takes none, as it is."""
    if not isinstance(handler, ServerConfig):
        return ServerConfig(handler, **options)
    if options:
        raise TypeError(f"a ServerConfig has its options already; remove {', '.join(options)}")
    return handler


def _check_options(handler: object, options: ServerOptions) -> None:
    known, supported = option_names(ServerOptions), ", ".join(SUPPORTED)
    if unknown := [name for name in options if name not in known]:
        raise UsageError(unknown_option(unknown[0], known, " of ServerConfig"))
    revisions, codec = options.get("revisions", SUPPORTED), options.get("codec", "msgspec")
    grace = options.get("grace", 0)
    check_list("revisions", revisions)
    if unsupported := [revision for revision in revisions if revision not in SUPPORTED]:
        raise UsageError(f"revisions: unknown revision {unsupported[0]!r}; supported: {supported}")
    if not revisions:
        raise UsageError(f"revisions is empty: name at least one of {supported}")
    if codec not in ("msgspec", "pydantic"):
        raise UsageError(f"codec must be 'msgspec' or 'pydantic', not {codec!r}")
    if "methods" in options:
        _check_methods(options["methods"], codec)
    check_grace(grace)
    if (input_timeout := options.get("input_timeout")) is not None:
        check_seconds("input_timeout", input_timeout, is_positive=True)
    check_limits(options.get("limits", DEFAULT_LIMITS))
    check_flag("strict", options.get("strict", False))
    # What is no signer may be a key, which no message should show.
    if not isinstance(signer := options.get("state_signer"), StateSigner | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"state_signer must be a StateSigner, such as StateSigner(key), not {type(signer).__name__}")
    check_telemetry(options.get("telemetry"))
    check_frames(options.get("record"), options.get("on_frame"))
    if isinstance(handler, type):
        raise UsageError(f"{handler.__name__} is a class; pass an instance: {handler.__name__}()")


def _check_methods(methods: MethodTable, codec: Backend) -> None:
    version = getattr(methods, "PROTOCOL_VERSION", None)
    if version != DIALECT:
        raise UsageError(f"methods must be the methods module of a package that extends {DIALECT}, not {version!r}")
    messages = [record.message for record in methods.METHODS.values()]
    is_struct = all(issubclass(message, msgspec.Struct) for message in messages)
    if is_struct != (codec == "msgspec"):
        name = "methods" if codec == "msgspec" else "models_methods"
        raise UsageError(f"methods must be `{name}` of the package, with codec={codec!r}")


def _defaults_of(handler: object, codec: Backend) -> ServerDefaults:
    """Return the defaults that a `Server` has for its options; none for other handlers."""
    defaults: Callable[[], ServerDefaults] | None = getattr(handler, "__server_config__", None)
    if defaults is None and not isinstance(handler, Service):
        return {}
    if codec != "msgspec":
        raise UsageError("codec is for handlers: a Server converts the types of its functions itself")
    if isinstance(handler, Service):
        return {"info": handler.info, "changes": handler.changes, "input_schema_of": handler.input_schema_of}
    return {} if defaults is None else defaults()


def _with_lifespan(lifespans: Lifespans, handler: object, own: Lifespan | None) -> Lifespans:
    return lifespans if own is None else lambda: {**lifespans(), handler: own}


def _declared_capabilities(
    functions: Mapping[str, object], defaults: ServerDefaults, options: ServerOptions
) -> D.ServerCapabilities:
    """Return the capabilities to declare. Raises `UsageError` for an extension whose identifier has no prefix."""
    declared = options.get("capabilities") or defaults.get("capabilities") or capabilities_of(functions)
    check_extensions(declared.extensions or ())
    return declared
