"""Latency of servers over HTTP when they have half of the load that they can take."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from bench.plan import Measure, Plan, log, measure_restarting
from bench.results import Row, Table
from bench.suites import http
from bench.suites.processes import LEGACY, MODERN, OFFICIAL, Contender, make_rows, warm_up

__all__ = ["measure_tables"]

CONNECTIONS = 256
"""Many connections with long pauses, so that a slow response hardly delays the next requests."""
PEAK_CONNECTIONS = 32
SECONDS = 10
"""The length of the load, in usual parts: the 99.9th percentile needs thousands of calls."""
PARTS = 2
PERCENTILES = {"p50": "half of the calls", "p99": "99 % of them", "p99.9": "99.9 % of them"}
"""The percentiles that `calls.lua` returns, with the names of their columns."""
RATE = "calls"


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield the latencies in each revision, and the loads at which they were measured."""
    wrk = shutil.which("wrk")
    if wrk is None:
        log("latency: not measured, because wrk is not installed: `apt install wrk`")
        return
    for revision in (MODERN,) if plan.quick else (MODERN, LEGACY):
        yield from _measure_latency(plan, http.Load(wrk, revision, "echo"))


def _measure_latency(plan: Plan, load: http.Load) -> Iterator[Table]:
    log(f"latency: {load.revision}")
    found = list(http.list_servers(plan, load.revision, load.kind))
    turns = {one.name: partial(_run_measure, one, load, plan) for one in found}
    measured = measure_restarting(turns, replace(plan, parts=1 if plan.quick else PARTS), min)
    rows = make_rows(measured, found)
    yield Table(
        name=f"latency/half-{load.revision}",
        title=f"Latency of servers over HTTP at half of their peak, {load.revision}",
        about=f"The time from a call of a tool that echoes 20 bytes to its response with JSON, with {CONNECTIONS} "
        f"connections that together call half as often as {PEAK_CONNECTIONS} connections without a pause do. The next "
        "table has these rates.",
        unit="µs",
        better="lower",
        reference=OFFICIAL,
        columns=[*PERCENTILES.values()],
        rows=[_take_columns(row, PERCENTILES.values()) for row in rows],
    )
    yield Table(
        name=f"latency/rate-{load.revision}",
        title=f"The load on them, {load.revision}",
        about="Calls while the latencies of the table above were measured.",
        unit="requests/s",
        better="higher",
        reference=OFFICIAL,
        columns=[RATE],
        rows=[_take_columns(row, [RATE]) for row in rows],
    )


def _take_columns(row: Row, columns: Iterable[str]) -> Row:
    """Return a row with some of its columns."""
    return Row(row.contender, {name: row.figures[name] for name in columns if name in row.figures}, row.note)


@contextmanager
def _run_measure(contender: Contender, load: http.Load, plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """Run a server, warm it up, find its peak, and yield the measure of its latencies."""
    with http.run_server(contender, load, CONNECTIONS) as server:
        warm_up(contender, lambda seconds: server.rate(seconds, PEAK_CONNECTIONS), plan)
        peak = server.rate(SECONDS * plan.seconds, PEAK_CONNECTIONS)

        def measure() -> Mapping[str, float]:
            pause = 2e3 * CONNECTIONS / peak
            found = server.generate_load(SECONDS * plan.seconds, CONNECTIONS, pause)
            latencies = {name: found[percentile] for percentile, name in PERCENTILES.items()}
            return {**latencies, RATE: found["requests"] / found["seconds"]}

        yield [measure]
