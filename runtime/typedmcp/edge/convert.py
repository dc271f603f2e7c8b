"""Converters between the types of two revisions, compiled once for each pair from their members.

A converter is a function `(value, lost) -> value`. It copies the members that both types have, converts them where
their types differ, and appends to `lost` the name of every member that was set and does not exist over there.
Members that need more than that have a rule (`typedmcp.edge.rules`), found by the name of the type and the member.
`None` in the place of a converter means that the value can go as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from mcpspec._support.objects import leaves
from mcpspec._support.structs import OpenObject

__all__ = ["Compiler", "Converter", "Lost", "Rule", "with_meta"]

Lost: TypeAlias = list[str]
"""Names of what did not fit, such as `Tool.icons`."""

Converter: TypeAlias = Callable[[Any, Lost], Any]

Rule: TypeAlias = Callable[[Any, Lost], Any]
"""A named exception: gets the source object, gives the value of the member, or UNSET."""


class Compiler:
    """Compiles converters from the types of one revision to those of another, each pair once.

    `silent` are members that are left out without a word. `reuse` lets values of types that are alike go as they
    are, which is enough where they are to be encoded, but not where somebody asks for their class.
    """

    def __init__(self, rules: Mapping[str, Rule], silent: frozenset[str] = frozenset(), *, reuse: bool = True) -> None:
        self.rules = rules
        self.silent = silent
        self.reuse = reuse
        self.made: dict[tuple[Any, Any], Converter | None] = {}

    def between(self, source: Any, target: Any) -> Converter | None:
        """The converter from one type to another; None where values can go as they are.

        Raises `TypeError` for a required member that nothing gives.
        """
        source, target = _bare(source), _bare(target)
        key = (source, target)
        if key not in self.made:
            self.made[key] = self._make(source, target)
        return self.made[key]

    def _make(self, source: Any, target: Any) -> Converter | None:
        if source is target or target is Any or source == target:
            return None
        if _is_union(source) or _is_union(target):
            return self._union(leaves(source), leaves(target))
        if _is_struct(source) and _is_struct(target):
            return None if self.reuse and self._alike(source, target) else self._struct(source, target)
        if get_origin(source) is list and get_origin(target) is list:
            return _each(self.between(get_args(source)[0], get_args(target)[0]))
        if get_origin(source) is dict and get_origin(target) is dict:
            return _each_value(self.between(get_args(source)[1], get_args(target)[1]))
        if _is_mapping(source) and _is_mapping(target):
            return None if not _is_open(target) else _by_value(target)
        return None if _is_plain(source) and _is_plain(target) else _by_value(target)

    def _union(self, sources: list[Any], targets: list[Any]) -> Converter | None:
        """By the class of the value: to the type of the same name, or to the only one that takes it."""
        by_name = {getattr(t, "__name__", str(t)): t for t in targets}
        table: dict[type, Converter | None] = {}
        for source in sources:
            origin: Any = get_origin(source) or source
            if not isinstance(origin, type):
                continue
            name = source.__name__ if _is_struct(source) else None
            if name is not None and name in self.rules and name not in by_name:
                table[origin] = self.rules[name]
            elif name is not None:
                table[origin] = self.between(source, by_name[name]) if name in by_name else _missing(name)
            else:
                same = next((t for t in targets if (get_origin(t) or t) is origin), None)
                table[origin] = None if same is None else self.between(source, same)
        return _by_class(table) if any(table.values()) else None

    def _alike(self, source: Any, target: Any) -> bool:
        """Whether two types have the same members of the same types, and so the same JSON."""
        mine, theirs = _members(source), _members(target)
        return (
            _tag(source) == _tag(target)
            and {n: m.wire for n, m in mine.items()} == {n: m.wire for n, m in theirs.items()}
            and not any(f"{source.__name__}.{name}" in self.rules for name in mine)
            and all(self.between(member.hint, theirs[name].hint) is None for name, member in mine.items())
        )

    def with_meta(self, source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Callable[[Any, Any], Any]:
        """A function `(value, meta)` like a converter, whose result has this `_meta` in place of its own."""
        return self._struct(source, target, given="meta")

    def _struct(self, source: Any, target: Any, given: str | None = None) -> Converter:
        """Source text of a function that builds the target, so that it costs what one written by hand would."""
        mine, theirs = _members(source), _members(target)
        scope: dict[str, Any] = {"Target": target, "UNSET": UNSET}
        name = source.__name__
        body = [
            f"    if value.{n} is not UNSET: lost.append({f'{name}.{n}'!r})"
            for n in mine
            if n not in theirs and mine[n].optional and f"{name}.{n}" not in self.silent
        ]
        arguments: list[str] = []
        for n, member in theirs.items():
            if n == given:
                arguments.append(f"{n}={given}")
                continue
            rule = self.rules.get(f"{name}.{n}")
            if rule is not None:
                scope[f"rule_{n}"] = rule
                arguments.append(f"{n}=rule_{n}(value, lost)")
            elif n in mine and mine[n].hint is not Any and (f := self.between(mine[n].hint, member.hint)) is not None:
                scope[f"to_{n}"] = f
                converted = f"to_{n}(value.{n}, lost)"
                arguments.append(
                    f"{n}={f'UNSET if value.{n} is UNSET else {converted}' if mine[n].optional else converted}"
                )
            elif n in mine:
                arguments.append(f"{n}=value.{n}")
            elif not member.optional and not member.constant:
                raise TypeError(f"{name}.{n}: {target.__module__} requires it, and no rule says where it comes from")
        head = ["def convert(value, lost):"] if given is None else [f"def convert(value, {given}):", "    lost = []"]
        if given is not None and "lost" not in " ".join([*body, *arguments]):
            del head[1]
        text = "\n".join([*head, *body, f"    return Target({', '.join(arguments)})"])
        exec(compile(text, f"<{name} to {target.__module__}>", "exec"), scope)  # noqa: S102  # names of generated types
        made: Converter = scope["convert"]
        return made


@cache
def with_meta(kind: type[msgspec.Struct]) -> Callable[[Any, Any], Any]:
    """A function `(value, meta)` that copies a struct with another `_meta`; one without that member goes as it is."""
    names = kind.__struct_fields__
    if "meta" not in names:
        return lambda value, _meta: value
    copied = ", ".join(f"{name}=value.{name}" for name in names if name != "meta")
    scope: dict[str, Any] = {"Kind": kind}
    text = f"def copy(value, meta): return Kind(meta=meta, {copied})"
    exec(compile(text, f"<{kind.__name__} with meta>", "exec"), scope)  # noqa: S102  # names of generated types
    made: Callable[[Any, Any], Any] = scope["copy"]
    return made


class _Member:
    __slots__ = ("constant", "hint", "optional", "wire")

    def __init__(self, wire: str, hint: Any, *, optional: bool, constant: bool) -> None:
        self.wire, self.hint, self.optional, self.constant = wire, hint, optional, constant


def _members(kind: type[msgspec.Struct]) -> dict[str, _Member]:
    hints = get_type_hints(kind, include_extras=True)
    constants = getattr(kind, "__constants__", {})
    return {
        f.name: _Member(f.encode_name, _bare(hints[f.name]), optional=not f.required, constant=f.name in constants)
        for f in msgspec.structs.fields(kind)
    }


def _bare(hint: Any) -> Any:
    """A hint without what says that the member may be absent, and without bounds."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        kept = [_bare(option) for option in get_args(hint) if option is not UnsetType]
        return Union[tuple(kept)]  # noqa: UP007  # of a tuple
    return hint


