"""What the decorators of a server take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict

from typedmcp import dialect
from typedmcp.context import Context

__all__ = ["CallNext", "Middleware", "PromptOptions", "ResourceOptions", "ToolOptions"]

D = dialect.structs


class CallNext(Protocol):
    """What a middleware hands a request on with."""

    def __call__(self, params: Any = None) -> Awaitable[Any]:
        """The result; `params` stand for those that came, where they are given."""
        ...


Middleware: TypeAlias = Callable[[Context, Any, CallNext], Awaitable[Any]]
"""Around every request: gets the context, the parameters and `call_next`, and returns the result."""


class _Shared(TypedDict, total=False):
    name: str | None
    """What it is called; the function's name by default."""
    title: str | None
    """What people see."""
    description: str | None
    """What it is for; the docstring up to its sections by default."""
    icons: Sequence[D.Icon | Mapping[str, Any] | str] | None
    """Pictures of it: `Icon`s, dicts, or addresses."""
    meta: Mapping[str, Any] | None
    """Its `_meta`."""
    thread: bool
    """Whether a function that is not async runs in a thread, where it may block; True by default."""
    replace: bool
    """Whether it may take the place of one of the same name; False by default."""


class ToolOptions(_Shared, total=False):
    """What `Server.tool` and `Server.add_tool` take."""

    annotations: D.ToolAnnotations | Mapping[str, Any] | None
    """Hints about what it does, such as `{"readOnlyHint": True}`."""
    structured: bool | None
    """Whether results have structured content. By default that follows from what the function says it returns."""
    input_schema: Mapping[str, Any] | None
    """The schema of its arguments, instead of that of the signature. They are checked against both."""
    output_schema: Mapping[str, Any] | None
    """The schema of its structured content, instead of that of the annotation. Results are checked against it."""
    timeout: float | None
    """Seconds that a call may take; none by default. A thread is not stopped by it."""
    errors: tuple[type[Exception], ...]
    """Exceptions whose text the client may see, beside `ToolError`."""


class ResourceOptions(_Shared, total=False):
    """What `Server.resource` and `Server.add_resource` take."""

    mime_type: str | None
    """What kind of data it is; by default that of what the function returns."""
    size: int | None
    """How many bytes it has."""
    annotations: D.Annotations | Mapping[str, Any] | None
    """Whom it is for, and how important it is."""
    safe: bool
    """Whether values with `..`, absolute paths and null bytes are refused in URIs; True by default."""


class PromptOptions(_Shared, total=False):
    """What `Server.prompt` and `Server.add_prompt` take."""
