"""The page of all limits in the reference, made from their descriptions in the code: `python -m tests.docs.site`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields as fields_of

from msgspec.structs import fields

from typedmcp.limits import Limits
from typedmcp.stores import StoreLimits
from typedmcp_extensions.tasks import TaskLimits

__all__ = ["DATACLASSES", "render"]

DATACLASSES = (StoreLimits, TaskLimits)
"""The limits besides `Limits`, in the order of the page."""

_PART = re.compile(
    r'^    (?:# (?P<title>[^\n]+)|(?P<name>\w+): \w+ = [^\n]+\n    """(?P<text>.*?)""")$', re.MULTILINE | re.DOTALL
)
_HEAD = "| limit | default | unit | when it is reached |\n|---|---|---|---|\n"


def render() -> str:
    """Render all limits as a page, with one table for each heading in the code."""
    defaults: dict[str, float] = {field.name: field.default for field in fields(Limits)}
    rows = [*_tables(Limits, defaults)]
    for kind in DATACLASSES:
        rows += _tables(kind, {field.name: getattr(kind, field.name) for field in fields_of(kind)})
    return f"# Limits\n\nAll limits and their defaults. [Limits](../limits.md) describes budgets.\n{''.join(rows)}"


def _tables(kind: type, defaults: Mapping[str, float]) -> Iterator[str]:
    for part in _PART.finditer(inspect.getsource(kind)):
        if part["title"] is not None:
            yield f"\n## {part['title']}\n\n{_HEAD}"
        else:
            yield _row(part["name"], defaults[part["name"]], part["text"])


def _row(name: str, default: float, text: str) -> str:
    counted, _, consequence = (" ".join(each.split()) for each in text.partition("\n\n"))
    if not counted.endswith(".") or not consequence.endswith("."):
        raise ValueError(f"{name}: the description needs a sentence for what is counted, and one for what happens")
    unit = counted[0].lower() + counted[1:-1]
    return f"| `{name}` | {_amount(name, default)} | {unit} | {consequence} |\n"


def _amount(name: str, default: float) -> str:
    if name.endswith("_bytes"):
        for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if default % size == 0:
                return f"{default // size:,.0f} {unit}"
    return f"{default:,.0f}"
