"""Servers under test that listen: processes of their own that print their address once they would hear somebody."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Listening", "listening"]


@dataclass(frozen=True)
class Listening:
    """A server that listens."""

    address: str
    """Such as `http://127.0.0.1:8000`."""
    process: subprocess.Popen[str]
    log: Path

    @property
    def said(self) -> str:
        """What it has written to standard error."""
        return self.log.read_text(encoding="utf-8")


@contextmanager
def listening(command: Sequence[str]) -> Generator[Listening]:
    """Start a server, and end it. Raises `RuntimeError` where it does not start, or ends by itself."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield Listening(_first_line(process), process, log)
            if process.poll() is not None:
                raise RuntimeError(f"the server has ended by itself, with {process.returncode}")
        except BaseException as error:
            error.add_note(f"The server said:\n{log.read_text(encoding='utf-8')}")
            raise
        finally:
            _end(process)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError("the server did not start")
    return line


def _end(process: subprocess.Popen[str]) -> None:
    """End it gracefully, or after ten seconds anyhow."""
    with process:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
