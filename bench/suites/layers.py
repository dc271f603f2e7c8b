"""The processor time of a call over HTTP by layer: the stack of a server under load, sampled by py-spy (Linux)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from bench.plan import ContenderError, Plan, log, measure_in_turns
from bench.results import Table
from bench.suites import http
from bench.suites.processes import MODERN, Contender, Process, make_rows, warm_up

__all__ = ["COLUMNS", "LAYERS", "count_layers", "find_layer", "measure_tables"]

CONNECTIONS = 32
SAMPLES_PER_SECOND = 200
SECONDS = 80
"""The length of the samples of a round, in usual parts."""
TIMEOUT = 120.0
KERNEL, LOOP = "system calls", "event loop"
LAYERS: Final[Mapping[str, re.Pattern[str]]] = {
    KERNEL: re.compile(r"\b(write|writev|send\w*|read|recv\w*|epoll_\w+|getpid|clock_gettime) \((libc|\[vdso)"),
    "handler": re.compile(r"(echo_handler|bare_asgi)\.py:"),
    "decoding, checks, encoding": re.compile(r"(typedmcp/(?!server/http)|mcpspec/|msgspec/)\S*\.py:"),
    "MCP over HTTP": re.compile(r"typedmcp/server/http/\S*\.py:"),
    "ASGI": re.compile(
        r"(RequestResponseCycle\S*|HttpToolsProtocol.on_headers_complete) \(uvicorn/|uvicorn/middleware/"
    ),
    "HTTP": re.compile(r"(uvicorn/protocols|typedmcp_http)/\S*\.py:"),
}
"""The layers, each with the frames that belong to it. A sample belongs to the layer of its innermost such frame."""
COLUMNS = [*LAYERS, LOOP, "in all"]


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield the table; none without wrk or py-spy, which is logged."""
    wrk, py_spy = shutil.which("wrk"), Path(sys.executable).with_name("py-spy")
    if wrk is None or not py_spy.exists():
        log("layers: not measured, because wrk or py-spy is not installed")
        return
    log("layers")
    load = http.Load(wrk, MODERN, "echo")
    wanted = (http.FLOOR, http.MOUNTED, http.OURS)
    found = [one for one in http.list_servers(plan, MODERN, load.kind) if one.name in wanted]
    turns = {one.name: partial(_measure, one, load, plan, py_spy) for one in found}
    yield Table(
        name=f"layers/http-{MODERN}",
        title=f"Processor time of a call over HTTP by layer, {MODERN}",
        about=f"Calls of a tool that echoes 20 bytes over {CONNECTIONS} connections: the processor time of a call, by "
        "the share of the samples of the stack that each layer has.",
        unit="µs",
        better="lower",
        reference=http.FLOOR,
        columns=COLUMNS,
        rows=make_rows(measure_in_turns(turns, plan.rounds, warm=False), found),
    )


def find_layer(stack: str) -> str:
    """Return the layer of a sample: its frames from the outermost to the innermost, divided by semicolons."""
    for frame in reversed(stack.split(";")):
        for name, frames in LAYERS.items():
            if frames.search(frame):
                return name
    return LOOP


def count_layers(lines: Iterable[str]) -> dict[str, float]:
    """Return the share of each layer in the samples of py-spy, whose lines end with a number of samples."""
    samples: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        samples[find_layer(stack)] += int(count)
    if not samples:
        raise ValueError("there are no samples")
    return {name: samples[name] / samples.total() for name in COLUMNS[:-1]}


def _measure(contender: Contender, load: http.Load, plan: Plan, py_spy: Path) -> Mapping[str, float]:
    with http.run_server(contender, load, CONNECTIONS) as server:
        warm_up(contender, lambda seconds: server.rate(seconds, CONNECTIONS), plan)
        before = _read_cpu_seconds(server.process)
        counts = server.generate_load(SECONDS * plan.seconds / 4, CONNECTIONS)
        cost = 1e6 * (_read_cpu_seconds(server.process) - before) / counts["requests"]
        sampling = threading.Thread(target=server.rate, args=(SECONDS * plan.seconds + 1, CONNECTIONS))
        sampling.start()
        try:
            shares = _sample(server.process, py_spy, SECONDS * plan.seconds)
        finally:
            sampling.join()
        return {**{name: cost * share for name, share in shares.items()}, COLUMNS[-1]: cost}


def _sample(process: Process, py_spy: Path, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "stacks"
        rate = ["--native", "--rate", str(SAMPLES_PER_SECOND), "--duration", str(max(1, round(seconds)))]
        what = ["--format", "raw", "--output", str(out), "--pid", str(process.popen.pid)]
        command = [str(py_spy), "record", *rate, *what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)  # noqa: S603
        if done.returncode != 0:
            raise ContenderError(f"{process.name}: py-spy: {done.stderr[-500:]}")
        return count_layers(out.read_text(encoding="utf-8").splitlines())


def _read_cpu_seconds(process: Process) -> float:
    """Return the processor time that a process has used so far, in user mode and in the kernel."""
    after_name = Path(f"/proc/{process.popen.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
