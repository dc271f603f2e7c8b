"""Calls a second of clients over HTTP, with the contenders in the same run.

Usage: `python -m bench.http_client [--rounds N] [--calls N]`. Each contender is a process that calls an echo tool,
20 bytes, on one and the same server, which speaks just enough of both protocols. They take turns, and the median of
the rounds counts. On Linux the server has one core and the clients another. The official SDKs take part where
`make interop` has installed them; the Python ones all run on uvloop.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from bench.client import column
from bench.http import beside_packages, listening, pinned, uvicorn
from bench.stdio import CONTENDERS, LEGACY, MODERN
from tests.interop import install

DEPTH = 16
OURS = "typedmcp"


def contenders() -> dict[str, tuple[list[str], float]]:
    """The clients, each with its command and how much of the calls it gets: the slow ones fewer."""
    found = {OURS: ([sys.executable, str(CONTENDERS / "http_client_ours.py")], 1.0)}
    python, node = install.python("py2"), install.node() / "bin" / "node"
    if not python.exists() or not node.exists():
        print("the official SDKs are not installed: run `make interop`", file=sys.stderr)
        return found
    found["official Python"] = [str(python), str(CONTENDERS / "http_client_official.py")], 0.1
    found["official TypeScript"] = [str(node), "--no-warnings", str(beside_packages("http_client_official.mjs"))], 0.3
    return found


def measure(command: list[str], url: str, revision: str, calls: int) -> list[float | None]:
    """Sequential and concurrent calls a second."""
    command = pinned(1, [*command, url, revision, str(calls), str(DEPTH)])
    rates: list[float | None] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    found = contenders()
    measured: dict[str, dict[str, list[list[float | None]]]] = {
        revision: {name: [] for name in found} for revision in (MODERN, LEGACY)
    }
    with listening(uvicorn(sys.executable, "http_echo")) as port:
        for _ in range(options.rounds):
            for revision, rates in measured.items():
                for name, (command, share) in found.items():
                    calls = int(options.calls * share)
                    rates[name].append(measure(command, f"http://127.0.0.1:{port}/mcp", revision, calls))
    print(f"{'echo, 20 bytes, calls/s':<34}{'1 at a time':>12}{'of ours':>9}{f'{DEPTH} at a time':>14}{'of ours':>9}")
    for revision, rates in measured.items():
        for name, rows in rates.items():
            print(f"{f'{name}, {revision}':<34}" + "".join(column(rates[OURS], rows, kind) for kind in (0, 1)))


if __name__ == "__main__":
    main()
