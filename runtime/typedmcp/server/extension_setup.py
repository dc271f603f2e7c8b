"""The parts that extensions add to a `ServerConfig`: methods, results, names, and declared capabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from mcpspec.support.handlers import MaybeAwaitable
from typedmcp import dialect
from typedmcp.errors import MethodNotFoundError, MissingCapabilityError, UsageError
from typedmcp.protocol.codec import Backend, MethodTable, OwnMethod
from typedmcp.protocol.extensions import Extension, check_distinct, check_settings
from typedmcp.server.handlers import runs_in_thread

__all__ = [
    "AdaptTool", "HandleWithin", "LegacyForm", "OfferedExtension", "RunTool", "ToolTask", "declare_extensions",
    "methods_on", "offered", "require_extension", "serve_methods",
]  # fmt: skip


class ToolTask(NamedTuple):
    """The wish of a tool to run apart from the request that calls it."""

    tool: str
    """The name of the tool, as its server knows it."""
    is_required: bool
    """True if the tool does not run within a request."""
    may_repeat: bool
    """True if another worker may run the tool again, after the first one has died."""


class RunTool(Protocol):
    """Runs tools with the option `task`, for an extension."""

    def __call__(self, wish: ToolTask, ctx: Any, call: Callable[[Any], MaybeAwaitable[Any]]) -> Awaitable[Any]:
        """Return the result for the client. `ctx` is the `Context` of the call; `call` calls the tool with another."""
        ...


AdaptTool: TypeAlias = Callable[[Any, Any], Any]
"""Takes a tool and the `Context` of `tools/list`. Returns the tool as this client gets it, or None to leave it out."""


class LegacyForm(Protocol):
    """The form that an extension has on legacy revisions where it is part of the protocol itself."""

    @property
    def revisions(self) -> Collection[str]:
        """The revisions that have it."""
        ...

    def capabilities(self, config: Any, *, has_session: bool) -> Mapping[str, Any]:
        """Return the capabilities to declare there. `has_session` is false for clients whose session is not kept."""
        ...

    def extend(self, functions: dict[str, Callable[[Any, Any], Any]], config: Any, handle: HandleWithin | None) -> None:
        """Add functions for its methods to those of a `ServerConfig`, by the names of handlers, and wrap others.

        `handle` runs the middleware of a `Server`.
        """
        ...


class OfferedExtension:
    """An extension as a server offers it. `ServerExtension` is one to which handlers can be added."""

    run_tool: RunTool | None = None
    """Runs the tools that have the option `task`, if the extension can."""
    adapt_tool: AdaptTool | None = None
    """Adapts the tools of a `Server` to the client that lists them, if the extension has to."""
    legacy: LegacyForm | None = None
    """The form of the extension on legacy revisions whose protocol has it, if there are any."""

    def __init__(
        self,
        extension: Extension,
        settings: Mapping[str, Any] | msgspec.Struct | None = None,
        lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
    ) -> None:
        self.extension: Extension = extension
        self.settings: Mapping[str, Any] = check_settings(extension.identifier, settings)
        """The settings that the server declares, as plain JSON."""
        self.lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = lifespan
        self.handlers: dict[str, Callable[[Any, Any], Any]] = {}
        """The handlers of requests and notifications, by method."""
        self.filters: dict[str, tuple[Any, Callable[[Any, Any], AbstractAsyncContextManager[Any]]]] = {}
        """The types of members of the filter of `subscriptions/listen`, and the functions that serve them, by name."""


HandleWithin: TypeAlias = Callable[[Callable[[Any, Any], Any], Any, Any], Any]
"""Handles a request with a function, within the middleware of a server."""


def offered(given: Iterable[object]) -> list[OfferedExtension]:
    """Return the items of the option `extensions`; an `Extension` is one without settings and handlers."""
    made: list[OfferedExtension] = []
    for each in given:
        if isinstance(each, Extension):
            made.append(OfferedExtension(each))
        elif isinstance(each, OfferedExtension):
            made.append(each)
        else:
            raise UsageError(f"extensions must be ServerExtension objects, not {each!r}")
    check_distinct([each.extension for each in made])
    return made


def serve_methods(
    extensions: Sequence[OfferedExtension], codec: Backend, table: MethodTable | None, handle: HandleWithin | None
) -> dict[str, Callable[[Any, Any], Any]]:
    """Return the functions for the methods of extensions, by method. `handle` runs the middleware of a `Server`.

    Raises `UsageError` for extensions that do not fit to the types of the handler.
    """
    functions: dict[str, Callable[[Any, Any], Any]] = {}
    for each in extensions:
        _check_methods(each.extension, codec, table)
        functions.update({name: _serve(each, function, handle) for name, function in each.handlers.items()})
    return functions


def declare_extensions(
    capabilities: dialect.structs.ServerCapabilities, extensions: Sequence[OfferedExtension]
) -> dialect.structs.ServerCapabilities:
    """Return the capabilities with the extensions. A `Server` has declared them in its own object, which may grow."""
    declared = {each.extension.identifier: dict(each.settings) for each in extensions}
    merged = {**(capabilities.extensions or {}), **declared}
    return capabilities if capabilities.extensions == merged else capabilities.__replace__(extensions=merged)


def require_extension(extension: Extension, ctx: Any) -> None:
    """Raise `MissingCapabilityError` for a request whose client has not declared an extension. `ctx` is its `Context`.

    On revisions where the extension cannot be used that is `MethodNotFoundError`.
    """
    if ctx.revision not in extension.revisions:
        raise MethodNotFoundError(ctx.method)
    if not extension.is_declared(ctx.client_capabilities):
        raise MissingCapabilityError(extension.capabilities)


def methods_on(revision: str, extensions: Sequence[OfferedExtension]) -> tuple[OwnMethod, ...]:
    """Return the methods of extensions that clients can call on a revision."""
    return tuple(
        OwnMethod(record, each.extension.names.get(name))
        for each in extensions
        if revision in each.extension.revisions
        for name, record in each.extension.methods.items()
        if record.sender != "server" and name in each.handlers
    )


def _check_methods(extension: Extension, codec: Backend, table: MethodTable | None) -> None:
    """Raise `UsageError` for methods that the option `methods` has, and for models in a server that uses Structs."""
    taken = [] if table is None else [*extension.methods.keys() & table.METHODS.keys()]
    if taken:
        raise UsageError(f"{extension.identifier}: the option `methods` has {min(taken)}, too; leave that option out")
    has_models = any(not issubclass(record.message, msgspec.Struct) for record in extension.methods.values())
    if has_models and codec == "msgspec":
        text = "its methods are on Pydantic models; use `plain.methods` of the package, or codec='pydantic'"
        raise UsageError(f"{extension.identifier}: {text}")


def _serve(
    extension: OfferedExtension, function: Callable[[Any, Any], Any], handle: HandleWithin | None
) -> Callable[[Any, Any], Any]:
    """Return the function for a method of an extension: it rejects clients that have not declared the extension."""

    def in_thread(params: Any, ctx: Any) -> Any:
        return ctx.in_thread(function, params, ctx)

    inner = in_thread if runs_in_thread(function) else function

    @wraps(function, updated=())  # without the mark of functions that run in threads
    def serve(params: Any, ctx: Any) -> Any:
        try:
            _require_method(extension.extension, ctx)
        except (MissingCapabilityError, MethodNotFoundError):
            if ctx.id is None:  # a notification, which has no response
                ctx.tolerate(f"{ctx.method} is ignored: the client has not declared {extension.extension.identifier}")
                return None
            raise
        return inner(params, ctx) if handle is None or ctx.id is None else handle(inner, params, ctx)

    return serve


def _require_method(extension: Extension, ctx: Any) -> None:
    """Raise the error for a method whose extension the client has not declared: it is unknown on legacy revisions."""
    if not ctx.is_modern and not extension.is_declared(ctx.client_capabilities):
        raise MethodNotFoundError(ctx.method)
    require_extension(extension, ctx)
