"""Calls a second of clients over stdio, with the contenders in the same run.

Usage: `python -m bench.client [--rounds N] [--calls N]`. Each contender is a process that calls an echo tool, 20 bytes,
on a server of its own, a blocking loop. They take turns, and the median of the rounds counts. The official SDKs take
part where `make interop` has installed them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.interop import install

CONTENDERS = Path(__file__).parent / "contenders"
SERVER = str(CONTENDERS / "echo_server.py")
DEPTH = 32
OURS = "typedmcp"


@dataclass(frozen=True)
class Contender:
    """A client to be measured."""

    name: str
    command: list[str]
    share: float = 1
    """How much of the calls it gets: the slow ones fewer."""
    options: tuple[str, ...] = ()


def contenders() -> list[Contender]:
    ours = [sys.executable, str(CONTENDERS / "client_ours.py"), SERVER]
    found = [
        Contender(OURS, ours),
        Contender(f"{OURS}, plain asyncio", ours, options=("--asyncio",)),
        Contender(f"{OURS}, blocking", ours, options=("--sync",)),
    ]
    official, node = install.python("py2"), install.node() / "bin" / "node"
    if not official.exists() or not node.exists():
        print("the official SDKs are not installed: run `make interop`", file=sys.stderr)
        return found
    script = install.INTEROP / "node" / "client_official.mjs"
    script.write_bytes((CONTENDERS / script.name).read_bytes())  # node looks for packages beside the script
    found.append(
        Contender(
            "official Python", [str(official), str(CONTENDERS / "client_official.py"), SERVER], 0.1, (sys.executable,)
        )
    )
    found.append(Contender("official TypeScript", [str(node), str(script), sys.executable, SERVER], 0.5))
    return found


def measure(contender: Contender, calls: int) -> list[float | None]:
    """Sequential and concurrent calls a second."""
    command = [*contender.command, str(int(calls * contender.share)), str(DEPTH), *contender.options]
    rates: list[float | None] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    found = contenders()
    measured: dict[str, list[list[float | None]]] = {contender.name: [] for contender in found}
    for _ in range(options.rounds):
        for contender in found:
            measured[contender.name].append(measure(contender, options.calls))
    print(f"{'echo, 20 bytes, calls/s':<34}{'1 at a time':>12}{'of ours':>9}{f'{DEPTH} at a time':>14}{'of ours':>9}")
    for name, rates in measured.items():
        print(f"{name:<34}" + "".join(column(measured[OURS], rates, kind) for kind in (0, 1)))


def column(ours: list[list[float | None]], rates: list[list[float | None]], kind: int) -> str:
    """The median of a rate, and of its ratios to what the first contender did in the same round."""
    pairs = [(one[kind], base[kind]) for one, base in zip(rates, ours, strict=True)]
    plain = [(one, base) for one, base in pairs if one is not None and base is not None]
    if not plain:
        return f"{'':>{12 + 2 * kind}}{'':>9}"
    rate, ratio = median(one for one, _ in plain), median(one / base for one, base in plain)
    return f"{rate:>{12 + 2 * kind},.0f}{ratio:>9.3f}"


if __name__ == "__main__":
    main()
