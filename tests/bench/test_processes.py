"""Contenders in processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.environment import SDKS
from bench.plan import FULL, QUICK, ContenderError
from bench.results import load
from bench.suites.processes import (
    LEGACY,
    MODERN,
    PROGRAMS,
    list_programs,
    make_typescript_command,
    pin_to_core,
    start_process,
)
from tests.interop import install

_RUN = """
import sys, time
from bench import __main__
from bench.suites import stdio
from bench.suites.processes import start_process

def measure_tables(plan):
    with start_process("sleeps", [sys.executable, "-c", "import time; time.sleep(60)"], pipes=False) as process:
        print(process.popen.pid, flush=True)
        process.popen.wait()
    yield

stdio.measure_tables = measure_tables
sys.argv = ["bench", "stdio", "--quick", "--out", sys.argv[1]]
sys.exit(__main__.main())
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for the process in /proc")
def test_contenders_end_when_the_run_is_terminated(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        contender = Path("/proc") / run.stdout.readline().strip()
        run.send_signal(signal.SIGTERM)
        assert run.wait(20) == 1
    assert not contender.exists()
    assert [load(file).broken for file in tmp_path.glob("*.json")] == [["stdio: interrupted"]]


@pytest.mark.parametrize("core", [None, 0])
def test_a_contender_that_is_not_installed_fails_with_the_reason(
    core: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "INTEROP", tmp_path)
    make_typescript_command.cache_clear()
    command = make_typescript_command(tmp_path / "official.mjs")
    make_typescript_command.cache_clear()
    with (
        pytest.raises(ContenderError, match=r"TypeScript: cannot be started: .*No such file.*"),
        start_process("TypeScript", command if core is None else pin_to_core(core, command)),
    ):
        pass


def test_programs_are_contenders_on_the_revisions_that_their_sdk_speaks() -> None:
    assert [each.name for each in list_programs(FULL, LEGACY, "echo")] == list(PROGRAMS.values())
    assert PROGRAMS["java"] not in {each.name for each in list_programs(FULL, MODERN, "echo")}
    for language, name in PROGRAMS.items():
        named = {each.name: each.command for each in list_programs(FULL, LEGACY, "echo", "1")}
        assert named[name] == [str(install.optimized(language)), "echo", "1"]


def test_quick_runs_leave_out_programs_that_take_long_to_warm_up() -> None:
    left_out = {
        each.name for each in list_programs(FULL, LEGACY, "echo") if each not in list_programs(QUICK, LEGACY, "echo")
    }
    assert left_out == {PROGRAMS["java"]}


def test_the_report_has_the_version_of_each_sdk() -> None:
    assert SDKS.keys() == PROGRAMS.keys()
    for language, (_, file, pattern) in SDKS.items():
        assert re.search(pattern, (install.program_folder(language) / file).read_text(encoding="utf-8"))
