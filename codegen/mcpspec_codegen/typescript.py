"""Read the order of members off upstream's `schema.ts`: the official `schema.json` sorts them by name.

Understands what describes objects: interfaces with `extends`, intersections, `Omit` and the like, arrays and unions.
Everything else has no members, and is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Order", "read_order"]

Order: TypeAlias = dict[str, list[str]]
"""Object → its members. An object is a definition, or an inline type at its place, such as `Tool.inputSchema`."""

_TOKEN = re.compile(
    r"""/\*.*?(?:\*/|\Z) | //[^\n]* | (?P<text>"(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'?) | (?P<word>[\w$.]+)
    | (?P<mark>=> | \S)""",
    re.VERBOSE | re.DOTALL,
)
_DEPTH = dict.fromkeys("{[(<", 1) | dict.fromkeys("}])>", -1)
_WRAPPERS = frozenset({"Omit", "Partial", "Pick", "Readonly", "Required"})


def read_order(source: str) -> Order:
    """Read the order of the members of all objects that a TypeScript file declares.

    Inherited members come first. A member that an interface declares again stands among its own.
    """
    declarations = {name: (bases, body) for name, bases, body in _declarations(_tokens(source))}
    order: Order = {}
    for name in declarations:
        _list_members(name, _Reader(declarations).declared(name), order)
    return order


def _list_members(place: str, members: _Members, order: Order) -> None:
    if len(members) > 1:
        order[place] = list(members)
    for name, below in members.items():
        _list_members(f"{place}.{name}", below.members, order)


@dataclass(slots=True)
class _Member:
    """A member, with the members of its own inline type."""

    members: _Members = field(default_factory=dict[str, "_Member"])


_Members: TypeAlias = dict[str, _Member]


def _tokens(source: str) -> list[str]:
    return [match[0] for match in _TOKEN.finditer(source) if match.lastgroup is not None]


def _declarations(tokens: list[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the name, the bases and the type of each interface and type alias."""
    at = 0
    while at + 1 < len(tokens):
        if tokens[at] == "interface":
            body = _find(tokens, at, "{")
            end = _skip(tokens, body)
            head = tokens[at + 2 : body]
            bases = head[head.index("extends") + 1 :] if "extends" in head else []
            yield tokens[at + 1], bases, tokens[body:end]
            at = end
        elif tokens[at] == "type" and "=" in tokens[at + 2 : at + 3]:
            end = _find(tokens, at, ";")
            yield tokens[at + 1], [], tokens[at + 3 : end]
            at = end
        else:
            at += 1


def _find(tokens: list[str], at: int, mark: str) -> int:
    """Return the next place of a mark that is not inside brackets, or the end."""
    while at < len(tokens) and tokens[at] != mark:
        at = _skip(tokens, at)
    return at


def _skip(tokens: list[str], at: int) -> int:
    """Return the place after a token, or after the bracket that it opens."""
    depth = 0
    while at < len(tokens):
        depth += _DEPTH.get(tokens[at], 0)
        at += 1
        if depth <= 0:
            break
    return at


def _split(tokens: list[str], *marks: str) -> list[list[str]]:
    """Split tokens at marks that are not inside brackets."""
    parts: list[list[str]] = [[]]
    at = 0
    while at < len(tokens):
        after = _skip(tokens, at)
        if tokens[at] in marks:
            parts.append([])
        else:
            parts[-1] += tokens[at:after]
        at = after
    return [part for part in parts if part]


@dataclass(slots=True)
class _Reader:
    """Reads one declaration. `reading` are the declarations that it has entered, which must not contain themselves."""

    declarations: dict[str, tuple[list[str], list[str]]]
    reading: tuple[str, ...] = ()

    def declared(self, name: str) -> _Members:
        if name not in self.declarations or name in self.reading:
            return {}
        bases, body = self.declarations[name]
        inner = _Reader(self.declarations, (*self.reading, name))
        own = inner.type(body)
        inherited = _join([inner.part(base, named=True) for base in _split(bases, ",")])
        return {name: member for name, member in inherited.items() if name not in own} | own

    def type(self, tokens: list[str]) -> _Members:
        """Return the members of a type. Those of a named type belong to it, unless it is part of an intersection."""
        options = [_split(option, "&") for option in _split(tokens, "|")]
        return _join([self.part(part, named=len(parts) > 1) for parts in options for part in parts])

    def part(self, tokens: list[str], *, named: bool) -> _Members:
        while len(tokens) > 2 and tokens[-2:] == ["[", "]"]:
            tokens = tokens[:-2]
        first, rest = tokens[0], tokens[2:-1]
        if first == "{":
            return self.body(tokens[1:-1])
        if first == "(":
            return self.type(tokens[1:-1])
        if first == "Array" and rest:
            return self.type(rest)
        if first in _WRAPPERS and rest:
            wrapped, *texts = _split(rest, ",") or [["?"]]
            keys = {token[1:-1] for text in texts for token in text if token[0] in "\"'"}
            members = self.part(wrapped, named=True)
            return {name: member for name, member in members.items() if (name in keys) == (first == "Pick") or not keys}
        return self.declared(first) if named else {}

    def body(self, tokens: list[str]) -> _Members:
        members: _Members = {}
        for declaration in _split(tokens, ";", ","):
            words = declaration[1:] if declaration[0] == "readonly" and len(declaration) > 1 else declaration
            parts = _split(words, ":")
            if len(parts) > 1 and words[0] != "[":
                name = words[0][1:-1] if words[0][0] in "\"'" else words[0]
                members[name] = _Member(self.type(words[words.index(":") + 1 :]))
        return members


def _join(parts: list[_Members]) -> _Members:
    """Return the members of several types. The first place of a member counts, and its last type."""
    return {name: member for part in parts for name, member in part.items()}
