"""Codecs: bytes to typed messages, and back.

Each contender is a process of its own, told message by message what to do; they take turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.corpus import MESSAGES, message
from bench.plan import Plan, in_turns, say
from bench.results import Row, Table

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
COLUMNS = ["decode + encode", "decode", "encode", "reject"]
QUICK_MESSAGES = ("tools-call", "tools-list-50")
SIZES = (1, 10, 100, 1000)
"""How many tools are in the lists that show how the cost grows."""
PART = 0.1
"""How much of a turn's time one operation gets: there are many,"""
LEAST = 0.02
"""but not less than so many seconds,"""
ROUNDS = 5
"""and not fewer rounds, so that ratios are steady in a hurry too."""
PATIENCE = 120


class Worker:
    """A contender's process."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name = name
        self._process = process

    def measure(self, of: str, seconds: float) -> Mapping[str, float]:
        """Microseconds by operation; nothing if it takes no part. Raises `RuntimeError` if it cannot."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"message": of, "seconds": seconds}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended at {of}; what it said of that is above")
        found: dict[str, float] | None = json.loads(line)
        return found or {}


@contextmanager
def working(name: str, module: str) -> Generator[Worker]:
    """The process of a contender."""
    command = [sys.executable, "-m", "bench.contenders.codecs.worker", module]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield Worker(name, process)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def tables(plan: Plan) -> Iterator[Table]:
    """A table for each message, and one that shows how cost grows with size."""
    with ExitStack() as stack:
        workers = {name: stack.enter_context(working(name, module)) for name, module in CONTENDERS.items()}
        for name in QUICK_MESSAGES if plan.quick else MESSAGES:
            say(f"codecs: {name}")
            yield _table(name, workers, plan)
        if not plan.quick:
            say("codecs: growth")
            yield _growth(workers, plan)


def _table(name: str, workers: Mapping[str, Worker], plan: Plan) -> Table:
    found = in_turns(
        {who: partial(worker.measure, name, max(plan.seconds * PART, LEAST)) for who, worker in workers.items()},
        max(plan.rounds, ROUNDS),
    )
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


def _growth(workers: Mapping[str, Worker], plan: Plan) -> Table:
    def sizes(worker: Worker) -> Mapping[str, float]:
        per_size = {size: worker.measure(f"tools-list-{size}", plan.seconds * PART / 2) for size in SIZES}
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
