"""What servers, tools, resources and prompts say of themselves alike, as the protocol has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from typedmcp import dialect
from typedmcp.errors import UsageError

__all__ = ["check_errors", "parts_of"]

D = dialect.structs


def parts_of(what: str, hints: type[msgspec.Struct] = D.Annotations, **members: Any) -> dict[str, Any]:
    """The members that are given, those that are None left out, `annotations` of the type `hints`.

    `what` says whose they are, in errors. Raises `UsageError` for values that are none.
    """
    made = {name: value for name, value in members.items() if value is not None}
    kinds: dict[str, Callable[[Any], Any]] = {
        "icons": _icons, "meta": _meta, "annotations": partial(_of_members, kind=hints),
    }  # fmt: skip
    for name in kinds.keys() & made.keys():
        try:
            made[name] = kinds[name](made[name])
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(f"{what}: {name}: {error}") from error
    return made


def check_errors(what: str, errors: Any) -> None:
    """Raises `UsageError` for what is no tuple of exceptions."""
    given: list[Any] = [*errors] if isinstance(errors, tuple) else [None]  # pyright: ignore[reportUnknownArgumentType]
    if not all(map(_is_exception, given)):
        raise UsageError(f"{what}: errors is a tuple of classes of exceptions, not {errors!r}")


def _is_exception(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception)


def _icons(icons: Any) -> list[D.Icon]:
    return [*map(_icon, [icons] if isinstance(icons, str) else icons)]


def _icon(icon: Any) -> D.Icon:
    if isinstance(icon, D.Icon):
        return icon
    return D.from_builtins({"src": icon} if isinstance(icon, str) else dict(icon), D.Icon)


def _meta(meta: Any) -> dict[str, Any]:
    made = dict(meta)
    msgspec.json.encode(made)  # raises for what would make a whole list fail
    return made


def _of_members(given: Any, kind: type[msgspec.Struct]) -> Any:
    """An object by its members, as Python or the wire calls them; one that is misspelt would promise nothing."""
    if isinstance(given, kind):
        return given
    wire: dict[str, Any] = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    members: dict[Any, Any] = {wire.get(name, name): value for name, value in dict(given).items()}
    if unknown := [name for name in members if name not in wire.values()]:
        raise ValueError(f"there is no {unknown[0]!r}; there are {', '.join(wire.values())}")
    return D.from_builtins(members, kind)
