"""CPU time of a call as a server gets more to hold: larger messages, more tools, sessions, streams and connections.

A cost that does not depend on a number is a flat line, and one that grows in proportion to it a straight one. The note
of each row has both parts of the line.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPConnection
from itertools import count, pairwise
from pathlib import Path
from typing import TypeAlias

from bench.plan import Measurements, Plan, log, measure_in_turns
from bench.results import Row, Table
from bench.suites import http, stdio
from bench.suites.memory import open_stream
from bench.suites.processes import (
    CONTENDERS,
    LEGACY,
    MODERN,
    TIMEOUT,
    Contender,
    Process,
    describe_failure,
    is_echo,
    make_call,
    make_python_command,
    send_request,
    start_process,
)
from tests.ports import reserved_port
from tests.redis_server import RedisServer

__all__ = ["fit_line", "measure_tables"]

OURS = "typedmcp"
ON_REDIS = "typedmcp, sessions on Redis"
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
TOOLS = (1, 10, 100, 1_000)
SESSIONS = (1, 10, 100, 1_000)
STREAMS = (1, 10, 100)
CONNECTIONS = (1, 10, 100)
WORKERS = (1, 2)
TURNS = 32
CALLS = 500
WORKER_CALLS = 2000
MIN_CALLS = 20
BYTES = 10_000_000
"""Bytes of all messages of a size, unless that are fewer than `MIN_CALLS`."""
ROUNDS = 3

MeasureCosts: TypeAlias = Callable[[Sequence[int]], Mapping[str, float]]
"""Returns the microseconds of a call for each number, as columns."""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield a table for each number that may grow. None on systems that do not tell the CPU time of a process."""
    if not Path("/proc/self/schedstat").exists():
        log("scaling: not measured, because this system has no /proc/PID/schedstat")
        return
    yield _make_table(plan, "size", "bytes of text that the call echoes, over stdio", SIZES, _measure_sizes)
    yield _make_table(plan, "tools", "tools of the server, over stdio", TOOLS, partial(_measure_tools, "tools/call"))
    about = "tools of the server; the call lists all of them, not for the first time"
    yield _make_table(plan, "list", about, TOOLS, partial(_measure_tools, "tools/list"))
    yield _make_table(plan, "sessions", f"open sessions of {LEGACY}, over HTTP", SESSIONS, _measure_sessions)
    yield _make_table(plan, "streams", f"open streams of {LEGACY}, over HTTP", STREAMS, _measure_streams)
    yield _make_table(
        plan, "connections", f"connections of {MODERN} that take turns", CONNECTIONS, _measure_connections
    )
    yield measure_workers(plan)


def _make_table(plan: Plan, name: str, about: str, numbers: Sequence[int], measure: MeasureCosts) -> Table:
    log(f"scaling: {name}")
    numbers = numbers[:-1] if plan.quick else numbers
    measured = measure_in_turns({OURS: partial(measure, numbers)}, 1 if plan.quick else ROUNDS, warm=False)
    return Table(
        name=f"scaling/{name}",
        title=f"Cost of a call by {name}",
        about=f"CPU time of the server for a call, by the number of {about}.",
        unit="µs",
        better="lower",
        reference=OURS,
        columns=[str(number) for number in numbers],
        rows=[Row(OURS, measured[OURS], _describe_line(measured))],
    )


def measure_workers(plan: Plan) -> Table:
    """Measure what several workers serve, by the CPU time of a call.

    A load generator would share the cores with the workers. So the calls come one after the other, and the table has
    the calls that so many workers can serve with a core each.
    """
    log("scaling: workers")
    turns = {OURS: _measure_workers}
    if (redis := shutil.which("redis-server")) is None:
        log("scaling: no sessions, because redis-server is not installed")
    else:
        turns[ON_REDIS] = partial(_measure_workers_on_redis, redis)
    measured = measure_in_turns(turns, 1 if plan.quick else ROUNDS, warm=False)
    notes = {OURS: MODERN, ON_REDIS: f"{LEGACY}; Redis has a core of its own"}
    return Table(
        name="scaling/workers",
        title="Calls by workers",
        about="Calls for each second of CPU time of a worker, times the workers: what they serve with a core each "
        f"over HTTP, where {TURNS} connections take turns.",
        unit="calls/s",
        better="higher",
        reference=OURS,
        columns=[str(number) for number in WORKERS],
        rows=[Row(name, measured[name], describe_failure(measured, name) or notes[name]) for name in turns],
    )


def _describe_line(measured: Measurements[str, str]) -> str:
    """Return the note of a row: why it has no figures, or the line through the fastest rounds."""
    if OURS in measured.failed:
        return f"left out: {measured.failed[OURS]}"
    fixed, slope = fit_line({int(column): min(figures.rounds) for column, figures in measured[OURS].items()})
    return f"{fixed:.3g} µs, and {slope * 1000:.2g} µs for each 1,000"


def fit_line(costs: Mapping[int, float]) -> tuple[float, float]:
    """Return the fixed part and the slope of the line through the first and the last of some costs, by number."""
    (first, low), (last, high) = min(costs.items()), max(costs.items())
    slope = (high - low) / (last - first)
    return low - slope * first, slope


def _cpu_time(process: Process) -> float:
    """Return the CPU time of all threads of a process and of its child processes, in microseconds."""
    return _cpu_time_of(process.popen.pid)


def _cpu_time_of(pid: int) -> float:
    threads = list(Path(f"/proc/{pid}/task").iterdir())
    own = sum(int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads) / 1000
    children = [int(child) for thread in threads for child in (thread / "children").read_text("ascii").split()]
    return own + sum(_cpu_time_of(child) for child in children)


