"""Latency under load, of a server that takes a known time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.plan import Plan
from bench.suites import http, latency
from bench.suites.processes import Contender, make_python_command
from tests.bench.test_load import SERVER

pytestmark = pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
PAUSE = 0.02


def test_a_latency_is_no_shorter_than_the_server_takes_and_the_load_is_half_of_its_peak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "server.py"
    slow = SERVER.format(under_load="responds").replace(
        "            writer.write", f"            await asyncio.sleep({PAUSE})\n            writer.write"
    )
    script.write_text(slow, encoding="utf-8")
    contender = Contender("slow", make_python_command(script))

    def list_servers(*_: object) -> list[Contender]:
        return [contender]

    monkeypatch.setattr(http, "list_servers", list_servers)
    times, rate = latency.measure_tables(Plan(quick=True, rounds=1, parts=1, seconds=0.05))
    p50, p99, p999 = (times.rows[0].figures[name].median for name in times.columns)
    assert 1e6 * PAUSE <= p50 <= p99 <= p999
    assert 0 < rate.rows[0].figures["calls"].median < latency.PEAK_CONNECTIONS / PAUSE
