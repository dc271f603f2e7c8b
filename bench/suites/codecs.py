"""Codecs: bytes to typed messages, and back.

Each contender is a process of its own, told message by message what to do; they take turns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial

from bench.corpus import MESSAGES, message
from bench.plan import Plan, in_turns, say
from bench.results import Figures, Row, Table
from bench.suites._processes import Process, ask, started

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
PART = 0.5
"""How much of a turn's part one operation gets: there are many;"""
ROUNDS = 5
"""and at least so many rounds, so that ratios are steady in a hurry too."""


def measure(worker: Process, of: str, seconds: float) -> Mapping[str, float]:
    """Microseconds by operation; nothing if the contender takes no part. Raises `RuntimeError` if it cannot."""
    found: dict[str, float] | None = json.loads(ask(worker, json.dumps({"message": of, "seconds": seconds}), seconds))
    return found or {}


def tables(plan: Plan) -> Iterator[Table]:
    """A table for each message, and one that shows how cost grows with size."""
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(started(name, [sys.executable, "-m", WORKER, module]))
            for name, module in CONTENDERS.items()
        }
        names = QUICK_MESSAGES if plan.quick else MESSAGES
        say(f"codecs: {', '.join(names)}")
        turns = {
            (name, who): partial(measure, worker, name, plan.seconds * PART)
            for name in names
            for who, worker in workers.items()
        }
        # All messages in each round: a shared machine keeps a speed for a while, which one whose rounds follow each
        # other would take for the only one there is.
        found = in_turns(turns, max(plan.rounds, ROUNDS))
        for name in names:
            yield _table(name, {who: found[name, who] for who in workers})
        if not plan.quick:
            say("codecs: growth")
            yield _growth(workers, plan)


def _table(name: str, found: Mapping[str, dict[str, Figures]]) -> Table:
    given = message(name)
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
        reference=OFFICIAL if found[OFFICIAL] else next(iter(CONTENDERS)),
        columns=COLUMNS,
        rows=[Row(who, figures) for who, figures in found.items() if figures],
    )


def _growth(workers: Mapping[str, Process], plan: Plan) -> Table:
    def sizes(worker: Process) -> Mapping[str, float]:
        per_size = {size: measure(worker, f"tools-list-{size}", plan.seconds * PART / 2) for size in SIZES}
        return {str(size): figures["decode + encode"] for size, figures in per_size.items()}

    found = in_turns({who: partial(sizes, worker) for who, worker in workers.items()}, max(3, plan.rounds // 3))
    return Table(
        name="codecs/growth",
        title="Lists of more and more tools",
        about="How long decoding and encoding a list of tools takes, by how many there are. As steep as the grey line "
        "is in proportion to the size; steeper would be worse than that.",
        unit="µs",
        better="lower",
        reference=OFFICIAL,
        columns=[str(size) for size in SIZES],
        rows=[Row(who, figures) for who, figures in found.items()],
        kind="lines",
    )
