"""Futures: plausible next revisions of the protocol, each a pinned schema with a few edits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.codegen.helpers import Schema
from tests.futures.edits import ADDITIONS, EDITS
from tests.futures.plan import NoPlaceError, Plan
from tests.paths import SCHEMA

__all__ = ["LATER", "Future", "make_future"]

LATER = "2031-05-01"
"""The version of every future: it is newer than all that are pinned."""


@dataclass(frozen=True)
class Future:
    """A schema that upstream may publish next."""

    seed: int
    number: int
    base: str
    """The revision that it was made from."""
    lines: list[str]
    """The edits, a line for each."""
    schema: Schema
    is_additive: bool = False
    """True if it leaves everything as it is that hand-written code of the runtime may use."""

    def __str__(self) -> str:
        return f"SEED={self.seed} ONLY={self.number}: {self.base}, but " + "; ".join(self.lines)


def make_future(seed: int, number: int) -> Future:
    """Make the future of a number. The same seed and number make the same one."""
    random = Random(f"{seed}-{number}")
    versions = _revisions()
    base = versions[-1] if random.random() < _NEWEST else random.choice(versions[:-1])
    plan = Plan(json.loads((SCHEMA / f"{base}.json").read_bytes()), random)
    count = random.choice(_COUNTS)
    lines: list[str] = []
    is_additive = True
    while len(lines) < count:
        before = json.dumps(plan.schema)
        edit = random.choice(EDITS)
        try:
            lines.append(edit(plan))
            is_additive = is_additive and edit in ADDITIONS
        except NoPlaceError:
            plan.schema = json.loads(before)
    return Future(seed, number, base, lines, plan.schema, is_additive)


_NEWEST = 0.75
"""The share of futures that are made from the newest revision."""
_COUNTS = (1, 1, 2, 2, 3, 4)


@cache
def _revisions() -> list[str]:
    pinned = json.loads((SCHEMA / "PINNED.json").read_bytes())
    return sorted(version for version in pinned if not version.startswith("ext/") and version != "draft")
