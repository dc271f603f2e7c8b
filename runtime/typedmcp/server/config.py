"""A handler and its options, as needed to serve it on any number of connections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import msgspec

from mcpspec.support.converters import with_meta
from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.errors import UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.codec import Backend, MethodTable
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.meta import SERVER_INFO
from typedmcp.protocol.option_checks import check_limits, check_list, check_seconds
from typedmcp.revisions.features import DIALECT, SUPPORTED, is_modern
from typedmcp.server.changes import Changes
from typedmcp.server.handlers import capabilities_of, functions_of
from typedmcp.server.lifespan import Lifespan, LifespanManager, Lifespans
from typedmcp.server.state_token import StateSigner

__all__ = ["ServerConfig", "ServerDefaults", "ServerOptions"]

D = dialect.structs

_log = logging.getLogger("typedmcp")


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
    capabilities: D.ServerCapabilities | None
    """The capabilities to declare; by default they follow from the handler's methods."""
    state_signer: StateSigner | None
    """Signs `requestState`; by default with a new key, which no other process has."""
    changes: Changes | None
    """The hub for changes of lists and resources; by default a new one."""
    on_diagnostic: Callable[[Diagnostic], None]
    """Called with each diagnostic; by default diagnostics go to the log `typedmcp`."""
    limits: Limits
    """The limits on what one client can make the server keep or do."""
    grace: float
    """Seconds that open requests may take after the end of the connection; by default 5."""


class ServerDefaults(TypedDict, total=False):
    """The defaults that a `Server` has for its own options, returned by its `__server_config__`."""

    info: D.Implementation
    instructions: str | None
    changes: Changes
    capabilities: D.ServerCapabilities
    lifespans: Lifespans


def _log_diagnostic(diagnostic: Diagnostic) -> None:
    level = logging.WARNING if diagnostic.kind is DiagnosticKind.INTERNAL_ERROR else logging.DEBUG
    _log.log(level, "%s: %s", diagnostic.kind, diagnostic.text, exc_info=diagnostic.error)


class ServerConfig:
    """A handler with its options.

    `handler` is a `Server`, a subclass of `dialect.handlers.ServerStub`, or any object with some of its methods.
    `ServerOptions` describes the options. Raises `UsageError` for options that make no sense.
    """

    def __init__(self, handler: object, **options: Unpack[ServerOptions]) -> None:
        codec, revisions = options.get("codec", "msgspec"), options.get("revisions", SUPPORTED)
        _check_options(handler, options)
        defaults = _defaults_of(handler, codec)
        self.handler = handler
        self.functions: dict[str, Callable[..., Any]] = functions_of(handler, options.get("methods", dialect.methods))
        self.info: D.Implementation = _server_info(handler, defaults, options)
        instructions = options.get("instructions")
        self.instructions: str | None = defaults.get("instructions") if instructions is None else instructions
        lifespans = _with_lifespan(defaults.get("lifespans", dict), handler, options.get("lifespan"))
        self.lifespans: LifespanManager = LifespanManager(lifespans)
        """The lifespans. The connection or application that serves the handler enters them."""
        self.revisions: list[str] = [revision for revision in SUPPORTED if revision in revisions]
        """The revisions to speak, newest first."""
        self.modern_revisions: list[str] = [revision for revision in self.revisions if is_modern(revision)]
        self.legacy_revisions: list[str] = [revision for revision in self.revisions if not is_modern(revision)]
        self.codec: Backend = codec
        self.methods: MethodTable | None = options.get("methods")
        self.capabilities: D.ServerCapabilities = (
            options.get("capabilities") or defaults.get("capabilities") or capabilities_of(self.functions)
        )
        self.state_signer: StateSigner = options.get("state_signer") or StateSigner()
        changes = options.get("changes")
        self.changes: Changes = defaults.get("changes", Changes()) if changes is None else changes
        self.on_diagnostic: Callable[[Diagnostic], None] = options.get("on_diagnostic", _log_diagnostic)
        self.limits: Limits = options.get("limits", DEFAULT_LIMITS)
        self.grace: float = options.get("grace", 5.0)
        self.result_meta: dict[str, Any] = {SERVER_INFO: D.to_builtins(self.info)}
        """The members that every modern result has in its `_meta`."""
        self.encoded_result_meta: msgspec.Raw = msgspec.Raw(msgspec.json.encode(self.result_meta))
        self.meta_copiers: dict[type, Callable[[Any, Any], Any]] = {}
        """For each class of results seen so far, a function that copies a result with another `_meta`."""

    def lifespan_of(self, owner: object) -> Any:
        """Return the value that a lifespan yielded. `owner` is a mounted server, or None for the handler itself."""
        return self.lifespans.states.get(self.handler if owner is None else owner)

    def with_server_info(self, result: Any) -> Any:
        """Add the server's name and version to the `_meta` of a modern result."""
        kind: Any = result.__class__
        copy = self.meta_copiers.get(kind)
        if copy is not None:
            own = result.meta
            return copy(result, {**self.result_meta, **own} if own else self.encoded_result_meta)
        if is_object(result):
            return {"resultType": "complete", **result, "_meta": {**self.result_meta, **result.get("_meta", {})}}
        if not isinstance(result, msgspec.Struct) or "meta" not in result.__struct_fields__:
            return result
        self.meta_copiers[kind] = with_meta(kind)
        return self.with_server_info(result)


