"""Codecs: bytes to typed messages, and back.

Each contender is a process of its own, told message by message what to do; they take turns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from bench.corpus import MESSAGES, message
from bench.plan import Found, Measure, Plan, say, started_anew
from bench.results import Row, Table
from bench.suites._processes import Process, ask, note, started

__all__ = ["CONTENDERS", "OFFICIAL", "tables"]

OFFICIAL = "official mcp_types"
CONTENDERS = {
    "typedmcp structs (msgspec)": "structs",
    "typedmcp structs, open objects unchecked": "structs_hot",
    "typedmcp models (Pydantic)": "models",
    OFFICIAL: "official",
    "msgspec, untyped": "untyped",
    "orjson, untyped": "with_orjson",
    "json, untyped": "stdlib",
}
WORKER = "bench.contenders.codecs.worker"
COLUMNS = ["decode + encode", "decode", "encode", "reject"]
QUICK_MESSAGES = ("tools-call", "tools-list-50")
SIZES = (1, 10, 100, 1000)
"""How many tools are in the lists that show how the cost grows."""
SHARE = 0.5
"""How much of the time for one figure an operation gets, in all parts together: there are many."""
ROUNDS, PARTS = 3, 9
"""How many rounds there are at least, and in how many short parts each is, so that ratios are steady in a hurry too."""

Place: TypeAlias = tuple[str, str]
"""A message, and what is done with it."""


def tables(plan: Plan) -> Iterator[Table]:
    """A table for each message, and one that shows how cost grows with size."""
    names = QUICK_MESSAGES if plan.quick else MESSAGES
    sizes = [] if plan.quick else [*map(_of_size, SIZES)]
    say(f"codecs: {', '.join(names)}")
    each = replace(plan, rounds=max(plan.rounds, ROUNDS), parts=PARTS)
    seconds = plan.seconds * SHARE / PARTS
    workers = {
        who: partial(_measuring, who, module, dict.fromkeys([*names, *sizes]), seconds)
        for who, module in CONTENDERS.items()
    }
    found = started_anew(workers, each, min)
    yield from (_table(name, found) for name in names)
    if sizes:
        yield _growth(found)


def _of_size(tools: int) -> str:
    return f"tools-list-{tools}"


@contextmanager
def _measuring(who: str, module: str, names: Iterable[str], seconds: float) -> Generator[Sequence[Measure[Place]]]:
    """A worker; a measure for each message."""
    with started(who, [sys.executable, "-m", WORKER, module]) as worker:
        ask(worker)  # it has imported what it needs
        yield [partial(measure, worker, name, seconds) for name in names]


def measure(worker: Process, of: str, seconds: float) -> Mapping[Place, float]:
    """Microseconds by operation on a message; nothing if the contender takes no part in it."""
    found: dict[str, float] | None = json.loads(ask(worker, json.dumps({"message": of, "seconds": seconds}), seconds))
    return {(of, operation): took for operation, took in (found or {}).items()}


def _rows(found: Found[str, Place], places: Mapping[str, Place]) -> list[Row]:
    """What each contender has reached in some places, by column."""
    return [
        Row(who, {column: figures[place] for column, place in places.items() if place in figures}, note(found, who))
        for who, figures in found.items()
    ]


def _table(name: str, found: Found[str, Place]) -> Table:
    given = message(name)
    rows = [row for row in _rows(found, {of: (name, of) for of in COLUMNS}) if row.figures or row.note]
    return Table(
        name=f"codecs/{name}",
        title=given.title,
        about=(
            f"How long a codec takes from the bytes of this message ({len(given.data):,} of them, revision "
            f"{given.revision}) to an object, and back. `reject` is how long it takes to refuse one with a value of a "
            "wrong type inside; the untyped codecs cannot."
        ),
        unit="µs",
        better="lower",
        reference=OFFICIAL if (name, COLUMNS[0]) in found[OFFICIAL] else next(iter(CONTENDERS)),
        columns=COLUMNS,
        rows=rows,
    )


def _growth(found: Found[str, Place]) -> Table:
    places = {str(size): (_of_size(size), COLUMNS[0]) for size in SIZES}
    return Table(
        name="codecs/growth",
        title="Lists of more and more tools",
        about="How long decoding and encoding a list of tools takes, by how many there are. As steep as the grey line "
        "is in proportion to the size; steeper would be worse than that.",
        unit="µs",
        better="lower",
        reference=OFFICIAL,
        columns=[*places],
        rows=_rows(found, places),
        kind="lines",
    )
