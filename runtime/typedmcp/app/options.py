"""The options of decorators, and the conversion of those that all of them have: icons, `_meta`, annotations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import msgspec

from typedmcp import dialect
from typedmcp.errors import UsageError
from typedmcp.protocol.backends import to_plain
from typedmcp.protocol.guesses import reject_options
from typedmcp.protocol.option_checks import option_names
from typedmcp.server.context import Context
from typedmcp_schemas.nesting import encode_json

__all__ = [
    "CallNext", "IconInput", "Middleware", "PromptOptions", "ResourceOptions", "ToolOptions", "check_errors",
    "check_options", "convert_metadata",
]  # fmt: skip

D = dialect.structs


class CallNext(Protocol):
    """The function that passes a request on to the next middleware, or to the server."""

    def __call__(self, params: object = None) -> Awaitable[Any]:
        """Return the result. `params`, if given, replace the parameters of the request."""
        ...


Middleware: TypeAlias = Callable[[Context, Any, CallNext], Awaitable[Any]]
"""A function around every request: takes the context, the parameters and `call_next`, and returns the result."""

_KINDS: dict[Any, tuple[type, str]] = {
    "str | None": (str, "a text"), "bool": (bool, "True or False"), "bool | None": (bool, "True, False or None"),
    "int | None": (int, "an integer"),
}  # fmt: skip
"""The classes of options, by their annotations."""

IconInput: TypeAlias = D.Icon | Mapping[str, Any] | str
"""An icon: an `Icon`, a dict of its members, or its address."""


class _CommonOptions(TypedDict, total=False):
    name: str | None
    """The name; by default the name of the function."""
    title: str | None
    """The name that people see."""
    description: str | None
    """The description; by default the docstring up to its first section."""
    icons: Sequence[IconInput] | None
    """Icons: `Icon`s, dicts, or addresses."""
    meta: Mapping[str, Any] | None
    """The member `_meta`."""
    scopes: Sequence[str]
    """The scopes that the access token must have. Without them, it is not listed, and a request for it gets 403."""
    thread: bool
    """Run a function that is not async in a thread, where it may block; True by default."""
    replace: bool
    """Replace an existing one with the same name, instead of raising `UsageError`; False by default."""


class ToolOptions(_CommonOptions, total=False):
    """The options of `Server.tool` and `Server.add_tool`."""

    annotations: D.ToolAnnotations | Mapping[str, Any] | None
    """Hints about the tool's behavior, such as `{"readOnlyHint": True}`."""
    structured: bool | None
    """Return structured content. By default it depends on the return annotation."""
    input_schema: Mapping[str, Any] | None
    """The schema of the arguments, in place of the one made from the signature. Arguments are checked against both."""
    output_schema: Mapping[str, Any] | None
    """The schema of the structured content, in place of the one made from the annotation. Results are checked."""
    references: bool
    """Keep `$ref`s to all definitions of the schemas. By default only recursive and large types are references."""
    strict: bool | None
    """Repair no arguments: `"3"` is not an integer. By default the server's `strict` decides."""
    text: Callable[[Any], str] | None
    """Makes the text of a result from the return value, in place of its JSON. The structured content stays."""
    timeout: float | None
    """Seconds that a call may take; no limit by default. A thread is not stopped."""
    errors: tuple[type[Exception], ...]
    """Exceptions whose text the client may see, in addition to `ToolError`."""
    task: Literal["optional", "required"] | None
    """Run the tool as a task, apart from the request. "optional" runs it within the request for clients without tasks,
    "required" rejects them. The server needs `extensions=[typedmcp_extensions.tasks.ServerTasks()]`. None by default.
    """
    retry: bool
    """Run the task again on another worker if its worker dies. By default it fails: a tool may have done half its work.
    """


class ResourceOptions(_CommonOptions, total=False):
    """The options of `Server.resource` and `Server.add_resource`."""

    mime_type: str | None
    """The media type; by default it depends on what the function returns."""
    size: int | None
    """The size in bytes. Templates have none."""
    annotations: D.Annotations | Mapping[str, Any] | None
    """The audience and the priority."""
    safe: bool
    """Reject URIs whose values contain `..`, absolute paths or null bytes; True by default."""


class PromptOptions(_CommonOptions, total=False):
    """The options of `Server.prompt` and `Server.add_prompt`."""


def check_options(options: Mapping[str, object], known: type, what: str) -> None:
    """Raise `UsageError` for an option that is not a key of the TypedDict, or that is no text or boolean as it says."""
    reject_options(options, sorted(option_names(known)), f" of a {what}")
    for name, value in options.items():
        hint: Any = known.__annotations__[name]
        kind, words = _KINDS.get(getattr(hint, "__forward_arg__", hint), (object, ""))
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"the option {name} of a {what} must be {words}, not {value!r}")


def check_errors(what: str, errors: Any) -> None:
    """Raise `UsageError` for a value that is not a tuple of exception classes."""
    if not isinstance(errors, tuple) or not all(isinstance(one, type) and issubclass(one, Exception) for one in errors):  # pyright: ignore[reportUnknownVariableType]
        raise UsageError(f"{what}: errors must be a tuple of exception classes, not {errors!r}")


def convert_metadata(what: str, hints: type[msgspec.Struct] = D.Annotations, **members: object) -> dict[str, Any]:
    """Convert icons, `meta` and annotations to the protocol's types, and drop members that are None.

    `what` identifies the server, tool, resource or prompt in errors; `hints` is the type of `annotations`. Raises
    `UsageError` for values that do not fit.
    """
    made = {name: value for name, value in members.items() if value is not None}
    converters: dict[str, Callable[[Any], object]] = {
        "icons": lambda icons: [*map(_convert_icon, [icons] if isinstance(icons, str) else icons)],
        "meta": _convert_meta, "annotations": partial(_convert_members, kind=hints),
    }  # fmt: skip
    for name in converters.keys() & made.keys():
        try:
            made[name] = converters[name](made[name])
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(f"{what}: {name}: {error}") from error
    return made


def _convert_icon(icon: Any) -> D.Icon:
    if isinstance(icon, D.Icon):
        return icon
    return D.from_builtins({"src": icon} if isinstance(icon, str) else dict(icon), D.Icon)


def _convert_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(meta)
    encode_json(made)  # raises now rather than in a list, which would fail as a whole
    return made


def _convert_members(given: Any, kind: type[msgspec.Struct]) -> Any:
    """Convert an object whose members have their Python or their JSON names. An unknown name is an error."""
    if isinstance(given, kind):
        return given
    plain: dict[Any, Any] = to_plain(given)  # a mapping, an exact type, or a model
    json_names: dict[str, str] = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    members: dict[Any, Any] = {json_names.get(name, name): value for name, value in plain.items()}
    if unknown := [name for name in members if name not in json_names.values()]:
        raise ValueError(f"unknown member {unknown[0]!r}; known: {', '.join(json_names.values())}")
    return D.from_builtins(members, kind)
