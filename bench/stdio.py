"""Requests a second over stdio, with the contenders in the same run.

Usage: `python bench/stdio.py [--rounds N] [--requests N] [--official PYTHON] [--node DIR]`. Each contender is a process
of its own that echoes 20 bytes; the rounds are interleaved and the best one of each counts, since what else runs on a
machine only takes away. `--official` is a Python with the official SDK, `--node` a folder with its TypeScript one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CONTENDERS = Path(__file__).parent / "contenders"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
DEPTH = 64

_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Contender:
    """A server to be measured."""

    name: str
    command: list[str]
    revision: str
    share: float = 1
    """How much of the requests it gets: the slow ones fewer."""
    env: dict[str, str] | None = None


def message(id: int | None, method: str, params: dict[str, object]) -> bytes:
    found: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(found if id is None else {**found, "id": id}).encode() + b"\n"


def opening() -> bytes:
    info = {"name": "bench", "version": "1"}
    first = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
    return message(0, "initialize", first) + message(None, "notifications/initialized", {})


def call(id: int, revision: str) -> bytes:
    params: dict[str, object] = {"name": "echo", "arguments": {"text": "x" * 20}}
    return message(id, "tools/call", params if revision == LEGACY else {**params, "_meta": _META})


@contextmanager
def running(contender: Contender) -> Iterator[subprocess.Popen[bytes]]:
    """The process, ready to be asked."""
    env = {**os.environ, **(contender.env or {})}
    process = subprocess.Popen(  # noqa: S603
        contender.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env
    )
    try:
        if contender.revision == LEGACY and "loop.py" not in " ".join(contender.command):
            exchange(process, [opening()], 1)
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        process.wait(10)


def exchange(process: subprocess.Popen[bytes], batches: list[bytes], answers: int) -> None:
    """Write lines, read as many answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    for batch in batches:
        process.stdin.write(batch)
    while answers > 0:
        data = os.read(process.stdout.fileno(), 1 << 20)
        if not data:
            raise RuntimeError("the server went away")
        answers -= data.count(b"\n")


def rate(process: subprocess.Popen[bytes], lines: list[bytes], depth: int) -> float:
    """Requests a second with so many on their way: as many are sent as have been answered."""
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin.fileno(), process.stdout.fileno()
    sent, answered, total = depth, 0, len(lines)
    start = time.perf_counter()
    os.write(stdin, b"".join(lines[:depth]))
    while answered < total:
        data = os.read(stdout, 1 << 20)
        if b'"error"' in data or not data:
            raise RuntimeError(f"an error instead of an echo: {data[:300]!r}")
        done = data.count(b"\n")
        answered += done
        if sent < total:
            os.write(stdin, b"".join(lines[sent : sent + done]))
            sent += done
    return total / (time.perf_counter() - start)


def measure(contender: Contender, requests: int) -> tuple[float, float]:
    """Sequential and pipelined requests a second."""
    count = max(256, int(requests * contender.share))
    with running(contender) as process:
        warm = [call(id, contender.revision) for id in range(1, 257)]
        rate(process, warm, DEPTH)
        lines = [call(id, contender.revision) for id in range(1000, 1000 + count)]
        pipelined = rate(process, lines, DEPTH)
        lines = [call(id, contender.revision) for id in range(10_000_000, 10_000_000 + count // 8)]
        return rate(process, lines, 1), pipelined


def contenders(official: str | None, node: str | None) -> list[Contender]:
    ours = [sys.executable, str(CONTENDERS / "ours.py")]
    floor = [sys.executable, str(CONTENDERS / "loop.py")]
    found = [
        Contender(f"blocking loop, {LEGACY}", [*floor, LEGACY], LEGACY),
        Contender(f"blocking loop, {MODERN}", [*floor, MODERN], MODERN),
        Contender(f"typedmcp, {LEGACY}", ours, LEGACY),
        Contender(f"typedmcp, {MODERN}", ours, MODERN),
        Contender(f"typedmcp, {LEGACY}, plain asyncio", [*ours, "--asyncio"], LEGACY),
        Contender(f"typedmcp, {MODERN}, plain asyncio", [*ours, "--asyncio"], MODERN),
    ]
    if official is not None:
        found.append(Contender("official Python, low level", [official, str(CONTENDERS / "official.py")], LEGACY, 0.02))
    if node is not None:
        script = Path(node) / "official.mjs"
        script.write_bytes((CONTENDERS / "official.mjs").read_bytes())  # node looks for packages beside the script
        found.append(Contender("official TypeScript, low level", ["node", str(script)], LEGACY, 0.3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--official", help="a Python with the official SDK")
    parser.add_argument("--node", help="a folder with node_modules")
    options = parser.parse_args()
    found = contenders(options.official, options.node)
    best: dict[str, tuple[float, float]] = {}
    for _ in range(options.rounds):
        for contender in found:
            measured = measure(contender, options.requests)
            known = best.get(contender.name, (0.0, 0.0))
            best[contender.name] = (max(measured[0], known[0]), max(measured[1], known[1]))
    print_table(best)


def print_table(best: dict[str, tuple[float, float]]) -> None:
    floor = best[f"blocking loop, {LEGACY}"]
    print(f"{'echo, 20 bytes, requests/s':<38}{'1 at a time':>12}{'of loop':>9}{f'{DEPTH} deep':>12}{'of loop':>9}")
    for name, (sequential, pipelined) in best.items():
        ratios = f"{sequential / floor[0]:>9.2f}", f"{pipelined / floor[1]:>9.2f}"
        print(f"{name:<38}{sequential:>12,.0f}{ratios[0]}{pipelined:>12,.0f}{ratios[1]}")


if __name__ == "__main__":
    main()