def _cost(process: Process, call: Callable[[], object], calls: int) -> float:
    """Return the microseconds of CPU time that a process takes for a call."""
    for _ in range(calls // 5):
        call()
    before = _cpu_time(process)
    for _ in range(calls):
        call()
    return (_cpu_time(process) - before) / calls


# Over stdio


def _measure_sizes(numbers: Sequence[int]) -> Mapping[str, float]:
    contender = Contender(OURS, make_python_command(CONTENDERS / "stdio" / "typedmcp_handler.py"))
    found: dict[str, float] = {}
    with stdio.run_server(contender, MODERN) as server:
        for size in numbers:
            text = "x" * size

            def call(text: str = text) -> None:
                id = next(server.ids)
                if not is_echo(send_request(server.process, make_call(id, MODERN, "echo", {"text": text})), id, text):
                    raise server.process.make_failure("the response is not an echo")

            with server.process.deadline(TIMEOUT):
                found[str(size)] = _cost(server.process, call, max(MIN_CALLS, min(CALLS, BYTES // size)))
    return found


def _measure_tools(method: str, numbers: Sequence[int]) -> Mapping[str, float]:
    return {str(number): _measure_tools_of(number, method) for number in numbers}


def _measure_tools_of(number: int, method: str) -> float:
    command = make_python_command(CONTENDERS / "stdio" / "typedmcp_many_tools.py", str(number))
    with start_process(OURS, command) as process, process.deadline(TIMEOUT):
        request = json.loads(make_call(0, MODERN, f"tool_{number - 1}", {"city": "Oslo"}))
        expected = "Oslo"
        if method == "tools/list":
            request.update(method=method, params={"_meta": request["params"]["_meta"]})
            expected = f"tool_{number - 1}"
        ids = count(1)

        def call() -> None:
            if expected not in json.dumps(send_request(process, json.dumps({**request, "id": next(ids)}))):
                raise process.make_failure(f"no {expected} in the response")

        return _cost(process, call, CALLS if method == "tools/call" else max(MIN_CALLS, CALLS // number))


# Over HTTP


def _measure_sessions(numbers: Sequence[int]) -> Mapping[str, float]:
    """Return the costs of a call in one of many sessions."""
    found: dict[str, float] = {}
    with http.run_server(_http_server(), http.Load("", LEGACY, "echo"), 1) as server:
        for number in numbers:
            server.open(number - len(server.sessions))
            with closing(HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
                found[str(number)] = _cost(server.process, partial(_post, server, connection), CALLS)
    return found


def _measure_streams(numbers: Sequence[int]) -> Mapping[str, float]:
    """Return the costs of a call while many sessions have a stream."""
    found: dict[str, float] = {}
    with http.run_server(_http_server(), http.Load("", LEGACY, "echo"), max(numbers)) as server, ExitStack() as stack:
        for before, number in pairwise((0, *numbers)):
            for session in server.sessions[before:number]:
                stack.enter_context(closing(open_stream(server, session)))
            with closing(HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
                found[str(number)] = _cost(server.process, partial(_post, server, connection), CALLS)
    return found


def _measure_connections(numbers: Sequence[int]) -> Mapping[str, float]:
    """Return the costs of a call on one of many open connections, which take turns."""
    found: dict[str, float] = {}
    with http.run_server(_http_server(), http.Load("", MODERN, "echo"), 0) as server:
        for number in numbers:
            with ExitStack() as stack:
                opened = [HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT) for _ in range(number)]
                turns = [stack.enter_context(closing(connection)) for connection in opened]
                places = count()

                def call(turns: list[HTTPConnection] = turns, places: Iterator[int] = places) -> None:
                    _post(server, turns[next(places) % len(turns)])

                found[str(number)] = _cost(server.process, call, max(CALLS, 5 * number))
    return found


def _measure_workers() -> Mapping[str, float]:
    command = http.make_uvicorn_command(http.FOLDER, "typedmcp_workers:app")
    return {str(number): _measure_capacity(command, number, MODERN) for number in WORKERS}


def _measure_workers_on_redis(binary: str) -> Mapping[str, float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        reserved_port() as port,
        RedisServer(binary, Path(folder), port) as redis,
    ):
        command = ["env", f"REDIS_URL={redis.url}", *http.make_uvicorn_command(http.FOLDER, "typedmcp_workers:app")]
        return {str(number): _measure_capacity(command, number, LEGACY) for number in WORKERS}


def _measure_capacity(command: Sequence[str], workers: int, revision: str) -> float:
    """Return the calls per second that some workers can serve with a core each."""
    contender = Contender(OURS, [*command[:-1], "--workers", str(workers), command[-1]])
    with http.run_server(contender, http.Load("", revision, "echo"), TURNS) as server, ExitStack() as stack:
        opened = [HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT) for _ in range(TURNS)]
        turns = [stack.enter_context(closing(connection)) for connection in opened]
        places = count()

        def call() -> None:
            place = next(places) % TURNS
            _post(server, turns[place], place)

        return workers * 1e6 / _cost(server.process, call, WORKER_CALLS)


def _http_server() -> Contender:
    return Contender(OURS, http.make_uvicorn_command(http.FOLDER, "typedmcp_handler:app"))


def _post(server: http.HttpServerRun, connection: HTTPConnection, place: int = 0) -> None:
    """Make a call, in the session of a place if there are sessions."""
    session = {"Mcp-Session-Id": server.sessions[place]} if server.sessions else {}
    connection.request("POST", "/mcp", server.load.line, {**server.load.headers, **session})
    if server.load.expected.encode() not in connection.getresponse().read():
        raise server.process.make_failure("the response is not an echo")
