"""Running examples as a user would: each in a process of its own, from another folder, with warnings as errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.paths import ROOT

__all__ = ["EXAMPLES", "PYTHON", "output", "run", "serving"]

EXAMPLES = ROOT / "examples"
PYTHON = [sys.executable, "-W", "error"]

_PATIENCE = 60
_URL = re.compile(r"Uvicorn running on (http://[0-9.:]+)")


def run(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an example to its end, which has to be a good one."""
    command = [*PYTHON, str(EXAMPLES / name), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    assert done.returncode == 0, done.stderr
    return done


def output(name: str, *arguments: str, **environment: str) -> list[str]:
    """The lines that an example prints, which has nothing to complain of."""
    done = run(name, *arguments, **environment)
    assert not done.stderr
    return done.stdout.splitlines()


@contextmanager
def serving(*command: str, folder: Path = EXAMPLES, **environment: str) -> Generator[str]:
    """Serve HTTP from a folder, and end it; the URL that the server says, without a path."""
    with subprocess.Popen(
        [*PYTHON, *command], cwd=folder, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _url(process)
        finally:
            _end(process)


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if found := _URL.search(line):
            return found[1]
    raise RuntimeError("".join(["the server did not start:\n", *said]))


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
