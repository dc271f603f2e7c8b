"""Find the changes between two interfaces, and whom each one breaks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from typedmcp_cli.comparison.containment import Containment
from typedmcp_cli.comparison.descriptions import describe_change, describe_member, describe_method, describe_type
from typedmcp_cli.comparison.fingerprints import Fingerprints
from typedmcp_cli.comparison.interfaces import (
    SIDES,
    InterfaceShape,
    MethodShape,
    Node,
    Side,
    find_senders,
    other_side,
)

__all__ = ["VERDICTS", "Change", "Hit", "Verdict", "find_changes"]

Verdict: TypeAlias = Literal["breaking", "compatible", "words"]
VERDICTS: Final[tuple[Verdict, ...]] = ("breaking", "compatible", "words")
"""Worst first."""


class Hit(NamedTuple):
    """A side that a change breaks, as the one that sends a value, or as the one that gets it."""

    side: Side
    role: Literal["send", "get"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a type, a member, a method or an error code."""

    kind: Literal["type", "member", "method", "code"]
    name: str
    old: str | None
    """The description before; None for what was added."""
    new: str | None
    """The description now; None for what was removed."""
    text: str
    """The change in words, for people."""
    hits: tuple[Hit, ...]
    is_seen: bool = True
    """False if no message shows the change."""

    @property
    def sign(self) -> str:
        """`+` for added, `-` for removed, `~` for changed."""
        return "+" if self.old is None else "-" if self.new is None else "~"

    @property
    def verdict(self) -> Verdict:
        """The meaning of the change for peers."""
        return "breaking" if self.hits else "compatible" if self.is_seen else "words"


class _Effect(NamedTuple):
    """The effect of a change on the values of a type. A change without any may still add optional members."""

    narrows: bool
    """True if values of the old type may be refused now, or may lose a part."""
    widens: bool
    """True if values of the new type may be unknown to those who know the old one, or lack a part."""

    is_seen: bool = True
    """False if nothing but names has changed."""

    def also(self, other: _Effect) -> _Effect:
        """Return the effect of both."""
        pairs = zip(self, other, strict=True)
        return _Effect(*(one or another for one, another in pairs))


def find_changes(old: InterfaceShape, new: InterfaceShape) -> list[Change]:
    """Find all changes, the worst first, then by kind and name.

    The members of types that were added or removed are no changes of their own, nor is the order of anything.
    """
    found = [*_ChangeFinder(old, new).changes()]
    kinds = ("method", "type", "member", "code")
    return sorted(found, key=lambda each: (VERDICTS.index(each.verdict), kinds.index(each.kind), each.name))


