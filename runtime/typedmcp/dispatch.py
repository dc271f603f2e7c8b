"""Handler objects: what they implement, and what a server may promise because of it.

A handler is a subclass of the dialect's `ServerStub`, or any object with some of its methods, async or plain. A
method that is only inherited from the stub does not count as implemented.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from typedmcp import dialect
from typedmcp.errors import UsageError

__all__ = ["capabilities_of", "functions_of", "in_thread", "is_awaitable", "runs_in_thread"]

if TYPE_CHECKING:
    from typing_extensions import TypeIs

F = TypeVar("F", bound=Callable[..., Any])

_IN_THREAD = "__typedmcp_in_thread__"


def in_thread(function: F) -> F:
    """Mark a plain handler method that blocks: it runs in a thread, where others run in the event loop."""
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{function.__qualname__} is async, and async methods do not block a thread")
    setattr(function, _IN_THREAD, True)
    return function


def runs_in_thread(function: Callable[..., Any]) -> bool:
    """Whether a handler method is marked with `in_thread`."""
    return bool(getattr(function, _IN_THREAD, False))


def is_awaitable(value: object) -> TypeIs[Awaitable[Any]]:
    """Whether a handler method returned something to wait for."""
    return hasattr(type(value), "__await__")


def functions_of(handler: object) -> dict[str, Callable[[Any, Any], Any]]:
    """What a handler implements, by the names that methods have on handlers.

    Raises `UsageError` for an object that implements nothing.
    """
    names = {method.handler for method in dialect.methods.METHODS.values() if method.direction != "server"}
    found: dict[str, Callable[[Any, Any], Any]] = {}
    for name in sorted(names | {"fallback"}):
        function = getattr(handler, name, None)
        if callable(function) and not _is_stub(handler, name):
            found[name] = function
    if not found:
        raise UsageError(f"{type(handler).__name__} implements none of: {', '.join(sorted(names))}, fallback")
    return found


def _is_stub(handler: object, name: str) -> bool:
    defined = inspect.getattr_static(type(handler), name, None)
    module = getattr(defined, "__module__", "")
    return module.startswith("mcpspec.") and module.endswith("handlers")


_FEATURES = {
    "tools": ("call_tool", "list_tools"),
    "prompts": ("get_prompt", "list_prompts"),
    "resources": ("list_resource_templates", "list_resources", "read_resource"),
}


def capabilities_of(functions: dict[str, Callable[[Any, Any], Any]]) -> dialect.structs.ServerCapabilities:
    """The capabilities that follow from what is implemented."""
    structs = dialect.structs
    has = {feature: any(name in functions for name in names) for feature, names in _FEATURES.items()}
    made = structs.ServerCapabilities(logging={})
    if has["tools"]:
        made.tools = structs.ServerCapabilitiesTools(list_changed=True)
    if has["prompts"]:
        made.prompts = structs.ServerCapabilitiesPrompts(list_changed=True)
    if has["resources"]:
        made.resources = structs.ServerCapabilitiesResources(list_changed=True, subscribe=True)
    if "complete" in functions:
        made.completions = {}
    return made
