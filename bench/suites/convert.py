"""Conversion of values between revisions. Each contender has its own process, and they take turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from bench.contenders.conversion import DIRECTIONS, VALUES
from bench.plan import Measure, Measurements, Plan, log, measure_restarting
from bench.results import Row, Table
from bench.suites.codecs import MIN_ROUNDS, PARTS, SHARE
from bench.suites.processes import Process, describe_failure, exchange_line, start_process

__all__ = ["CONTENDERS", "Way", "measure_tables"]


class Way(NamedTuple):
    """A contender: its module in `bench.contenders.conversion`, and what it checks."""

    module: str
    checks: str


REFERENCE = "msgspec into the other types"
CONTENDERS = {
    "typedmcp, mcpspec.convert": Way(
        "typedmcp_convert", "what is lost, and names it; also the result, if something is lost or may be invalid"
    ),
    REFERENCE: Way("msgspec_convert", "the result, not what is lost"),
    "text, decoded again": Way("text_again", "the result, not what is lost"),
}
WORKER = "bench.contenders.conversion.worker"

Operation: TypeAlias = tuple[str, str]
"""A direction and a value."""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield a table for each direction."""
    log(f"convert: {', '.join(VALUES)}")
    each = replace(plan, rounds=max(plan.rounds, MIN_ROUNDS), parts=PARTS)
    workers = {
        contender: partial(_run_worker, contender, way.module, plan.seconds * SHARE / PARTS)
        for contender, way in CONTENDERS.items()
    }
    found = measure_restarting(workers, each, min)
    yield from (_table(direction, found) for direction in DIRECTIONS)


@contextmanager
def _run_worker(contender: str, module: str, seconds: float) -> Generator[Sequence[Measure[Operation]]]:
    """Run a worker, and yield a measure for each operation."""
    with start_process(contender, [sys.executable, "-m", WORKER, module]) as worker:
        exchange_line(worker)  # wait until it is ready
        yield [partial(_measure, worker, (of, value), seconds) for of in DIRECTIONS for value in VALUES]


def _measure(worker: Process, operation: Operation, seconds: float) -> Mapping[Operation, float]:
    """Return the microseconds of an operation; nothing if the contender does not support it."""
    request = {"direction": operation[0], "value": operation[1], "seconds": seconds}
    found: float | None = json.loads(exchange_line(worker, json.dumps(request), seconds))
    return {} if found is None else {operation: found}


def _table(direction: str, found: Measurements[str, Operation]) -> Table:
    source, to = DIRECTIONS[direction]
    measured = {operation for figures in found.values() for operation in figures}
    columns = [value for value in VALUES if (direction, value) in measured]
    return Table(
        name=f"convert/{direction}",
        title=f"Conversion from {source} to {to}",
        about="How long it takes to convert an exact struct: a result with two blocks of text, a list of 50 tools, and "
        "the call of a tool. `with loss` has a member that the other revision cannot express. A request of a modern "
        "revision has members in `_meta` that older ones lack.",
        unit="µs",
        better="lower",
        reference=REFERENCE,
        columns=columns,
        rows=[
            Row(
                contender,
                {value: figures[direction, value] for value in columns if (direction, value) in figures},
                describe_failure(found, contender),
                CONTENDERS[contender].checks,
            )
            for contender, figures in found.items()
        ],
    )
