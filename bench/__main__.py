"""The command line of the benchmarks; `make bench` calls it in the contenders' environment.

python -m bench [SUITE …] [--quick] [--check] [--out FOLDER] [--machine NAME]
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path

from bench.budget import budgets, over
from bench.environment import environment
from bench.plan import FULL, QUICK, say
from bench.report import terminal, write
from bench.report.figures import is_ours
from bench.results import FORMAT, Results

SUITES = {"codecs": "codecs", "stdio": "stdio", "http": "http", "import": "imports", "memory": "memory"}
"""The suites, as tables are named, and their modules."""
IN_A_HURRY = ("codecs", "stdio", "http", "import")
"""Those of a quick run, if none are named: memory takes its time."""
RETRIES = 2
"""How often a run that is over budget is made again."""
OUT = Path(__file__).parent / "results"


def main() -> int:
    end_well()
    options = _options()
    results = _measured(options)
    if options.out:  # first of all, lest anything that was measured gets lost
        for path in write(results, options.out, f"{options.only} {'broken' if results.broken else ''}"):
            say(f"written: {path}")
    print(terminal.text(results))
    held = _check(results, options) if options.check and not results.broken else True
    return 0 if held and _is_whole(results) else 1


def end_well() -> None:
    """Take the signals that end a run for Ctrl-C: contenders end, and what was measured is written."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # which `nohup` sets
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def _measured(options: argparse.Namespace) -> Results:
    plan = QUICK if options.quick else FULL
    results = Results(FORMAT, options.command, plan.quick, environment(options.machine), [])
    for suite in options.suites:
        try:
            for table in import_module(f"bench.suites.{SUITES[suite]}").tables(plan):
                results.tables.append(table)
        except KeyboardInterrupt:
            results.broken.append(f"{suite}: interrupted")
            break
        except Exception as error:
            say(f"{suite}: broken off\n{traceback.format_exc()}")
            results.broken.append(f"{suite}: {error}")
    return results


def _is_whole(results: Results) -> bool:
    """Whether nothing of ours is missing. That others are, the tables say."""
    ours = [row for table in results.tables for row in table.rows if is_ours(row.contender)]
    return not results.broken and all(row.figures for row in ours)


def _check(results: Results, options: argparse.Namespace) -> bool:
    """Whether results hold the budget, as far as their suites were run. What is worse has to be so each time."""
    measured = {_suite(table.name) for table in results.tables}
    for suite in [suite for suite in options.suites if suite not in measured]:
        say(f"not measured here, and not held to a budget: {suite}")
    held = [budget for budget in budgets() if _suite(budget.table) in measured]
    worse = over(results, held)
    for _ in range(RETRIES):
        if worse:
            say(f"over budget, and measured again, since machines are shared: {'; '.join(worse)}")
            options.suites = [suite for suite in options.suites if suite in {*map(_suite, worse)}]
            again = _measured(options)
            if again.broken:
                print(f"broken off: {'; '.join(again.broken)}")
                return False
            found = over(again, held)
            worse = {name: line for name, line in found.items() if name in worse}
    for name, line in worse.items():
        print(f"over budget: {name}: {line}")
    if not worse:
        print(f"within budget: {sum(budget.quick or not results.quick for budget in held)} ratios")
    return not worse


def _suite(table: str) -> str:
    return table.partition("/")[0]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure typedmcp beside its contenders.")
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help=f"of {', '.join(SUITES)}; all without one, and quickly all but memory",
    )
    parser.add_argument("--quick", action="store_true", help="under a minute, and rougher")
    parser.add_argument("--check", action="store_true", help="fail where a ratio is worse than bench/budget.toml")
    parser.add_argument("--out", type=Path, help=f"where results and report go: {OUT} without, or nowhere to --check")
    parser.add_argument("--machine", help="a name for this machine, which its files get")
    options = parser.parse_args()
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    options.out = options.out or (None if options.check else OUT)
    try:  # now, rather than after all has been measured
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"nothing can be written to {options.out}: {error.strerror}")
    given = bool(options.suites)
    options.suites = options.suites or [*(IN_A_HURRY if options.quick else SUITES)]
    options.command = _command(options, given=given)
    options.only = " ".join([*(options.suites if given else []), *(["quick"] if options.quick else [])])
    return options


def _command(options: argparse.Namespace, *, given: bool) -> str:
    """By which anybody can run the same again."""
    only = f' SUITES="{" ".join(options.suites)}"' if given else ""
    return f"make bench{only}{' QUICK=1' if options.quick else ''}"


if __name__ == "__main__":
    sys.exit(main())
