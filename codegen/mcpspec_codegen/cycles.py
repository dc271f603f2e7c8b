"""Find the definitions that refer to themselves, in a time that grows with their references."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from mcpspec_codegen.budget import spend

__all__ = ["find_recursive", "reachable"]

_Graph: TypeAlias = Mapping[str, set[str]]
"""Name → the names that it refers to."""


def find_recursive(graph: _Graph) -> set[str]:
    """Return the names that refer to themselves, also by way of others."""
    left = _reverse(_without_ends(_reverse(_without_ends(graph))))  # what is on cycles, or between them
    return {name for name in left if name in reachable(left, name)}


def reachable(graph: _Graph, start: str) -> set[str]:
    """Return the names that one refers to, also by way of others. Each counts as a step."""
    seen: set[str] = set()
    todo = [*graph[start]]
    while todo:
        name = todo.pop()
        if name not in seen:
            spend(1, ("$defs", start))
            seen.add(name)
            todo += graph[name]
    return seen


def _without_ends(graph: _Graph) -> _Graph:
    """Return the part of a graph that leads to a cycle."""
    sorter = TopologicalSorter(graph)
    with suppress(CycleError):  # it sorts what leads to none all the same
        sorter.prepare()
    ends: set[str] = set()
    while ready := sorter.get_ready():
        ends.update(ready)
        sorter.done(*ready)
    return {name: names - ends for name, names in graph.items() if name not in ends}


def _reverse(graph: _Graph) -> _Graph:
    made: dict[str, set[str]] = {name: set() for name in graph}
    for name, names in graph.items():
        for other in names:
            made[other].add(name)
    return made
