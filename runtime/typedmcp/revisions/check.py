"""Checks that the rules are complete: every converter between the dialect and an older revision is compiled once.

`docs/bumping.md` lists what needs a rule and what has a default. The check takes half a second, and its outcome
depends on nothing but the code. So the tests run it, and a runtime whose dialect has just moved, at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, get_args, get_origin

from mcpspec.support.converters import (
    Converter,
    ConverterCompiler,
    StructMember,
    declared_members,
    is_open,
    is_plain,
    is_struct,
    is_union,
    members_of,
)
from mcpspec.support.objects import spread_union
from typedmcp import dialect
from typedmcp.revisions.features import DIALECT, SUPPORTED, methods_of, structs_of
from typedmcp.revisions.input_requests import is_compiled
from typedmcp.revisions.results import exact_result_upgrader
from typedmcp.revisions.rules import DECIDED, downgrader, upgrader

__all__ = ["GapFinder", "MissingRulesError", "check_rules", "find_gaps"]

_RULES = "add a rule to mcpspec/support/rules.py"
_INPUT = "convert it in typedmcp/revisions/input_requests.py"
_RESULT = "convert it in typedmcp/revisions/results.py"
_METHOD = "handle it in typedmcp/server/dispatcher.py and typedmcp/client/incoming.py"
_CLIENT = "convert it in typedmcp/server/metadata.py and typedmcp/server/handshake.py"
_CAPABILITIES = "convert it in typedmcp/revisions/capabilities.py"
_TABLES = ("CLIENT_REQUESTS", "CLIENT_NOTIFICATIONS", "SERVER_REQUESTS", "SERVER_NOTIFICATIONS", "INPUT_REQUESTS")

_Report = Callable[[str, str, str], None]
"""Takes the name of a gap, the reason, and the remedy."""


class MissingRulesError(Exception):
    """The dialect has moved to a revision, and the rules for older revisions are not complete."""


def check_rules() -> None:
    """Raise `MissingRulesError` for what the rules lack, all at once."""
    gaps = find_gaps()
    if gaps:
        lines = "\n".join(f"  {gap}" for gap in gaps)
        text = f"the rules for older revisions are not complete for the dialect {DIALECT}:\n{lines}\n"
        raise MissingRulesError(text + "A name that needs no rule belongs in DECIDED, in typedmcp/revisions/rules.py.")


def find_gaps(used: set[str] | None = None) -> list[str]:
    """Return what the rules lack, each with its revisions, reason and remedy. Add the names in DECIDED to `used`."""
    reasons: dict[str, str] = {}
    revisions: dict[str, dict[str, None]] = {}

    def report(revision: str, name: str, reason: str, remedy: str) -> None:
        if name not in DECIDED:
            reasons.setdefault(name, f"{reason}; {remedy}")
            revisions.setdefault(name, {})[revision] = None
        elif used is not None:
            used.add(name)

    for revision in SUPPORTED[1:]:
        _check_methods(revision, partial(report, revision))
        _check_types(revision, partial(report, revision))
    return [f"{', '.join(revisions[name])}: {name}: {reasons[name]}" for name in sorted(reasons)]


def _check_methods(revision: str, report: _Report) -> None:
    known, older = dialect.methods, methods_of(revision)
    for table in _TABLES:
        for name in getattr(older, table).keys() - known.METHODS.keys():
            report(name, f"{DIALECT} has no such method", _METHOD)
    for name in known.INPUT_REQUESTS.keys() - older.METHODS.keys():
        report(name, "the revision has no such request for input", "reject it in typedmcp/server/input_requests.py")


def _check_types(revision: str, report: _Report) -> None:
    """Compile the converters of all messages that both revisions have."""
    types, older, known = structs_of(revision), methods_of(revision), dialect.methods.METHODS
    down = GapFinder(downgrader(revision), report, to_dialect=False)
    up = GapFinder(upgrader(), report, to_dialect=True)
    for method in _shared(older.CLIENT_REQUESTS, older.CLIENT_NOTIFICATIONS):
        up.check_params(method.params, known[method.name].exact.params)
        down.check_params(known[method.name].exact.params, method.params)
    for method in _shared(older.SERVER_NOTIFICATIONS):
        down.check(known[method.name].exact.params, method.params)
    results_up = GapFinder(exact_result_upgrader(revision), report, to_dialect=True)
    for method in _shared(older.CLIENT_REQUESTS):
        kinds = {kind.__name__: kind for kind in spread_union(known[method.name].exact.result)}
        for exact in spread_union(method.result):
            if exact.__name__ in kinds:
                down.check(kinds[exact.__name__], exact)
                results_up.check(exact, kinds[exact.__name__])
            else:
                report(exact.__name__, f"no result of {method.name} in {DIALECT}", _RESULT)
    for name in ("ServerCapabilities", "Implementation"):
        down.check(getattr(dialect.exact, name), getattr(types, name))
    _check_input(revision, report, up, down)
    as_json = {"Implementation": _CLIENT, "ClientCapabilities": _CLIENT, "ServerCapabilities": _CAPABILITIES}
    for name, remedy in as_json.items():
        _without_rules(report, remedy, to_dialect=True).check(getattr(types, name), getattr(dialect.exact, name))


def _check_input(revision: str, report: _Report, up: GapFinder, down: GapFinder) -> None:
    """Compile the converters of requests for input; some of these requests are converted as plain JSON."""
    types, older = structs_of(revision), methods_of(revision)
    for method in _shared(older.SERVER_REQUESTS):
        known = dialect.methods.METHODS[method.name].exact
        result: Any = known.result
        up.check(method.params, known.params)
        up.check(getattr(types, result.__name__), result)
        if is_compiled(method.name, revision):
            down.check(known.params, method.params)
        elif method.name != "sampling/createMessage":  # where content of unknown types becomes text
            _without_rules(report, _INPUT, to_dialect=False).check(known.params, method.params)


def _without_rules(report: _Report, remedy: str, *, to_dialect: bool) -> GapFinder:
    return GapFinder(ConverterCompiler({}), report, to_dialect=to_dialect, remedy=remedy)


def _shared(*tables: Mapping[str, Any]) -> Iterator[Any]:
    """Return the methods of a revision that the dialect has, too."""
    return (method.exact for table in tables for name, method in table.items() if name in dialect.methods.METHODS)


class GapFinder(ConverterCompiler):
    """Compiles converters like another compiler, and reports what they cannot express.

    `to_dialect` is the direction: from an older revision to the dialect.
    """

    def __init__(self, compiler: ConverterCompiler, report: _Report, *, to_dialect: bool, remedy: str = _RULES) -> None:
        super().__init__(compiler.rules, compiler.ignored, renamed=compiler.renamed, reuse=False)
        self._report = report
        self._remedy = remedy
        self._to_dialect = to_dialect
        self._place = ""
        """The member whose type is being compiled."""

    def check(self, source: Any, target: Any) -> None:
        self.between(source, target)

    def check_params(self, source: Any, target: Any) -> None:
        """Check parameters, which get their `_meta` from elsewhere."""
        if is_struct(source) and is_struct(target):
            self.with_meta(source, target)

    def handle_missing_member(self, name: str, target: Any) -> None:  # noqa: ARG002  # the base class raises with it
        self._add(name, "required, but without a source")

    def handle_unknown_type(self, name: str) -> None:
        at = f" in {self._place}" if self._place else ""
        self._add(name, f"{DIALECT} has no such type{at}" if self._to_dialect else f"unknown there{at}")

    def _add(self, name: str, reason: str) -> None:
        self._report(name, reason, self._remedy)

    def _compile(self, source: Any, target: Any) -> Converter | None:
        if _is_scalar(source) and _is_scalar(target) and not _fits(source, target):
            self._add(self._place, f"{_name(source)} in {self._side(0)}, {_name(target)} in {self._side(1)}")
        if is_open(source) and is_open(target):
            theirs = declared_members(target)
            for name, (hint, _) in declared_members(source).items():
                if name in theirs:
                    self.between(hint, theirs[name][0])
        return super()._compile(source, target)

    def _side(self, place: int) -> str:
        return DIALECT if bool(place) == self._to_dialect else "the revision"

    def _struct(self, source: Any, target: Any, given: str | None = None) -> Converter:
        mine, theirs, name = members_of(source), members_of(target), source.__name__
        lost = mine.keys() - theirs.keys() if self._to_dialect else theirs.keys() - mine.keys()
        moved = {old for n in theirs if n not in mine and (old := self.renamed.get(f"{name}.{n}"))}
        moved |= {n for n in theirs if self.renamed.get(f"{name}.{n}") in mine}
        for member in sorted(lost - moved - {"meta"}):
            is_required = not self._to_dialect and not theirs[member].optional  # `handle_missing_member` reports it
            if f"{name}.{member}" not in self.rules and not is_required:
                self._add(f"{name}.{member}", f"{DIALECT} has no such member")
        for n in (mine.keys() & theirs.keys()) - {given}:
            if mine[n].optional and not theirs[n].optional and f"{name}.{n}" not in self.rules:
                self._add(f"{name}.{n}", f"optional in {self._side(0)}, required in {self._side(1)}")
        return super()._struct(source, target, given)

    def _expression(
        self,
        type_name: str,
        name: str,
        source: str,
        members: Mapping[str, StructMember],
        theirs: StructMember,
        scope: dict[str, Any],
    ) -> str | None:
        outer, self._place = self._place, f"{type_name}.{name}"
        made = super()._expression(type_name, name, source, members, theirs, scope)
        self._place = outer
        return made


def _is_scalar(kind: Any) -> bool:
    return is_plain(kind) and not is_union(kind)


def _fits(source: Any, target: Any) -> bool:
    """Return whether a plain type has every value of another one."""
    if target is Any or source == target or (source, target) == (int, float):
        return True
    values = get_args(source)
    if get_origin(source) is not Literal:
        return False
    return set(values) <= set(get_args(target)) if get_origin(target) is Literal else isinstance(values[0], target)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind)) if isinstance(kind, type) else str(kind)
