"""The command line of the benchmarks. `make bench` runs it in the environment of the contenders.

python -m bench [SUITE …] [--quick] [--rounds N] [--check] [--out FOLDER] [--machine NAME]
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from bench.budget import find_violations, load_budgets
from bench.environment import read_environment
from bench.figures import is_typedmcp
from bench.plan import FULL, QUICK, log
from bench.report import render_report, write_report
from bench.results import FORMAT, Results

SUITES = {
    "codecs": "codecs",
    "convert": "convert",
    "stdio": "stdio",
    "http": "http",
    "latency": "latency",
    "layers": "layers",
    "gateway": "gateway",
    "import": "imports",
    "memory": "memory",
    "large": "large",
    "instructions": "instructions",
    "scaling": "scaling",
}
"""Suites by the first part of their table names, with their modules."""
QUICK_SUITES = ("codecs", "convert", "stdio", "http", "import")
"""The default suites of a quick run. Memory, large messages, instructions and scaling take too long."""
RETRIES = 2
"""Repetitions of a suite that is over budget."""
OUT = Path(__file__).parent / "results"


def main() -> int:
    treat_signals_as_interrupts()
    options = _options()
    results = _measure(options)
    if options.out:  # first, so that no figures get lost
        for path in write_report(results, options.out, f"{options.only} {'broken' if results.broken else ''}"):
            log(f"written: {path}")
    print(render_report(results))
    is_within_budget = _check_budget(results, options) if options.check and not results.broken else True
    return 0 if is_within_budget and _is_complete(results) else 1


def treat_signals_as_interrupts() -> None:
    """Treat the signals that end a run like Ctrl-C: the contenders end, and finished tables are written."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` ignores it
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def _measure(options: argparse.Namespace) -> Results:
    plan = QUICK if options.quick else FULL
    plan = replace(plan, rounds=options.rounds or plan.rounds)
    results = Results(FORMAT, options.command, plan.quick, read_environment(options.machine), [])
    for suite in options.suites:
        try:
            for table in import_module(f"bench.suites.{SUITES[suite]}").measure_tables(plan):
                results.tables.append(table)
        except KeyboardInterrupt:
            results.broken.append(f"{suite}: interrupted")
            break
        except Exception as error:
            log(f"{suite}: failed\n{traceback.format_exc()}")
            results.broken.append(f"{suite}: {error}")
    return results


def _is_complete(results: Results) -> bool:
    """Return whether all of typedmcp's contenders have figures. The tables list other contenders without figures."""
    ours = [row for table in results.tables for row in table.rows if is_typedmcp(row.contender)]
    return not results.broken and all(row.figures for row in ours)


def _check_budget(results: Results, options: argparse.Namespace) -> bool:
    """Return whether the measured suites are within budget. A violation counts if it occurs in every run."""
    measured = {_suite(table.name) for table in results.tables}
    for suite in [suite for suite in options.suites if suite not in measured]:
        log(f"not measured, so not checked: {suite}")
    checked = [budget for budget in load_budgets() if _suite(budget.table) in measured]
    violations = find_violations(results, checked)
    for _ in range(RETRIES):
        if violations:
            log(f"over budget, measuring again: {'; '.join(violations)}")
            options.suites = [suite for suite in options.suites if suite in {*map(_suite, violations)}]
            again = _measure(options)
            if again.broken:
                print(f"failed: {'; '.join(again.broken)}")
                return False
            found = find_violations(again, checked)
            violations = {name: line for name, line in found.items() if name in violations}
    for name, line in violations.items():
        print(f"over budget: {name}: {line}")
    if not violations:
        print(f"within budget: {sum(budget.quick or not results.quick for budget in checked)} ratios")
    return not violations


def _suite(table: str) -> str:
    return table.partition("/")[0]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare typedmcp with other libraries.")
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help=f"one of {', '.join(SUITES)}; the default is all; with --quick not memory, large, instructions, scaling",
    )
    parser.add_argument("--quick", action="store_true", help="a rough run of under a minute")
    parser.add_argument("--rounds", type=int, help="turns of each contender; the default is 5, and 2 with --quick")
    parser.add_argument("--check", action="store_true", help="fail if a ratio is worse than in bench/budget.toml")
    parser.add_argument(
        "--out", type=Path, help=f"folder for results and report; the default is {OUT}, or none with --check"
    )
    parser.add_argument("--machine", help="the name of this machine, for file names")
    options = parser.parse_args()
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; known: {', '.join(SUITES)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds must be positive, not {options.rounds}")
    options.out = options.out or (None if options.check else OUT)
    try:  # now, not after an hour of measuring
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot write to {options.out}: {error.strerror}")
    has_suites = bool(options.suites)
    options.suites = options.suites or [*(QUICK_SUITES if options.quick else SUITES)]
    options.command = _command(options, has_suites=has_suites)
    options.only = " ".join([*(options.suites if has_suites else []), *(["quick"] if options.quick else [])])
    return options


def _command(options: argparse.Namespace, *, has_suites: bool) -> str:
    """Return the command that repeats this run."""
    only = f' SUITES="{" ".join(options.suites)}"' if has_suites else ""
    rounds = "" if options.rounds is None else f' ARGS="--rounds {options.rounds}"'
    return f"make bench{only}{' QUICK=1' if options.quick else ''}{rounds}"


if __name__ == "__main__":
    sys.exit(main())
