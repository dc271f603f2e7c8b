"""Handler objects: the methods that they implement, and the capabilities that follow from those.

A handler is a subclass of the dialect's `ServerStub`, or any object with some of its methods, async or plain. A method
that is only inherited from the stub does not count as implemented.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from typedmcp import dialect
from typedmcp.errors import MethodNotFoundError, UsageError
from typedmcp.protocol.codec import Backend, MethodTable
from typedmcp.revisions.capabilities import capability_of
from typedmcp.transports import missing_members

__all__ = [
    "capabilities_of", "empty_lists", "functions_of", "guard_completion", "in_thread", "runs_in_thread",
    "subscription_check_of",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

_IN_THREAD = "__typedmcp_in_thread__"


def in_thread(function: F) -> F:
    """Mark a plain handler method that blocks, to run it in a thread. Other methods run in the event loop."""
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"in_thread: {function.__qualname__} is async; mark plain methods only")
    setattr(function, _IN_THREAD, True)
    return function


def runs_in_thread(function: Callable[..., Any]) -> bool:
    """Return whether a handler method is marked with `in_thread`."""
    return bool(getattr(function, _IN_THREAD, False))


def functions_of(handler: object, table: MethodTable = dialect.methods) -> dict[str, Callable[[Any, Any], Any]]:
    """Return the methods that a handler implements, by name: those of the dialect, or of a table that extends it.

    Raises `UsageError` for an object that implements no method.
    """
    names = {method.handler for method in table.METHODS.values() if method.sender != "server"}
    functions: dict[str, Callable[[Any, Any], Any]] = {}
    for name in sorted(names | {"fallback"}):
        function = getattr(handler, name, None)
        if callable(function) and not _is_stub(handler, name):
            functions[name] = function
    if not functions:
        missing = missing_members(handler)
        hint = "" if {"read", "write"} & {*missing} else f"; to be a transport it lacks: {', '.join(missing)}"
        raise UsageError(f"{type(handler).__name__} implements none of: {', '.join(sorted(names))}, fallback{hint}")
    return functions


def subscription_check_of(handler: object) -> Callable[[Any, Any], Any] | None:
    """Return the method of a handler that decides what a client may subscribe to, or None if it has none.

    `authorize_subscriptions(params, ctx)` gets the parameters of `subscriptions/listen`, on legacy revisions with the
    URI of `resources/subscribe`. It returns the `SubscriptionFilter` to grant, or raises `RemoteError`.
    """
    check = getattr(handler, "authorize_subscriptions", None)
    return check if callable(check) else None


def _is_stub(handler: object, name: str) -> bool:
    defined = inspect.getattr_static(type(handler), name, None)
    module = getattr(defined, "__module__", None) or ""  # it is None in code that names no module
    return module.endswith("handlers") and getattr(defined, "__qualname__", "") == f"ServerStub.{name}"


_IMPLIED: Mapping[str, dict[str, bool]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
}
"""The members of the capabilities that follow from implemented methods."""


def capabilities_of(functions: Mapping[str, object]) -> dialect.structs.ServerCapabilities:
    """Return the capabilities that follow from the implemented methods."""
    methods = dialect.methods.CLIENT_REQUESTS.values()
    names = {capability_of(method.name) for method in methods if method.handler in functions}
    implied = {name: members for name, members in _IMPLIED.items() if name in names}
    return dialect.structs.from_builtins({"logging": {}, **implied}, dialect.structs.ServerCapabilities)


_LISTS: Final[Mapping[str, str]] = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tools/list": "tools",
}
"""The member of the result of each list."""


def empty_lists(
    functions: Mapping[str, object],
    capabilities: dialect.structs.ServerCapabilities,
    backend: Backend,
    table: MethodTable | None = None,
) -> dict[str, Callable[[Any, Any], Any]]:
    """Return functions for the lists that the capabilities promise and the handler lacks: those are empty.

    https://modelcontextprotocol.io/specification/2026-07-28/server/tools#capabilities
    """
    if "fallback" in functions:
        return {}
    requests = (table or (dialect.methods if backend == "msgspec" else dialect.models_methods)).CLIENT_REQUESTS
    return {
        requests[method].handler: _empty_list(requests[method].result, member, backend)
        for method, member in _LISTS.items()
        if getattr(capabilities, capability_of(method)) is not None and requests[method].handler not in functions
    }


def _empty_list(kind: Any, member: str, backend: Backend) -> Callable[[Any, Any], Any]:
    plain: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", member: []}
    types: Any = dialect.structs if backend == "msgspec" else dialect.models
    return lambda _params, _ctx: types.from_builtins(plain, kind)


def guard_completion(
    complete: Callable[[Any, Any], Any], capabilities: Callable[[], dialect.structs.ServerCapabilities]
) -> Callable[[Any, Any], Any]:
    """Wrap a handler's `complete`, so that the method is unknown unless the capabilities promise completions.

    https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#error-handling
    """

    @wraps(complete)
    def guarded(params: Any, ctx: Any) -> Any:
        if capabilities().completions is None:  # a server may declare them later
            raise MethodNotFoundError(ctx.method)
        return complete(params, ctx)

    return guarded
