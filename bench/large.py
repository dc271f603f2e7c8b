"""How long one large result takes to arrive over stdio, and how much memory: `python -m bench.large [--rounds N]`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.interop import install

CONTENDERS = Path(__file__).parent / "contenders"
SERVER = str(CONTENDERS / "echo_server.py")
SIZES = (1, 16, 48)
"""MB of text in the result."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = {"typedmcp": [sys.executable, str(CONTENDERS / "large_ours.py")]}
    official = install.python("py2")
    if official.exists():
        found["official Python"] = [str(official), str(CONTENDERS / "large_official.py")]
    else:
        print("the official SDK is not installed: run `make interop`", file=sys.stderr)
    print(f"{'one result':<18}{'MB':>4}{'seconds':>9}{'ms/MB':>8}{'memory, of its size':>21}")
    for name, command in found.items():
        for size in SIZES:
            runs = [measure([*command, SERVER, str(size), sys.executable]) for _ in range(options.rounds)]
            seconds, memory = median(run[0] for run in runs), median(run[1] for run in runs)
            print(f"{name:<18}{size:>4}{seconds:>9.3f}{seconds / size * 1000:>8.1f}{memory / (size << 20):>21.1f}")


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds, and bytes of memory at most."""
    seconds, memory = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
    return seconds, memory


if __name__ == "__main__":
    main()
