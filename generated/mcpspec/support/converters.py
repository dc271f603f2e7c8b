"""Converters between the types of two revisions, compiled from their members, once for each pair of types.

A converter is a function `(value, dropped) -> value`. It copies the members that both types have and converts those
whose types differ. It appends to `dropped` the name of each member that is set and that the target type lacks. A member
that needs more has a rule (`mcpspec.support.rules`), found by the name of type and member. `None` instead of a
converter means that values need no conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec.structs import force_setattr

from mcpspec.support.null import NULL
from mcpspec.support.objects import spread_union, strip_absent
from mcpspec.support.structs import OpenObject, constructor, from_builtins, to_builtins

__all__ = [
    "Converter", "ConverterCompiler", "DroppedFields", "Rule", "StructMember", "declared_members", "is_open",
    "is_plain", "is_struct", "is_union", "members_of", "strip_optional", "with_meta",
]  # fmt: skip

DroppedFields: TypeAlias = list[str]
"""Names of the members that the target revision does not have, such as `Tool.icons`."""

Converter: TypeAlias = Callable[[Any, DroppedFields], Any]

Rule: TypeAlias = Callable[[Any, DroppedFields], Any]
"""Computes a member, or a whole value, from the source object.

Returns the target's value for an absent member to leave the member out: UNSET in exact types, None in everyday ones.
"""


class ConverterCompiler:
    """Compiles converters from the types of one revision to the types of another, each pair once.

    `ignored` names members that may be dropped without being reported. `renamed` maps members of the target to the
    names of the same members in the source. With `reuse`, values of types with equal JSON are not converted: enough for
    encoding, but the value keeps the class of its own revision. `absent` is what the target types have for an absent
    member: UNSET in exact types, None in everyday ones.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        ignored: frozenset[str] = frozenset(),
        *,
        renamed: Mapping[str, str] = MappingProxyType({}),
        reuse: bool = True,
        absent: Any = UNSET,
    ) -> None:
        self.rules = rules
        self.ignored = ignored
        self.renamed = renamed
        self.reuse = reuse
        self.absent = absent
        self._converters: dict[tuple[Any, Any], Converter | None] = {}

    def between(self, source: Any, target: Any) -> Converter | None:
        """Return the converter from one type to another, or None if values need no conversion.

        Raises `TypeError` if the target requires a member that neither the source nor a rule provides.
        """
        source, target = strip_optional(source), strip_optional(target)
        key = (source, target)
        if key not in self._converters:
            self._converters[key] = self._compile(source, target)
        return self._converters[key]

    # Subclasses can do more about what the converters cannot express

    def handle_missing_member(self, name: str, target: Any) -> str | None:
        """Return the code for a member that the target requires and that has no source. Raises `TypeError`."""
        raise TypeError(f"{name}: {target.__module__} requires it; neither {name.split('.')[0]} nor a rule provides it")

    def handle_unknown_type(self, name: str) -> None:
        """Handle a type that the target's union lacks, and that has no rule. Its values are passed on."""

    def _compile(self, source: Any, target: Any) -> Converter | None:
        if source is target or Any in (source, target) or source == target:
            return None
        if is_union(source) or is_union(target):
            return self._union(spread_union(source), spread_union(target))
        if is_struct(source) and is_struct(target):
            return None if self.reuse and self._has_equal_json(source, target) else self._struct(source, target)
        if get_origin(source) is list and get_origin(target) is list:
            return _convert_items(self.between(get_args(source)[0], get_args(target)[0]))
        if get_origin(source) is dict and get_origin(target) is dict:
            return _convert_values(self.between(get_args(source)[1], get_args(target)[1]))
        if _is_mapping(source) and _is_mapping(target):
            return self._mapping(source, target)
        return None if is_plain(source) and is_plain(target) else _convert_by_json(target, self.absent)

    def _mapping(self, source: Any, target: Any) -> Converter | None:
        """Return a converter between open objects and dicts."""
        if is_open(target):
            is_equal = self.reuse and (not is_open(source) or _declares_same(source, target))
            return None if is_equal else _convert_by_json(target, self.absent)
        if self.reuse or not is_open(source):
            return None
        holds_objects = any(_holds_objects(hint) for hint, _ in declared_members(source).values())
        return _convert_to_json if holds_objects else _convert_to_dict

    def _union(self, sources: list[Any], targets: list[Any]) -> Converter | None:
        """Return a converter that chooses the target type by the class of the value: the same name, or plain class."""
        by_name = {getattr(t, "__name__", str(t)): t for t in targets}
        table: dict[type, Converter | None] = {}
        for source in sources:
            origin: Any = get_origin(source) or source
            if not isinstance(origin, type):
                continue
            name = source.__name__ if is_struct(source) else None
            if name is not None and name in self.rules and name not in by_name:
                table[origin] = self.rules[name]
            elif name is not None and name in by_name:
                table[origin] = self.between(source, by_name[name])
            elif name is not None:
                self.handle_unknown_type(name)
                table[origin] = _drop_type(name)
            else:
                same = next((t for t in targets if (get_origin(t) or t) is origin), None)
                if same is None:
                    self.handle_unknown_type(origin.__name__)
                table[origin] = _drop_type(origin.__name__) if same is None else self.between(source, same)
        return _convert_by_class(table) if any(table.values()) else None

    def _has_equal_json(self, source: Any, target: Any) -> bool:
        """Return whether two types have the same members of the same types, and no rules between them."""
        mine, theirs = members_of(source), members_of(target)
        return (
            _tag(source) == _tag(target)
            and {n: m.wire for n, m in mine.items()} == {n: m.wire for n, m in theirs.items()}
            and all(theirs[name].optional or not member.optional for name, member in mine.items())
            and not any(f"{source.__name__}.{name}" in self.rules for name in mine)
            and all(self.between(member.hint, theirs[name].hint) is None for name, member in mine.items())
        )

    def with_meta(self, source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Callable[[Any, Any], Any]:
        """Return a converter `(value, meta) -> value` whose result has this `_meta` instead of its own."""
        return self._struct(source, target, given="meta")

    def _struct(self, source: Any, target: Any, given: str | None = None) -> Converter:
        """Generate a converter that calls the target's constructor: as fast as one written by hand.

        `given` is a member that the converter takes as its second argument, instead of `dropped`.
        """
        mine, theirs = members_of(source), members_of(target)
        name = source.__name__
        scope: dict[str, Any] = {"Target": constructor(target), "UNSET": UNSET}
        sources = {n: n if n in mine else self.renamed.get(f"{name}.{n}", n) for n in theirs}
        body = [
            f"    {_presence_test(source, n, member, scope)}dropped.append({f'{name}.{n}'!r})"
            for n, member in mine.items()
            if n not in sources.values() and f"{name}.{n}" not in self.ignored and not _is_literal(member)
        ]
        arguments: list[str] = []
        for n, member in theirs.items():
            expression = given if n == given else self._expression(name, n, sources[n], mine, member, scope)
            if expression is not None:
                arguments.append(f"{n}={expression}")
            elif member.constant:
                scope["Target"] = target  # its constructor fills in the member
            elif not member.optional and (code := self.handle_missing_member(f"{name}.{n}", target)) is not None:
                arguments.append(f"{n}={code}")
        head = ["def convert(value, dropped):"]
        if given is not None:
            uses_dropped = "dropped" in " ".join([*body, *arguments])
            head = [f"def convert(value, {given}):", *(["    dropped = []"] if uses_dropped else [])]
        text = "\n".join([*head, *body, f"    return Target({', '.join(arguments)})"])
        exec(compile(text, f"<{name} to {target.__module__}>", "exec"), scope)  # noqa: S102  # names of generated types
        made: Converter = scope["convert"]
        return made

    def _expression(
        self,
        type_name: str,
        name: str,
        source: str,
        members: Mapping[str, StructMember],
        theirs: StructMember,
        scope: dict[str, Any],
    ) -> str | None:
        """Generate the expression for one member of the target, or return None if the source has no such member.

        `source` is its name in the source, which has these `members`. The functions that it calls are added to `scope`.
        """
        rule = self.rules.get(f"{type_name}.{name}")
        if rule is not None:
            scope[f"rule_{name}"] = rule
            return f"rule_{name}(value, dropped)"
        mine = members.get(source)
        if mine is None:
            return None
        convert = self.between(mine.hint, theirs.hint)
        if convert is None and mine.optional and mine.hint is Any and mine.absent is not theirs.absent:
            convert = _convert_null_to_none if mine.absent is None else _convert_none_to_null
        converted = f"value.{source}"
        if convert is not None:
            scope[f"to_{name}"] = convert
            converted = f"to_{name}(value.{source}, dropped)"
        if not mine.optional or (convert is None and mine.absent is theirs.absent) or theirs.constant:
            return converted
        if not theirs.optional and mine.absent not in (None, UNSET):  # the source's default is a value like any other
            return converted
        absent = _constant_code(f"absent_{name}", theirs.absent, scope)
        return f"{absent} if {_absence_test(source, mine, scope=scope)} else {converted}"


@cache
def with_meta(kind: type[msgspec.Struct]) -> Callable[[Any, Any], Any]:
    """Return a function `(value, meta) -> value` that copies a struct of a class with another `_meta`.

    A struct without that member is returned as it is.
    """
    if "meta" not in kind.__struct_fields__:
        return lambda value, _meta: value
    return _copy_with_meta


def _copy_with_meta(value: Any, meta: Any) -> Any:
    made = value.__copy__()
    force_setattr(made, "meta", meta)  # the class may be frozen
    return made


class StructMember:
    """A member of a struct, as far as converters need it."""

    __slots__ = ("absent", "constant", "hint", "optional", "wire")

    def __init__(self, wire: str, hint: Any, *, optional: bool, constant: bool, absent: Any) -> None:
        self.wire: str = wire
        self.hint: Any = hint
        self.optional: bool = optional
        self.constant: bool = constant
        self.absent: Any = absent
        """Its value if it is absent: UNSET in exact types; None, or the protocol's default, in everyday ones."""


def members_of(kind: type[msgspec.Struct]) -> dict[str, StructMember]:
    """Return the members of a struct by their Python names."""
    hints = get_type_hints(kind, include_extras=True)
    constants = getattr(kind, "__constants__", {})
    return {
        f.name: StructMember(
            f.encode_name,
            strip_optional(hints[f.name] if f.default is not None else strip_absent(hints[f.name], NoneType)),
            optional=not f.required,
            constant=f.name in constants,
            absent=UNSET if f.default is NODEFAULT else f.default,
        )
        for f in msgspec.structs.fields(kind)
    }


def _absence_test(name: str, member: StructMember, scope: dict[str, Any]) -> str:
    """Generate the test whether a member of `value` is absent. The value it compares with may be added to `scope`."""
    is_singleton = member.absent is UNSET or member.absent is None or isinstance(member.absent, bool)
    return f"value.{name} {'is' if is_singleton else '=='} {_constant_code(f'default_{name}', member.absent, scope)}"


def _presence_test(kind: Any, name: str, member: StructMember, scope: dict[str, Any]) -> str:
    """Generate the condition under which a member says something that its type does not."""
    if member.optional:
        return f"if not {_absence_test(name, member, scope)}: "
    if not member.constant:
        return ""
    return f"if value.{name} != {_constant_code(f'default_{name}', kind.__constants__[name], scope)}: "


def _is_literal(member: StructMember) -> bool:
    return member.constant and get_origin(member.hint) is Literal


def _constant_code(name: str, value: Any, scope: dict[str, Any]) -> str:
    """Return the code of a value: a literal, which is read fastest, or a name that is added to `scope`."""
    if value is None or isinstance(value, bool):
        return repr(value)
    scope[name] = value
    return name


def strip_optional(hint: Any) -> Any:
    """Remove `UnsetType` and annotations from a hint."""
    if get_origin(hint) is Annotated:
        return strip_optional(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        kept = [strip_optional(option) for option in get_args(hint) if option is not UnsetType]
        return Union[tuple(kept)]  # noqa: UP007  # of a tuple
    return hint


def _tag(kind: Any) -> tuple[Any, Any]:
    config = kind.__struct_config__
    return config.tag_field, config.tag


def is_union(hint: Any) -> bool:
    """Return whether a type is a union, with a name of its own or not."""
    return get_origin(hint) in (Union, UnionType) or hasattr(hint, "__union__")


def is_struct(hint: Any) -> bool:
    """Return whether a type is a struct."""
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def is_open(hint: Any) -> bool:
    """Return whether a type is an open object, which keeps undeclared members."""
    return isinstance(hint, type) and issubclass(hint, OpenObject)


def _declares_same(source: Any, target: Any) -> bool:
    """Return whether two open types declare the same members, with the same plain types."""
    return is_open(source) and declared_members(source) == declared_members(target)


def declared_members(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the declared members of an open object by their names in JSON: the type, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    return {member.wire: (hints[name], member.required) for name, member in kind.__attributes__.items()}


def _is_mapping(hint: Any) -> bool:
    return hint is dict or get_origin(hint) is dict or is_open(hint)


def is_plain(hint: Any) -> bool:
    """Return whether a type is neither a struct nor a mapping nor a list."""
    return not (is_struct(hint) or _is_mapping(hint) or get_origin(hint) is list)


def _convert_items(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda values, dropped: [convert(value, dropped) for value in values]


def _convert_values(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda values, dropped: {key: convert(value, dropped) for key, value in values.items()}


def _convert_by_class(table: dict[type, Converter | None]) -> Converter:
    def convert(value: Any, dropped: DroppedFields) -> Any:
        try:
            found = table[type(value)]
        except KeyError:
            found = table[_find_base(value, table)]
        return value if found is None else found(value, dropped)

    return convert


def _find_base(value: object, table: Mapping[type, Any]) -> type:
    """Find the class in a table that a value is an instance of. Raises `TypeError` if no class matches."""
    for kind in table:
        if isinstance(value, kind):
            return kind
    expected = " or ".join(kind.__name__ for kind in table)
    raise TypeError(f"expected {expected}, got {type(value).__name__}")


def _drop_type(name: str) -> Converter:
    def convert(value: Any, dropped: DroppedFields) -> Any:
        dropped.append(name)
        return value

    return convert


def _holds_objects(hint: Any) -> bool:
    """Return whether values of a type may be, or contain, structs or open objects."""
    return any(
        is_struct(option) or is_open(option) or any(map(_holds_objects, get_args(option)))
        for option in spread_union(hint)
    )


def _convert_to_json(value: Any, _dropped: DroppedFields) -> Any:
    return to_builtins(value)


def _convert_to_dict(value: Any, _dropped: DroppedFields) -> Any:
    return dict(value)


def _convert_null_to_none(value: Any, _dropped: DroppedFields) -> Any:
    return None if value is NULL else value


def _convert_none_to_null(value: Any, _dropped: DroppedFields) -> Any:
    return NULL if value is None else value


def _convert_by_json(target: Any, absent: Any) -> Converter:
    """Return a converter through plain JSON, for types of different kinds. It leaves out a value that does not fit."""

    def convert(value: Any, dropped: DroppedFields) -> Any:
        try:
            return from_builtins(to_builtins(value), target)
        except ValueError as error:
            dropped.append(str(error))
            return None if target is NoneType else absent

    return convert
