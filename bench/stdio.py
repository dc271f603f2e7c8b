"""Requests a second over stdio, with the contenders in the same run.

Usage: `python -m bench.stdio [--rounds N] [--requests N]`. Each contender is a process of its own that echoes 20 bytes;
they take turns in short rounds, and the median of the rounds counts, since machines are shared and noisy. The official
SDKs take part where `make interop` has installed them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

from tests.interop import install

CONTENDERS = Path(__file__).parent / "contenders"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
DEPTH = 64

Rates: TypeAlias = list[tuple[float, float]]
"""Requests a second, one at a time and pipelined, of each round."""

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


def measure(contender: Contender, process: subprocess.Popen[bytes], ids: int, requests: int) -> tuple[float, float]:
    """Sequential and pipelined requests a second."""
    count = max(256, int(requests * contender.share))
    lines = [call(id, contender.revision) for id in range(ids, ids + count)]
    pipelined = rate(process, lines, DEPTH)
    lines = [call(id, contender.revision) for id in range(ids + count, ids + count + max(64, count // 8))]
    return rate(process, lines, 1), pipelined


def contenders() -> list[Contender]:
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
    official = str(install.python("py2"))
    node, script = str(install.node() / "bin" / "node"), install.INTEROP / "node" / "official.mjs"
    if not Path(official).exists() or not Path(node).exists():
        print("the official SDKs are not installed: run `make interop`", file=sys.stderr)
        return found
    script.write_bytes((CONTENDERS / "official.mjs").read_bytes())  # node looks for packages beside the script
    found.append(Contender("official Python, low level", [official, str(CONTENDERS / "official.py")], LEGACY, 0.02))
    found.append(Contender("official TypeScript, low level", [node, str(script)], LEGACY, 0.3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=20_000)
    options = parser.parse_args()
    found = contenders()
    measured: dict[str, Rates] = {contender.name: [] for contender in found}
    with ExitStack() as stack:
        processes = [stack.enter_context(running(contender)) for contender in found]
        for number in range(options.rounds + 1):
            for contender, process in zip(found, processes, strict=True):
                rates = measure(contender, process, number * 2 * options.requests + 1, options.requests)
                if number > 0:  # the first round is to get warm
                    measured[contender.name].append(rates)
    print_table(measured)


def print_table(measured: dict[str, Rates]) -> None:
    """The medians of the rates, and of their ratios to what the loop on the same wire did in the same round."""
    print(f"{'echo, 20 bytes, requests/s':<38}{'1 at a time':>12}{'of loop':>9}{f'{DEPTH} deep':>12}{'of loop':>9}")
    for name, rates in measured.items():
        floor = measured[f"blocking loop, {MODERN if MODERN in name else LEGACY}"]
        columns = ""
        for kind in (0, 1):
            rate = median(one[kind] for one in rates)
            ratio = median(one[kind] / other[kind] for one, other in zip(rates, floor, strict=True))
            columns += f"{rate:>12,.0f}{ratio:>9.3f}"
        print(f"{name:<38}{columns}")


if __name__ == "__main__":
    main()
