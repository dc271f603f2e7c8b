"""Instructions that a call takes, counted by valgrind.

Other load on the machine does not change these figures, so a small change of the code shows. Each contender runs twice,
with few calls and with many: the difference has the calls without the start.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import TypeAlias

from bench.plan import ContenderError, Plan, log, measure_in_turns
from bench.results import Table
from bench.suites import gateway, http, stdio
from bench.suites.processes import (
    EXACT,
    LEGACY,
    MODERN,
    Contender,
    Process,
    exchange_line,
    format_depth,
    make_rows,
    start_process,
)

__all__ = ["DEPTHS", "count_calls", "measure_tables", "parse_count", "serve_stdio"]

FEW, MANY = 128, 640
"""Calls of the two runs. What happens once happens within the calls of the first run."""
DEPTHS = (1, 64)
TIMEOUT = 240.0
"""Seconds that a contender may take under valgrind, which runs programs fifty times as slowly."""
ONE_CALL = format_depth(1)
_COUNT = re.compile(r"I +refs: +([\d,]+)")

Run: TypeAlias = Callable[[Contender, int], Process]
"""Runs a contender, lets it make or answer a number of calls, and returns its process after its end."""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield the tables of servers and clients over stdio and HTTP; none without valgrind, which is logged."""
    if shutil.which("valgrind") is None:
        log("instructions: not counted, because valgrind is not installed: `apt install valgrind`")
        return
    for revision in (MODERN, LEGACY):  # over HTTP, a server of a legacy revision has sessions
        echo, report = (http.Load("", revision, tool) for tool in ("echo", "report"))
        yield _count_http_servers(plan, echo, "http", "HTTP", "echoes 20 bytes")
        progress = "reports progress once and then echoes 20 bytes"
        yield _count_http_servers(plan, report, "sse", "HTTP with event streams", progress)
    for revision in (MODERN,) if plan.quick else (MODERN, LEGACY):
        yield _count_stdio_servers(plan, revision)
        yield _count_stdio_clients(plan, revision)
        yield _count_http_clients(plan, revision)
    yield _count_gateways(plan)


def _count_stdio_servers(plan: Plan, revision: str) -> Table:
    log(f"instructions: stdio, {revision}")
    found = [one for one in stdio.list_servers(plan, revision) if _is_python(one, plan)]
    runs = {format_depth(depth): partial(serve_stdio, revision, depth) for depth in DEPTHS}
    return _make_table(
        f"instructions/stdio-{revision}",
        f"Instructions of a server over stdio, {revision}",
        f"Calls of a tool that echoes 20 bytes, one at a time or {DEPTHS[-1]} at a time.",
        found,
        runs,
    )


def _count_http_servers(plan: Plan, load: http.Load, name: str, over: str, calls: str) -> Table:
    log(f"instructions: {name}, {load.revision}")
    found = [one for one in http.list_servers(plan, load.revision, load.kind) if _is_python(one, plan)]
    if plan.quick and (load.kind, load.revision) != ("app", MODERN):  # exact results cost the same everywhere
        found = [one for one in found if one.name != EXACT]
    return _make_table(
        f"instructions/{name}-{load.revision}",
        f"Instructions of a server over {over}, {load.revision}",
        f"Calls of a tool that {calls}, on one connection, under uvicorn with uvloop and httptools.",
        found,
        {ONE_CALL: partial(_serve_http, load)},
    )


def _count_stdio_clients(plan: Plan, revision: str) -> Table:
    log(f"instructions: clients, {revision}")
    found = [one for one in stdio.list_clients(plan, revision) if _is_python(one, plan)]
    return _make_table(
        f"instructions/client-{revision}",
        f"Instructions of a client over stdio, {revision}",
        "Calls of a tool that echoes 20 bytes, one at a time. The server is another process, and does not count.",
        found,
        {ONE_CALL: _call_server},
    )


def _count_http_clients(plan: Plan, revision: str) -> Table:
    log(f"instructions: clients over HTTP, {revision}")
    with http.serve_clients() as url:
        found = [one for one in http.list_clients(plan, url, revision) if _is_python(one, plan)]
        return _make_table(
            f"instructions/http-client-{revision}",
            f"Instructions of a client over HTTP, {revision}",
            "Calls of a tool that echoes 20 bytes, one at a time. The server is another process, and does not count.",
            found,
            {ONE_CALL: _call_server},
        )


