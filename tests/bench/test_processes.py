"""Contenders that are processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.plan import ContenderFailed
from bench.results import load
from bench.suites._processes import pinned, started, typescript
from tests.interop import install

_RUN = """
import sys, time
from bench import __main__
from bench.suites import stdio
from bench.suites._processes import started

def tables(plan):
    with started("sleeps", [sys.executable, "-c", "import time; time.sleep(60)"], pipes=False) as process:
        print(process.popen.pid, flush=True)
        process.popen.wait()
    yield

stdio.tables = tables
sys.argv = ["bench", "stdio", "--quick", "--out", sys.argv[1]]
sys.exit(__main__.main())
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for the process in /proc")
def test_contenders_end_with_a_run_that_is_told_to_end(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        contender = Path("/proc") / run.stdout.readline().strip()
        run.send_signal(signal.SIGTERM)
        assert run.wait(20) == 1
    assert not contender.exists()
    assert [load(file).broken for file in tmp_path.glob("*.json")] == [["stdio: interrupted"]]


@pytest.mark.parametrize("core", [None, 0])
def test_a_contender_that_is_not_installed_is_left_out_with_what_is_missing(
    core: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "INTEROP", tmp_path)
    typescript.cache_clear()
    command = typescript(tmp_path / "official.mjs")
    typescript.cache_clear()
    with (
        pytest.raises(ContenderFailed, match=r"TypeScript: it cannot be started: .*No such file.*"),
        started("TypeScript", command if core is None else pinned(core, command)),
    ):
        pass
