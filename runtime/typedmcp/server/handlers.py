"""Handler objects: the methods that they implement, and the capabilities that follow from those.

A handler is a subclass of the dialect's `ServerStub`, or any object with some of its methods, async or plain. A method
that is only inherited from the stub does not count as implemented.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from typedmcp import dialect
from typedmcp.errors import UsageError
from typedmcp.protocol.codec import MethodTable

__all__ = ["capabilities_of", "functions_of", "in_thread", "runs_in_thread"]

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
        raise UsageError(f"{type(handler).__name__} implements none of: {', '.join(sorted(names))}, fallback")
    return functions


def _is_stub(handler: object, name: str) -> bool:
    defined = inspect.getattr_static(type(handler), name, None)
    is_generated = getattr(defined, "__module__", "").endswith("handlers")
    return is_generated and getattr(defined, "__qualname__", "") == f"ServerStub.{name}"


_CAPABILITIES: Mapping[str, tuple[str, dict[str, bool]]] = {
    "tools": ("tools", {"listChanged": True}),
    "prompts": ("prompts", {"listChanged": True}),
    "resources": ("resources", {"listChanged": True, "subscribe": True}),
    "completion": ("completions", {}),
}
"""The capability, and its members, that methods with a prefix imply."""


def capabilities_of(functions: Mapping[str, object]) -> dialect.structs.ServerCapabilities:
    """Return the capabilities that follow from the implemented methods."""
    methods = dialect.methods.CLIENT_REQUESTS.values()
    prefixes = {method.name.partition("/")[0] for method in methods if method.handler in functions}
    implied = {name: members for prefix, (name, members) in _CAPABILITIES.items() if prefix in prefixes}
    return dialect.structs.from_builtins({"logging": {}, **implied}, dialect.structs.ServerCapabilities)
