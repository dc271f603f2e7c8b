"""A program in a fork behaves as one that Python starts, and nothing of it reaches the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cases import each
from tests.forks import run_forked

PROGRAM = """
import atexit, os, sys, warnings
import beside
print(sys.argv[1:], os.getcwd() == os.path.dirname(os.path.abspath(__file__)), os.environ.get("GIVEN"), __name__)
print(sys.stdin.read(), beside.NAME, "SEEN" in os.environ, hasattr(os, "seen"), "é")
os.environ["SEEN"] = os.seen = "1"
atexit.register(print, "the end", file=sys.stderr)
"""
ENDS = {
    "the end": "",
    "a status": "sys.exit(7)",
    "a text": "sys.exit('no')",
    "an error": "1 / 0",
    "a warning": "warnings.warn('old')",
}


@each("end", ENDS.values(), ids=ENDS)
def test_a_fork_prints_and_returns_what_a_process_does(end: str, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    (tmp_path / "program.py").write_text(PROGRAM + end)
    arguments, env = ["program.py", "a b", "--c"], {**os.environ, "GIVEN": "x"}
    command = [sys.executable, "-W", "error", *arguments]
    started = subprocess.run(command, cwd=tmp_path, env=env, input="in", capture_output=True, text=True, timeout=60)
    for _ in range(2):
        forked = run_forked(arguments, cwd=tmp_path, env=env, stdin=b"in")
        assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
        assert forked.stderr.splitlines()[-2:] == started.stderr.splitlines()[-2:]