def _check_options(handler: object, options: ServerOptions) -> None:
    known, supported = ServerOptions.__annotations__, ", ".join(SUPPORTED)
    if unknown := [name for name in options if name not in known]:
        raise UsageError(f"unknown option {unknown[0]!r}; known: {', '.join(known)}")
    revisions, codec, grace = (
        options.get("revisions", SUPPORTED),
        options.get("codec", "msgspec"),
        options.get("grace", 0),
    )
    check_list("revisions", revisions)
    if unsupported := [revision for revision in revisions if revision not in SUPPORTED]:
        raise UsageError(f"revisions: unknown revision {unsupported[0]!r}; supported: {supported}")
    if not revisions:
        raise UsageError(f"revisions is empty: name at least one of {supported}")
    if codec not in ("msgspec", "pydantic"):
        raise UsageError(f"codec must be 'msgspec' or 'pydantic', not {codec!r}")
    if "methods" in options:
        _check_methods(options["methods"], codec)
    check_seconds("grace", grace)
    if grace < 0:
        raise UsageError(f"grace must be at least 0 seconds, not {grace:g}")
    check_limits(options.get("limits", DEFAULT_LIMITS))
    _check_signer(options.get("state_signer"))
    if isinstance(handler, type):
        raise UsageError(f"{handler.__name__} is a class; pass an instance: {handler.__name__}()")


def _check_methods(methods: MethodTable, codec: Backend) -> None:
    version = getattr(methods, "PROTOCOL_VERSION", None)
    if version != DIALECT:
        raise UsageError(f"methods must be the methods module of a package that extends {DIALECT}, not {version!r}")
    messages = [record.message for record in methods.METHODS.values()]
    is_struct = all(issubclass(message, msgspec.Struct) for message in messages)
    is_plain = all(message.__module__.split(".")[-2:-1] == ["plain"] for message in messages)
    if is_struct != (codec == "msgspec") or not is_plain:
        name = "methods" if codec == "msgspec" else "models_methods"
        raise UsageError(f"methods must be `plain.{name}` of the package, with codec={codec!r}")


def _check_signer(signer: object) -> None:
    if signer is not None and not isinstance(signer, StateSigner):  # it may be a key, which no message should show
        raise UsageError(f"state_signer must be a StateSigner, such as StateSigner(key), not {type(signer).__name__}")


def _defaults_of(handler: object, codec: Backend) -> ServerDefaults:
    """Return the defaults that a `Server` has for its options; none for other handlers."""
    defaults: Callable[[], ServerDefaults] | None = getattr(handler, "__server_config__", None)
    if defaults is None:
        return {}
    if codec != "msgspec":
        raise UsageError("codec is for handlers: a Server converts the types of its functions itself")
    return defaults()


def _with_lifespan(lifespans: Lifespans, handler: object, own: Lifespan | None) -> Lifespans:
    return lifespans if own is None else lambda: {**lifespans(), handler: own}


def _server_info(handler: object, defaults: ServerDefaults, options: ServerOptions) -> D.Implementation:
    """Return the server's description of itself; options override the defaults."""
    info = defaults.get("info") or D.Implementation(name=type(handler).__name__, version="0")
    given = {"name": options.get("name"), "version": options.get("version"), "title": options.get("title")}
    return msgspec.structs.replace(info, **{member: value for member, value in given.items() if value is not None})