def _tag(kind: Any) -> tuple[Any, Any]:
    config = kind.__struct_config__
    return config.tag_field, config.tag


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType) or hasattr(hint, "__union__")


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _is_open(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, OpenObject)


def _is_mapping(hint: Any) -> bool:
    return hint is dict or get_origin(hint) is dict or _is_open(hint)


def _is_plain(hint: Any) -> bool:
    return not (_is_struct(hint) or _is_mapping(hint) or get_origin(hint) is list)


def _each(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda values, lost: [convert(value, lost) for value in values]


def _each_value(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda values, lost: {key: convert(value, lost) for key, value in values.items()}


def _by_class(table: dict[type, Converter | None]) -> Converter:
    def convert(value: Any, lost: Lost) -> Any:
        try:
            found = table[type(value)]
        except KeyError:
            found = table[_base(value, table)]
        return value if found is None else found(value, lost)

    return convert


def _base(value: object, table: Mapping[type, Any]) -> type:
    """The class that a value is of by inheritance. Raises `TypeError` for what has no place here."""
    for kind in table:
        if isinstance(value, kind):
            return kind
    expected = " or ".join(kind.__name__ for kind in table)
    raise TypeError(f"expected {expected}, got {type(value).__name__}")


def _missing(name: str) -> Converter:
    def convert(value: Any, lost: Lost) -> Any:
        lost.append(name)
        return value

    return convert


def _by_value(target: Any) -> Converter:
    """Through plain JSON, for members that are objects here and open there; what does not fit is left out."""
    from mcpspec._support.structs import from_builtins, to_builtins

    def convert(value: Any, lost: Lost) -> Any:
        try:
            return from_builtins(to_builtins(value), target)
        except ValueError as error:
            lost.append(str(error))
            return None if target is NoneType else UNSET

    return convert
