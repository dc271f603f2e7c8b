"""The check that the rules are complete: the kinds of gaps that it finds, and that the present dialect has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from mcpspec.support.converters import ConverterCompiler
from tests.cases import each
from typedmcp.revisions.check import GapFinder, check_rules, find_gaps
from typedmcp.revisions.features import CHECKED_DIALECT, DIALECT
from typedmcp.revisions.rules import DECIDED


def test_the_rules_are_complete_for_the_dialect() -> None:
    check_rules()
    assert CHECKED_DIALECT == DIALECT, "the rules are complete: name the dialect in CHECKED_DIALECT (features.py)"


def test_every_decided_name_would_be_reported_otherwise() -> None:
    used: set[str] = set()
    find_gaps(used)
    assert used == DECIDED.keys()


def _struct(name: str, *members: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(name, [*members], kw_only=True)


def _thing(*members: Any) -> type[msgspec.Struct]:
    return _struct("Thing", *members)


class Text(msgspec.Struct):
    text: str


class Picture(msgspec.Struct):
    data: str


OPTIONAL = ("a", str | UnsetType, UNSET)
KINDS: dict[str, tuple[Any, Any, dict[str, str]]] = {
    "a member that the older revision requires": (_thing(), _thing(("a", str)), {"Thing.a": "required, but"}),
    "a member that the older revision alone has": (_thing(), _thing(OPTIONAL), {"Thing.a": "has no such member"}),
    "a member that the dialect alone has": (_thing(OPTIONAL), _thing(), {}),
    "a member that the dialect makes optional": (_thing(OPTIONAL), _thing(("a", str)), {"Thing.a": "optional in"}),
    "a member that the dialect requires": (_thing(("a", str)), _thing(OPTIONAL), {}),
    "a member of another type": (_thing(("a", str)), _thing(("a", int)), {"Thing.a": "str in"}),
    "a member with more values": (
        _thing(("a", Literal["x", "y"])),
        _thing(("a", Literal["x"])),
        {"Thing.a": "Literal"},
    ),
    "a member with fewer values": (_thing(("a", Literal["x"])), _thing(("a", Literal["x", "y"])), {}),
    "a type that the dialect alone has": (
        _thing(("a", list[Text | Picture])),
        _thing(("a", list[Text])),
        {"Picture": "unknown there in Thing.a"},
    ),
    "a plain type that the dialect alone has": (_thing(("a", str | int)), _thing(("a", str)), {"int": "in Thing.a"}),
    "the same": (_thing(("a", str)), _thing(("a", str)), {}),
}
"""Types of the dialect and of an older revision, with the gaps of the conversion to the older one."""


@each("kind", KINDS)
def test_a_difference_that_needs_a_rule_is_a_gap(kind: str) -> None:
    newer, older, expected = KINDS[kind]
    found: dict[str, str] = {}
    _finder(found.__setitem__, to_dialect=False).check(newer, older)
    assert found.keys() == expected.keys()
    assert all(text in found[name] for name, text in expected.items()), found


def _finder(report: Callable[[str, str], None], *, to_dialect: bool, **options: Any) -> GapFinder:
    rules = options.pop("rules", {})
    return GapFinder(
        ConverterCompiler(rules, **options), lambda name, reason, _: report(name, reason), to_dialect=to_dialect
    )


OLD, NEW = _thing(("old", str)), _thing(("new", str))


@each("source, target, is_up", [(NEW, OLD, False), (OLD, NEW, True)], ids=["downgrade", "upgrade"])
def test_a_rule_or_a_renamed_member_closes_a_gap(source: Any, target: Any, is_up: bool) -> None:
    mine, theirs = ("old", "new") if is_up else ("new", "old")
    found: dict[str, str] = {}
    _finder(found.__setitem__, to_dialect=is_up, renamed={f"Thing.{theirs}": mine}).check(source, target)
    assert found == {}
    convert = ConverterCompiler({}, renamed={f"Thing.{theirs}": mine}).between(source, target)
    assert convert is not None
    lost: list[str] = []
    assert convert(source(**{mine: "x"}), lost) == target(**{theirs: "x"})
    assert lost == []
    _finder(found.__setitem__, to_dialect=is_up).check(source, target)
    assert "Thing.old" in found
