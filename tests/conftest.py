"""Settings and reports of the whole test run."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from typing import cast

import pytest
from hypothesis import HealthCheck, settings

# Examples take longer on a busy machine. That says nothing about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# A shell starts background processes, and `nohup` starts all processes, with signals ignored. Tests and the processes
# that they start expect the defaults.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def forget_servers() -> None:
    """Let clients negotiate anew in each test: a port may have belonged to a server of an older test."""
    if (connection := sys.modules.get("typedmcp.client.connection")) is not None:  # tests of the types do not have it
        connection.known_servers.clear()


RUNS = {
    "not long": "the fast tests: ten minutes on two cores (`make test-all` also runs the long ones)",
    "long": "the long tests: half an hour on two cores (fuzzing, load, type checkers, other implementations)",
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