class _ChangeFinder:
    def __init__(self, old: InterfaceShape, new: InterfaceShape) -> None:
        self._old = old
        self._new = new
        self._backward = Containment(new.types, old.types)
        self._forward = Containment(old.types, new.types)
        self._prints = Fingerprints(old.types), Fingerprints(new.types)
        before, after = find_senders(old), find_senders(new)
        self._senders = {name: before.get(name, frozenset()) | after.get(name, frozenset()) for name in before | after}

    def changes(self) -> Iterator[Change]:
        yield from self._methods()
        yield from self._types()
        yield from self._codes()

    # Types and their members

    def _types(self) -> Iterator[Change]:
        old, new = self._old.types, self._new.types
        renamed = dict(self._renamed())
        for name in sorted({*old, *new} - {*renamed} - {*renamed.values()}):
            if name in old and name in new:
                yield from self._type(name, old[name], new[name])
            else:  # what uses it has changed, too
                text = describe_type(old[name] if name in old else new[name])  # `{}` is any value
                yield _change("type", name, text if name in old else None, text if name in new else None, is_seen=False)
        for name, other in renamed.items():
            yield Change("type", name, name, other, f"{name} => {other}", (), is_seen=False)

    def _renamed(self) -> Iterator[tuple[str, str]]:
        """Yield the types that have another name now, and are as before."""
        removed = [name for name in self._old.types if name not in self._new.types]
        added = [name for name in self._new.types if name not in self._old.types]
        for name, node in self._old.types.items():
            if name not in self._new.types and "properties" in node:
                before = [other for other in removed if self._old.types[other] == node]
                after = [other for other in added if self._new.types[other] == node]
                if len(before) == len(after) == 1:
                    yield name, after[0]

    def _type(self, name: str, old: Node, new: Node) -> Iterator[Change]:
        if "properties" in old and "properties" in new:
            yield from self._object(name, old, new)
            for member in sorted({*old["properties"], *new["properties"]}):
                yield from self._member(name, member, old, new)
        else:
            effect = self._compare(old, new)
            if change := self._describe(old, new) or _in_detail(effect):
                yield self._judge("type", name, (describe_type(old), describe_type(new)), change, effect)

    def _object(self, name: str, old: Node, new: Node) -> Iterator[Change]:
        """Yield the change of what an object has beside its members: other members, and limits of the whole."""
        texts = describe_type(old), describe_type(new)
        before, after = (
            {key: value for key, value in node.items() if key not in ("properties", "required")} for node in (old, new)
        )
        effect = self._compare(before, after)
        if text := " => ".join(texts) if texts[0] != texts[1] else _in_detail(effect):
            yield self._judge("type", name, texts, text, effect)

    def _member(self, name: str, member: str, old: Node, new: Node) -> Iterator[Change]:
        place = f"{name}.{member}"
        before, after = (node["properties"].get(member) for node in (old, new))
        was_required, is_required = (member in node.get("required", []) for node in (old, new))
        texts = [
            None if node is None else describe_member(node, is_required=required)
            for node, required in ((before, was_required), (after, is_required))
        ]
        if before is None or after is None:
            effect = _Effect(
                narrows=is_required or after is None, widens=was_required or (before is None and _is_closed(old))
            )
            yield self._judge("member", place, (texts[0], texts[1]), "", effect)
            return
        effect = self._compare(before, after)
        words = [self._describe(before, after) or _in_detail(effect)]
        if was_required != is_required:
            words.append("required now" if is_required else "optional now")
            effect = effect.also(_Effect(narrows=is_required, widens=was_required))
        if text := ", ".join(filter(None, words)):
            yield self._judge("member", place, (texts[0], texts[1]), text, effect)

    def _describe(self, old: Node, new: Node) -> str:
        return describe_change(old, new, self._old.types, self._new.types)

    def _compare(self, old: Node, new: Node) -> _Effect:
        narrows, widens = not self._backward.accepts(new, old), not self._forward.accepts(old, new)
        before, after = self._prints
        return _Effect(narrows, widens, is_seen=narrows or widens or before.of(old) != after.of(new))

    def _judge(
        self,
        kind: Literal["type", "member"],
        name: str,
        texts: tuple[str | None, str | None],
        text: str,
        effect: _Effect,
    ) -> Change:
        senders = self._senders[name.partition(".")[0]]
        return _change(kind, name, *texts, text, _hits(senders, effect), is_seen=bool(senders) and effect.is_seen)

    # Methods

    def _methods(self) -> Iterator[Change]:
        old, new = self._old.methods, self._new.methods
        for name in sorted({*old, *new}):
            before, after = old.get(name), new.get(name)
            texts = [None if each is None else describe_method(each) for each in (before, after)]
            if before is None or after is None:
                hits = () if before is None else _hits(before.senders, _removed(before))
                yield _change("method", name, texts[0], texts[1], "", hits)
            elif texts[0] != texts[1]:
                words, hits, is_seen = self._method(before, after)
                yield _change("method", name, texts[0], texts[1], ", ".join(words), hits, is_seen=is_seen)

    def _method(self, old: MethodShape, new: MethodShape) -> tuple[list[str], tuple[Hit, ...], bool]:
        """Return what has changed about a method, whom it breaks, and whether messages show it."""
        parts = [*self._parts(old, new)]
        hits = dict.fromkeys(hit for _, sides, effect in parts for hit in _hits(sides, effect))
        return [text for text, _, _ in parts], (*hits,), any(effect.is_seen for _, _, effect in parts)

    def _parts(self, old: MethodShape, new: MethodShape) -> Iterator[tuple[str, Sequence[Side], _Effect]]:
        """Yield what has changed about a method, the sides that send it, and the effect."""
        if old.kind != new.kind:
            yield f"{old.kind} => {new.kind}", SIDES, _Effect(narrows=True, widens=True)
        if old.sender != new.sender:
            lost: list[Side] = [side for side in old.senders if side not in new.senders]
            yield f"sent by {old.sender} => {new.sender}", lost, _removed(old)
        senders: list[Side] = [side for side in SIDES if side in (*old.senders, *new.senders)]
        if old.params != new.params:
            effect = self._compare(_as_params(old), _as_params(new))
            yield f"params {self._describe_names(old.params, new.params)}", senders, effect
        if old.params_required != new.params_required:
            effect = _Effect(narrows=new.params_required, widens=not new.params_required)
            yield "params required now" if new.params_required else "params optional now", senders, effect
        if old.result != new.result:
            effect = self._compare(_named(old.result), _named(new.result))
            answering: list[Side] = [other_side(side) for side in senders]
            yield f"returns {self._describe_names(old.result, new.result)}", answering, effect

    def _describe_names(self, old: str | None, new: str | None) -> str:
        words = self._describe(_named(old), _named(new)) if old and new else ""
        return words or f"{old or 'nothing'} => {new or 'nothing'}"

    # Error codes

    def _codes(self) -> Iterator[Change]:
        old, new = self._old.codes, self._new.codes
        for name in sorted({*old, *new}):
            before, after = old.get(name), new.get(name)
            if before != after:
                texts = [None if code is None else str(code) for code in (before, after)]
                hits = () if before is None else tuple(Hit(side, "get") for side in SIDES)
                yield _change("code", name, texts[0], texts[1], f"{before} => {after}", hits)


def _change(
    kind: Literal["type", "member", "method", "code"], name: str, old: str | None, new: str | None, text: str = "",
    hits: tuple[Hit, ...] = (), *, is_seen: bool = True,
) -> Change:  # fmt: skip
    """Return a change. What was added or removed is described by what it is or was."""
    return Change(kind, name, old, new, (old or "" if new is None else new if old is None else text), hits, is_seen)


def _hits(senders: Collection[Side], effect: _Effect) -> tuple[Hit, ...]:
    """Return whom a change of what some sides send breaks."""
    hits = [Hit(side, "send") for side in SIDES if effect.narrows and side in senders]
    hits += [Hit(other_side(side), "get") for side in SIDES if effect.widens and side in senders]
    return tuple(hits)


def _removed(method: MethodShape) -> _Effect:
    """Return the effect of removing a method: nobody answers it, and nobody is told any more what it tells."""
    return _Effect(narrows=True, widens=method.kind == "notification")


def _in_detail(effect: _Effect) -> str:
    """Return the text of a change that the descriptions of both types do not show, if there is one."""
    return "other values" if effect.narrows or effect.widens else ""


def _is_closed(node: Node) -> bool:
    return node.get("additionalProperties") is False


def _as_params(method: MethodShape) -> Mapping[str, Any]:
    return {"type": "object", "additionalProperties": {}} if method.params is None else _named(method.params)


def _named(name: str | None) -> Mapping[str, Any]:
    return {"type": "null"} if name is None else {"$ref": f"#/$defs/{name}"}
