"""One trace goes from a client through `typedmcp proxy` to a server: three processes that export to a collector."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.paths import ROOT
from tests.spoken import LEGACY, MODERN_REVISION
from tests.typedmcp_otel.collector import Collector, collecting

pytestmark = pytest.mark.long

TIMEOUT = 120


@pytest.fixture
def collector() -> Generator[Collector]:
    with collecting() as running:
        yield running


def process(collector: Collector, *arguments: str) -> list[str]:
    """Return the command of a process that exports to a collector."""
    return [sys.executable, str(ROOT / "tests" / "servers" / "exporting.py"), collector.address, *arguments]


@contextmanager
def serving(command: list[str]) -> Generator[str]:
    """Run a process over HTTP, and yield its address."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        assert running.stdout is not None
        try:
            yield next(found[0] for line in running.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        finally:
            running.terminate()
            running.communicate(timeout=TIMEOUT)


def call(collector: Collector, revision: str, *target: str) -> None:
    """Let a client call the tool."""
    command = process(collector, "client", revision, *target)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.stdout == "done\n", done.stderr


def check(collector: Collector) -> None:
    """Check that the call and its progress are one trace, from the application's span to the server's."""
    assert collector.chain("tools/call work") == [
        "client client",
        "gateway server",
        "gateway client",
        "server server",
    ]
    (app,) = (span for span in collector.spans if span.name == "app")
    of_call = [span for span in collector.spans if span.name in ("tools/call work", "notifications/progress")]
    assert {span.trace_id for span in of_call} == {app.trace_id}
    assert {span.service for span in of_call if span.name == "notifications/progress"} == {
        "client",
        "gateway",
        "server",
    }


across_eras = pytest.mark.parametrize(
    ("client", "behind"), [(MODERN_REVISION, LEGACY[0]), (LEGACY[0], MODERN_REVISION)]
)


@across_eras
def test_a_trace_goes_through_three_processes_over_stdio(collector: Collector, client: str, behind: str) -> None:
    gateway = process(collector, "gateway", "--revision", behind, "--", *process(collector, "server"))
    call(collector, client, *gateway)
    check(collector)


@across_eras
def test_a_trace_goes_through_three_processes_over_http(collector: Collector, client: str, behind: str) -> None:
    with serving(process(collector, "server", "http")) as server:
        gateway = process(collector, "gateway", "--revision", behind, "--http", "0", f"{server}/mcp")
        with serving(gateway) as address:
            call(collector, client, f"{address}/mcp")
    check(collector)
