"""Settings and reports of the whole test run."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import cast

import pytest
from hypothesis import HealthCheck, settings

from tests.cases import forget_servers

# Examples take longer on a busy machine. That says nothing about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# A shell starts background processes, and `nohup` starts all processes, with signals ignored. Tests and the processes
# that they start expect the defaults.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs single cases of tables."""
    parser.addoption("--case", default="", metavar="TEXT", help="run only the cases of tables whose names contain TEXT")


@pytest.hookimpl(optionalhook=True)  # without xdist, the hook is unknown
def pytest_xdist_auto_num_workers() -> int:
    """Use three workers for two processors: many tests wait, for other processes or for time to pass."""
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2) if hasattr(os, "sched_getaffinity") else 4


@pytest.fixture(autouse=True)
def new_servers() -> None:
    """Let clients negotiate anew in each test."""
    forget_servers()


RUNS = {
    "not long": "the fast tests: three minutes on two cores (`make test-all` also runs the long ones)",
    "": "all tests: fifteen minutes on two cores, with pairs of what others have implemented",
}
"""The runs of the Makefile by their markers, with the time they take."""


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Describe the run, and how long it takes, in its first lines."""
    selected = str(config.getoption("markexpr"))
    return [RUNS[selected]] if selected in RUNS and not config.getoption("file_or_dir") else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up the skipped tests: a line for each reason, and the number of all."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = cast("tuple[str, int, str]", report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped tests")
        for reason, number in reasons.most_common():
            terminalreporter.write_line(f"{number:>6}  {reason}")
        terminalreporter.write_line(f"{reasons.total():>6}  in total")
