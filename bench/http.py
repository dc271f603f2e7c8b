"""Requests a second over HTTP, with the contenders in the same run.

Usage: `python -m bench.http [--rounds N] [--seconds N]`. Each contender is a process of its own that echoes 20 bytes,
with one worker; 32 connections call it without a pause. They take turns in short rounds, and the median of the rounds
counts. On Linux the servers have one core and the load generator, wrk, another. The Python servers run in the same
uvicorn, with uvloop and httptools. On 2025-11-25 there is a session for each connection. The official SDKs take part
where `make interop` has installed them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from bench.stdio import CONTENDERS, LEGACY, MODERN, opening
from bench.stdio import call as line
from tests.interop import install

CONNECTIONS = 32
FLOOR = "bare ASGI application"
TEXT = "x" * 20
PLACE = 100_000_000
"""An id that `http_calls.lua` puts others in the place of."""

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
OF_REVISION = {
    LEGACY: {"MCP-Protocol-Version": LEGACY},
    MODERN: {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "echo"},
}


@dataclass(frozen=True)
class Contender:
    """A server to be measured; its command gets a port."""

    name: str
    command: list[str]
    revision: str = MODERN


@dataclass
class Running:
    """A server that listens, and the sessions that were opened with it."""

    contender: Contender
    port: int
    sessions: list[str] = field(default_factory=list)

    @property
    def headers(self) -> dict[str, str]:
        return {**HEADERS, **OF_REVISION[self.contender.revision]}

    def post(self, body: bytes, **more: str) -> tuple[str | None, Any]:
        """Send a message; the session it opened and the answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("POST", "/mcp", body, {**self.headers, **more})
        response = connection.getresponse()
        data = response.read()
        if response.status not in (200, 202):
            raise RuntimeError(f"{self.contender.name}: {response.status} {data[:300]!r}")
        return response.headers["Mcp-Session-Id"], json.loads(data) if data else None

    def open(self) -> None:
        for _ in range(CONNECTIONS):
            first, second, _ = opening().split(b"\n")
            session, _ = self.post(first)
            assert session is not None
            self.post(second, **{"Mcp-Session-Id": session})
            self.sessions.append(session)

    def check(self) -> None:
        """Raise unless a call is answered as it should be."""
        session = {"Mcp-Session-Id": self.sessions[0]} if self.sessions else {}
        _, answer = self.post(line(PLACE, self.contender.revision), **session)
        if answer["id"] != PLACE or answer["result"]["content"] != [{"type": "text", "text": TEXT}]:
            raise RuntimeError(f"{self.contender.name} answered {answer}")


@dataclass(frozen=True)
class Measured:
    rate: float
    median_ms: float
    p99_ms: float


def pinned(core: int, command: list[str]) -> list[str]:
    """A command that runs on one core, where there are several and this can be said."""
    taskset = shutil.which("taskset")
    return command if taskset is None or (os.cpu_count() or 1) < 2 else [taskset, "-c", str(core), *command]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def listening(command: list[str]) -> Generator[int]:
    """A server's process, once it listens; its port."""
    port = free_port()
    process = subprocess.Popen(pinned(0, [*command, str(port)]))  # noqa: S603
    try:
        until = time.monotonic() + 20
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"no server: {' '.join(command)}")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def running(contender: Contender) -> Generator[Running]:
    with listening(contender.command) as port:
        found = Running(contender, port)
        if contender.revision == LEGACY:
            found.open()
        yield found


def measure(wrk: str, server: Running, seconds: int, first: int) -> Measured:
    """One round with a server. Raises if anything was answered badly."""
    server.check()
    body = line(PLACE, server.contender.revision).replace(str(PLACE).encode(), b"000000000").decode()
    options = ["--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{seconds}s"]
    headers = [part for name, value in server.headers.items() for part in ("--header", f"{name}: {value}")]
    script = ["--script", str(CONTENDERS / "http_calls.lua"), f"http://127.0.0.1:{server.port}/mcp"]
    command = pinned(1, [wrk, *options, *headers, *script, "--", body, str(first), *server.sessions])
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    found = json.loads(printed.splitlines()[-1])
    if found["not_2xx"] or found["broken"] or not found["requests"]:
        raise RuntimeError(f"{server.contender.name}: {found}")
    return Measured(found["requests"] / found["seconds"], found["median_ms"], found["p99_ms"])


def uvicorn(python: str, app: str) -> list[str]:
    fast = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    return [python, "-m", "uvicorn", "--app-dir", str(CONTENDERS), *fast, f"{app}:app", "--port"]


def contenders() -> list[Contender]:
    ours = uvicorn(sys.executable, "http_ours")
    found = [
        Contender(FLOOR, uvicorn(sys.executable, "http_floor")),
        Contender(f"typedmcp, {MODERN}", ours),
        Contender(f"typedmcp, {LEGACY}", ours, LEGACY),
    ]
    python, node = install.python("py2"), install.node() / "bin" / "node"
    if not python.exists() or not node.exists():
        print("the official SDKs are not installed: run `make interop`", file=sys.stderr)
        return found
    official, typescript = uvicorn(str(python), "http_official"), [str(node), str(beside_packages("http_official.mjs"))]
    return [
        *found,
        Contender(f"official Python, low level, {MODERN}", official),
        Contender(f"official Python, low level, {LEGACY}", official, LEGACY),
        Contender(f"official TypeScript, low level, {MODERN}", typescript),
        Contender(f"official TypeScript, low level, {LEGACY}", typescript, LEGACY),
    ]


def beside_packages(name: str) -> Path:
    """A script of ours, where Node.js finds the packages that it imports."""
    script = install.INTEROP / "node" / name
    script.write_bytes((CONTENDERS / name).read_bytes())
    return script


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    wrk = shutil.which("wrk")
    if wrk is None:
        sys.exit("the load generator is not installed: `apt install wrk`, or https://github.com/wg/wrk")
    found = contenders()
    measured: dict[str, list[Measured]] = {contender.name: [] for contender in found}
    with ExitStack() as stack:
        servers = [stack.enter_context(running(contender)) for contender in found]
        for number in range(options.rounds + 1):
            for server in servers:
                round = measure(wrk, server, options.seconds if number else 1, PLACE + number * 10_000_000)
                if number > 0:  # the first round is to get warm
                    measured[server.contender.name].append(round)
    print_table(measured)


def print_table(measured: dict[str, list[Measured]]) -> None:
    """The medians of what was measured, and of the ratios to what the floor did in the same round."""
    print(f"{'echo, 20 bytes, 32 connections':<42}{'requests/s':>12}{'of floor':>10}{'median ms':>11}{'99 % ms':>9}")
    for name, rounds in measured.items():
        ratio = median(one.rate / floor.rate for one, floor in zip(rounds, measured[FLOOR], strict=True))
        columns = f"{median(one.rate for one in rounds):>12,.0f}{ratio:>10.3f}"
        columns += f"{median(one.median_ms for one in rounds):>11.2f}{median(one.p99_ms for one in rounds):>9.2f}"
        print(f"{name:<42}{columns}")


if __name__ == "__main__":
    main()
