"""Gaps between a modern revision and older ones, for which nobody has decided anything."""

from __future__ import annotations

from mcpspec_codegen.conversions.pair import Pair
from mcpspec_codegen.conversions.revision import ConversionFacts, Revision

__all__ = ["find_conversion_gaps", "find_gaps_between", "find_unused_decisions"]


def find_conversion_gaps(modern: Revision, revisions: list[Revision], facts: ConversionFacts) -> list[str]:
    """List what older revisions need for a modern one and nobody has decided: name, reason, and what to do."""
    return find_gaps_between(modern, [each for each in revisions if each.version < modern.version], facts)


def find_gaps_between(modern: Revision, others: list[Revision], facts: ConversionFacts) -> list[str]:
    """List the same for some revisions, oldest first. Legacy ones may be newer than the modern one."""
    reasons: dict[str, str] = {}
    found_in: dict[str, list[str]] = {}
    for older in reversed(others):
        for name, reason in _gaps_of(modern, older, facts).items():
            if name not in facts["decided"]:
                reasons.setdefault(name, reason)
                found_in.setdefault(name, []).append(older.version)
    return [f"{', '.join(found_in[name])}: {name}: {reasons[name]}" for name in sorted(reasons)]


def find_unused_decisions(revisions: list[Revision], facts: ConversionFacts) -> list[str]:
    """List the names in `decided` that no pair of revisions needs."""
    used = {
        name
        for modern in revisions
        if modern.is_modern
        for older in revisions
        if older.version < modern.version
        for name in _gaps_of(modern, older, facts)
    }
    return sorted(facts["decided"].keys() - used)


_RULE = "add it to `conversions` in schema/supplement.json, or a rule to mcpspec_codegen/conversions/pair.py"
_METHOD = "handle it in typedmcp/server/built_in.py and typedmcp/client/incoming/handler.py"


def _gaps_of(modern: Revision, older: Revision, facts: ConversionFacts) -> dict[str, str]:
    gaps = {
        name: f"{modern.version} has no such method; {_METHOD}" for name in older.methods if name not in modern.methods
    }
    gaps |= {
        name: "the revision has no such request for input; reject it in typedmcp/server/input_requests.py"
        for name, method in modern.methods.items()
        if method.kind == "input" and name not in older.methods
    }
    gaps |= {
        name: f"{method.params} is open in {modern.version}; decode it in typedmcp/protocol/codec.py"
        for name, method in modern.methods.items()
        if modern.is_kind(method.params, "open")
        and name in older.methods
        and older.is_kind(older.methods[name].params, "record")
    }
    pairs = [Pair(older, modern, facts, is_upgrade=True), Pair(modern, older, facts, is_upgrade=False)]
    for pair in pairs:
        assert pair.methods is not None
        gaps |= {name: f"{reason}; {_RULE}" for name, reason in pair.gaps.items() if name not in gaps}
    for name, method in older.methods.items():
        if name in modern.methods and method.result is not None:
            mine, theirs = pairs[0].options_of(method.result, modern.methods[name].result)
            for result in mine:
                if result not in theirs and theirs:
                    gaps[result] = f"no result of {name} in {modern.version}; convert it in typedmcp/revisions"
    return gaps