def _count_gateways(plan: Plan) -> Table:
    log("instructions: gateways")
    load = http.Load("", MODERN, "echo")
    with gateway.serve_upstream():
        found = [one for one in gateway.list_gateways(plan, MODERN) if one.name in (gateway.DIRECT, http.OURS)]
        return _make_table(
            f"instructions/gateway-{MODERN}",
            f"Instructions of a gateway over HTTP, {MODERN}",
            "Calls of a tool that echoes 20 bytes, on one connection, through a gateway to a server over HTTP, which "
            "is another process and does not count. Without a gateway the process of the server is counted.",
            found,
            {ONE_CALL: partial(_serve_http, load)},
        )


def _is_python(contender: Contender, plan: Plan) -> bool:
    """Return whether to count a contender: those in Python, and in quick runs typedmcp on asyncio and the floor."""
    is_ours = contender.name in ("typedmcp", "typedmcp, Server", http.MOUNTED, EXACT, http.FLOOR, stdio.FLOOR)
    return "python" in Path(contender.command[0]).name and (is_ours or not plan.quick)


def _make_table(name: str, title: str, about: str, found: Iterable[Contender], runs: Mapping[str, Run]) -> Table:
    """Count the instructions of each contender in each column. The first one is the floor."""
    found = list(found)
    measured = measure_in_turns({one.name: partial(count_calls, one, runs) for one in found}, 1, warm=False)
    return Table(
        name=name,
        title=title,
        about=about,
        unit="thousand instructions",
        better="lower",
        reference=found[0].name,
        columns=[*runs],
        rows=make_rows(measured, found),
    )


def count_calls(contender: Contender, runs: Mapping[str, Run]) -> Mapping[str, float]:
    """Return the thousands of instructions that a call of a contender takes, by column."""
    found: dict[str, float] = {}
    next(iter(runs.values()))(contender, FEW)  # the first start of all may compile modules, which would count
    with ThreadPoolExecutor(2) as pool:  # counts do not depend on what runs at the same time
        for column, run in runs.items():
            few, many = pool.map(partial(_count_run, contender, run), (FEW, MANY))
            found[column] = (many - few) / (MANY - FEW) / 1000
    return found


def _count_run(contender: Contender, run: Run, calls: int) -> int:
    """Return the instructions of a whole run."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={report}"]
        # Forked processes are not counted, and sets and dicts have the same order in each run.
        command = ["env", "PYTHONHASHSEED=0", "valgrind", "--child-silent-after-fork=yes", *options, *contender.command]
        process = run(replace(contender, command=command, timeout=TIMEOUT), calls)
        try:
            return parse_count(report.read_text(errors="replace"))
        except (OSError, ValueError) as error:
            raise process.make_failure(f"valgrind reported no count: {error}") from error


def parse_count(report: str) -> int:
    """Return the number of instructions in a report of cachegrind. Raises `ValueError` if there is none."""
    if (found := _COUNT.search(report)) is None:
        raise ValueError(f"no line `I refs` in {report[-300:]!r}")
    return int(found[1].replace(",", ""))


def serve_stdio(revision: str, depth: int, contender: Contender, calls: int) -> Process:
    """Let a server over stdio answer calls, `depth` at a time, and return its process after its end."""
    with stdio.run_server(contender, revision) as server:
        server.time_requests(calls, depth)
        return _finish(server.process)


def _serve_http(load: http.Load, contender: Contender, calls: int) -> Process:
    with http.run_server(contender, load, 1) as server:
        session = {"Mcp-Session-Id": server.sessions[0]} if server.sessions else {}
        connection = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
        for _ in range(calls):
            connection.request("POST", "/mcp", load.line, {**server.load.headers, **session})
            response = connection.getresponse().read().decode()
            if not all(text in response for text in load.expected.splitlines()):
                raise server.process.make_failure("not every response is an echo")
        connection.close()
        return _finish(server.process)


def _call_server(contender: Contender, calls: int) -> Process:
    with start_process(contender.name, contender.command, timeout=TIMEOUT) as client:
        exchange_line(client)  # wait until it has received a correct response
        exchange_line(client, f"1 0 {calls}")
        return _finish(client)


def _finish(process: Process) -> Process:
    """Let a process end by itself, so that its instructions are reported."""
    if process.popen.stdin is None:
        process.popen.terminate()
    else:
        process.popen.stdin.close()
    try:
        process.popen.wait(TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise ContenderError(f"{process.name}: does not end") from error
    return process
