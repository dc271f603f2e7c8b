"""Put the members of objects in the order of upstream's TypeScript (`schema/order.json`), else required ones first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from mcpspec_codegen.nodes import Schema, children, is_schema, map_children
from mcpspec_codegen.source import read_json
from mcpspec_codegen.typescript import Order

__all__ = ["Orders", "find_order", "keep_known", "list_members", "load_orders", "order_members", "save_orders"]

Orders: TypeAlias = dict[str, Order]
"""Version → the order of its members."""


def load_orders(folder: Path) -> Orders:
    """Read `order.json`, in which the members of an object are one text."""
    stored = read_json(folder / "order.json", dict[str, dict[str, str]])
    return {version: {place: text.split() for place, text in order.items()} for version, order in stored.items()}


def save_orders(orders: Orders, folder: Path) -> None:
    """Write `order.json`."""
    stored = {
        version: {place: " ".join(members) for place, members in sorted(orders[version].items())}
        for version in sorted(orders)
    }
    (folder / "order.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def find_order(orders: Orders, version: str) -> Order:
    """Return the order of a version: its own, or that of the newest version before it."""
    return orders[max(known)] if (known := [other for other in orders if other <= version]) else {}


def order_members(defs: dict[str, Schema], order: Order) -> dict[str, Schema]:
    """Return the definitions with their members in order. Unknown members come last, required ones before optional."""
    return {name: _ordered(node, name, order) for name, node in defs.items()}


def _ordered(node: Any, place: str, order: Order) -> Any:
    if not is_schema(node):
        return node
    properties = node.get("properties")
    others = {key: value for key, value in node.items() if key != "properties"}
    others = map_children(others, lambda child: _ordered(child, place, order))
    if properties is None:
        return others
    known = {name: rank for rank, name in enumerate(order.get(place, []))}
    names = sorted(properties, key=lambda name: (known.get(name, len(known)), name not in node.get("required", [])))
    return {**others, "properties": {name: _ordered(properties[name], f"{place}.{name}", order) for name in names}}


def list_members(defs: dict[str, Schema]) -> dict[str, set[str]]:
    """List the members of each object, by its place, such as `Tool.inputSchema`."""
    members: dict[str, set[str]] = {}
    for name, node in defs.items():
        for place, found in _objects(node, name):
            members.setdefault(place, set()).update(found)
    return members


def _objects(node: Any, place: str) -> Iterator[tuple[str, list[str]]]:
    if not is_schema(node):
        return
    yield place, list(node.get("properties", {}))
    for pointer, child in children(node):
        yield from _objects(child, f"{place}.{pointer[1]}" if pointer[0] == "properties" else place)


def keep_known(order: Order, members: dict[str, set[str]]) -> tuple[Order, list[str]]:
    """Return the part of an order that is about members of a schema, and the names that the schema lacks."""
    kept = {place: [name for name in names if name in members.get(place, ())] for place, names in order.items()}
    unknown = [
        f"{place}.{name}" for place, names in order.items() for name in names if name not in members.get(place, ())
    ]
    return {place: names for place, names in kept.items() if len(names) > 1}, unknown
