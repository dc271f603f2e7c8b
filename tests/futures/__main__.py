"""Try futures, and print what became of them.

Usage: `python -m tests.futures [--count 1000] [--seed 1] [--only 17] [--jobs 2]`, or `make futures COUNT=… SEED=…`. The
exit status is 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import sys

from tests.futures.future import make_future
from tests.futures.report import report


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.futures", description="Try plausible next revisions.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, action="append", default=[], help="the number of a future to try alone")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time")
    parser.add_argument("--whole", action="store_true", help="check all definitions, not only those that are edited")
    options = parser.parse_args(arguments)
    futures = [make_future(options.seed, number) for number in options.only or range(options.count)]
    return report(futures, jobs=options.jobs, is_whole=options.whole, is_verbose=bool(options.only))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
