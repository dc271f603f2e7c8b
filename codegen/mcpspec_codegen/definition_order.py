"""The order in which a module has its definitions: alphabetical, each after those that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Set
from heapq import heapify, heappop, heappush

from mcpspec_codegen.cycles import find_recursive

__all__ = ["order_definitions"]


def order_definitions(needed: Mapping[str, Set[str]], bases: Mapping[str, Set[str]]) -> list[str]:
    """Order names, given those that each one needs before it, and the bases among them.

    Where names need each other, only their bases come before them.
    """
    waiting = {name: {*names} - {name} for name, names in needed.items()}
    users: dict[str, list[str]] = {name: [] for name in needed}
    for name, names in waiting.items():
        for other in names:
            users[other].append(name)
    ready = [name for name, names in waiting.items() if not names]
    heapify(ready)
    recursive = sorted(find_recursive(waiting))
    ordered: dict[str, None] = {}
    while waiting:
        if not ready:
            ready = [next(name for name in recursive if name in waiting and bases[name] <= ordered.keys())]
        name = heappop(ready)
        ordered[name] = None
        del waiting[name]
        for user in users[name]:
            if user in waiting:
                waiting[user].discard(name)
                if not waiting[user]:
                    heappush(ready, user)
    return [*ordered]
