"""Helpers that run examples as a user would: in a process, from another folder, with warnings as errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.forks import run_forked
from tests.paths import ROOT

__all__ = ["EXAMPLES", "PYTHON", "output", "run", "serving"]

EXAMPLES = ROOT / "examples"
PYTHON = [sys.executable, "-W", "error"]

_URL = re.compile(r"Uvicorn running on (http://[0-9.:]+)")


def run(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an example until it ends with status 0."""
    with tempfile.TemporaryDirectory() as folder:
        done = run_forked([EXAMPLES / name, *arguments], cwd=Path(folder), env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done


def output(name: str, *arguments: str, **environment: str) -> list[str]:
    """Return the lines that an example prints. It must print nothing on standard error."""
    done = run(name, *arguments, **environment)
    assert done.stderr == "", done.stderr
    return done.stdout.splitlines()


@contextmanager
def serving(*command: str, folder: Path = EXAMPLES, **environment: str) -> Generator[str]:
    """Run an HTTP server in a folder, and yield its URL without a path."""
    with subprocess.Popen(
        [*PYTHON, *command], cwd=folder, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _url(process)
        finally:
            _end(process)


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    log: list[str] = []
    for line in process.stderr:
        log.append(line)
        if found := _URL.search(line):
            return found[1]
    raise RuntimeError("".join(["the server did not start:\n", *log]))


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
