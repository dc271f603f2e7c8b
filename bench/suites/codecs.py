"""Codecs: from bytes to typed messages and back. Each contender has its own process, and they take turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from bench.corpus import MESSAGES, make_message
from bench.plan import Measure, Measurements, Plan, log, measure_restarting
from bench.results import Row, Table
from bench.suites.processes import Process, describe_failure, exchange_line, start_process

__all__ = ["CONTENDERS", "MCP_TYPES", "OFFICIAL", "CodecModule", "measure_tables"]


class CodecModule(NamedTuple):
    """A contender: its module in `bench.contenders.codecs`, and what it checks when it decodes."""

    module: str
    checks: str


OFFICIAL = "official SDK, several passes"
MCP_TYPES = "official mcp_types, one pass"
ALL, NOTHING = "all of the schema", "only that the text is JSON"
PLAIN = "all of the schema except inside _meta, JSON Schemas and forms; null counts as absent"
LAX = "lax: numbers may be strings, null counts as absent"
CONTENDERS = {
    "typedmcp structs (msgspec)": CodecModule("typedmcp_structs", ALL),
    "typedmcp structs, open objects unchecked": CodecModule(
        "typedmcp_structs_unchecked", "all of the schema except inside _meta and JSON Schemas"
    ),
    "typedmcp everyday structs (msgspec)": CodecModule("typedmcp_everyday_structs", PLAIN),
    "typedmcp models (Pydantic)": CodecModule("typedmcp_models", ALL),
    "typedmcp everyday models (Pydantic)": CodecModule("typedmcp_everyday_models", PLAIN),
    OFFICIAL: CodecModule(
        "official_sdk", f"the schema of the revision, or of a later one, except the fields of forms; {LAX}"
    ),
    MCP_TYPES: CodecModule(
        "official_one_pass", f"types that fit every revision, except inside _meta, JSON Schemas and forms; {LAX}"
    ),
    "msgspec, untyped": CodecModule("msgspec_untyped", NOTHING),
    "orjson, untyped": CodecModule("orjson_untyped", NOTHING),
    "json, untyped": CodecModule("json_untyped", NOTHING),
}
WORKER = "bench.contenders.codecs.worker"
COLUMNS = ["decode + encode", "decode", "encode", "reject"]
QUICK_MESSAGES = ("tools-call", "tools-list-50")
SIZES = (1, 10, 100, 1000)
"""Tools in the lists that show how the cost grows."""
SHARE = 0.5
"""The share of the time for one figure that an operation gets. There are many operations."""
MIN_ROUNDS, PARTS = 3, 9
"""Rounds, and short parts of a round. So ratios are steady in quick runs, too."""

Operation: TypeAlias = tuple[str, str]
"""A message and an operation."""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield a table for each message, and one that shows how the cost grows with the size."""
    names = QUICK_MESSAGES if plan.quick else MESSAGES
    sizes = [] if plan.quick else [*map(_list_name, SIZES)]
    log(f"codecs: {', '.join(names)}")
    each = replace(plan, rounds=max(plan.rounds, MIN_ROUNDS), parts=PARTS)
    seconds = plan.seconds * SHARE / PARTS
    workers = {
        contender: partial(_run_worker, contender, codec.module, dict.fromkeys([*names, *sizes]), seconds)
        for contender, codec in CONTENDERS.items()
    }
    found = measure_restarting(workers, each, min)
    yield from (_table(name, found) for name in names)
    if sizes:
        yield _growth(found)


def _list_name(tools: int) -> str:
    return f"tools-list-{tools}"


@contextmanager
def _run_worker(
    contender: str, module: str, names: Iterable[str], seconds: float
) -> Generator[Sequence[Measure[Operation]]]:
    """Run a worker, and yield a measure for each message."""
    with start_process(contender, [sys.executable, "-m", WORKER, module]) as worker:
        exchange_line(worker)  # wait until it is ready
        yield [partial(measure_message, worker, name, seconds) for name in names]


def measure_message(worker: Process, name: str, seconds: float) -> Mapping[Operation, float]:
    """Return microseconds by operation on a message; nothing if the codec does not support it."""
    found: dict[str, float] | None = json.loads(
        exchange_line(worker, json.dumps({"message": name, "seconds": seconds}), seconds)
    )
    return {(name, operation): took for operation, took in (found or {}).items()}


def _rows(found: Measurements[str, Operation], operations: Mapping[str, Operation]) -> list[Row]:
    """Make rows of the figures of some operations, by column."""
    return [
        Row(
            contender,
            {column: figures[operation] for column, operation in operations.items() if operation in figures},
            describe_failure(found, contender),
            CONTENDERS[contender].checks,
        )
        for contender, figures in found.items()
    ]


def _table(name: str, found: Measurements[str, Operation]) -> Table:
    given = make_message(name)
    rows = [row for row in _rows(found, {of: (name, of) for of in COLUMNS}) if row.figures or row.note]
    return Table(
        name=f"codecs/{name}",
        title=given.title,
        about=(
            f"How long a codec takes to decode this message ({len(given.data):,} bytes, revision {given.revision}) and "
            "to encode it. `reject` is the time to reject a message with a value of the wrong type; untyped codecs "
            "cannot do that. Contenders do not check the same: see what each one checks."
        ),
        unit="µs",
        better="lower",
        reference=OFFICIAL if (name, COLUMNS[0]) in found[OFFICIAL] else next(iter(CONTENDERS)),
        columns=COLUMNS,
        rows=rows,
    )


def _growth(found: Measurements[str, Operation]) -> Table:
    operations = {str(size): (_list_name(size), COLUMNS[0]) for size in SIZES}
    return Table(
        name="codecs/growth",
        title="Lists of tools by size",
        about="How long it takes to decode and encode a list of tools, by their number.",
        unit="µs",
        better="lower",
        reference=OFFICIAL,
        columns=[*operations],
        rows=_rows(found, operations),
    )
