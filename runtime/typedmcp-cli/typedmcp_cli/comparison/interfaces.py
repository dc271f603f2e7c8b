"""An interface as data: its types as JSON Schema, its methods, its error codes, and who sends what."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeGuard

__all__ = [
    "SIDES",
    "InterfaceShape",
    "MethodShape",
    "Node",
    "Side",
    "find_senders",
    "list_references",
    "other_side",
    "ref_name",
]

Node: TypeAlias = Mapping[str, Any]
"""A JSON Schema 2020-12, whose references lead to other types of the interface."""
Side: TypeAlias = Literal["client", "server"]

SIDES: Final[tuple[Side, ...]] = ("client", "server")


@dataclass(frozen=True, slots=True)
class MethodShape:
    """A method, whose types are names of definitions."""

    sender: str
    """`client`, `server` or `both`."""
    kind: str
    """`request`, `notification`, or `input`: a request that is part of a result."""
    message: str
    params: str | None
    params_required: bool
    result: str | None

    @property
    def senders(self) -> tuple[Side, ...]:
        """The sides that send the message."""
        return tuple(side for side in SIDES if self.sender in (side, "both"))


@dataclass(frozen=True, slots=True)
class InterfaceShape:
    """The agreement of two peers: types, methods and error codes."""

    types: Mapping[str, Node]
    methods: Mapping[str, MethodShape]
    codes: Mapping[str, int]


def other_side(side: Side) -> Side:
    """Return the side that reads what a side sends."""
    return "server" if side == "client" else "client"


def find_senders(interface: InterfaceShape) -> dict[str, frozenset[Side]]:
    """Find the sides that send the values of each type: none for a type that no message has.

    Clients send the parameters of their requests and the results of the server's, and so on. Without any method, both
    sides may send everything.
    """
    if not interface.methods:
        return dict.fromkeys(interface.types, frozenset(SIDES))
    roots: dict[Side, set[str]] = {side: set() for side in SIDES}
    for method in interface.methods.values():
        for side in method.senders:
            roots[side] |= {name for name in (method.message, method.params) if name is not None}
            roots[other_side(side)] |= {method.result} if method.result is not None else set()
    sent: dict[Side, set[str]] = {side: _reach(names, interface.types) for side, names in roots.items()}
    others = {name: node for name, node in interface.types.items() if not any(name in each for each in sent.values())}
    for name, node in others.items():
        if _is_envelope(node, others, frozenset({name})):
            for side in _senders_of_envelope(node, sent):
                sent[side] |= _reach({name}, interface.types, sent[side])
    return {name: frozenset(side for side in SIDES if name in sent[side]) for name in interface.types}


def _is_envelope(node: Node, others: Mapping[str, Node], outer: frozenset[str]) -> bool:
    """Return whether a type is a message without a method of its own: a response, an error, a batch, or any message.

    `others` are the types that no method names, `outer` those that the type is a part of.
    """
    if "$ref" in node:
        name = ref_name(node["$ref"])
        return name in others and name not in outer and _is_envelope(others[name], others, outer | {name})
    parts: list[Node] = node.get("anyOf", [node["items"]] if "items" in node else [])
    if parts:
        return all(_is_envelope(part, others, outer) for part in parts)
    return "jsonrpc" in node.get("properties", {})


def _senders_of_envelope(node: Node, sent: Mapping[Side, set[str]]) -> Iterator[Side]:
    held = {*list_references(node.get("properties", {}).get("result", {}))}
    for side in SIDES:
        if not held or held & sent[side]:
            yield side


def _reach(names: Collection[str], types: Mapping[str, Node], known: Collection[str] = ()) -> set[str]:
    """Return names and all that they refer to, except what is known."""
    found: set[str] = set()
    pending = [*names]
    while pending:
        name = pending.pop()
        if name in types and name not in found and name not in known:
            found.add(name)
            pending += list_references(types[name])
    return found


def is_node(value: object) -> TypeGuard[Node]:
    """Return whether a part of a schema is an object."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether a part of a schema is a list."""
    return isinstance(value, list)


def list_references(node: object) -> Iterator[str]:
    """Yield the names of the types that a schema refers to."""
    if is_node(node):
        if isinstance(reference := node.get("$ref"), str):
            yield ref_name(reference)
        for below in node.values():
            yield from list_references(below)
    elif is_array(node):
        for below in node:
            yield from list_references(below)


def ref_name(reference: str) -> str:
    """Return the name of the type that a reference leads to."""
    return reference.rpartition("/")[2]
