"""Server processes for tests, which print their address once they accept connections."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Listening", "listening", "running_on"]


@dataclass(frozen=True)
class Listening:
    """A server that accepts connections."""

    address: str
    """Such as `http://127.0.0.1:8000`."""
    process: subprocess.Popen[str]
    log: Path

    @property
    def log_text(self) -> str:
        """The text that the server has written to standard error."""
        return self.log.read_text(encoding="utf-8")


@contextmanager
def listening(command: Sequence[str]) -> Generator[Listening]:
    """Start a server, and stop it at the end. Raises `RuntimeError` if it does not start, or exits by itself."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield Listening(_first_line(process), process, log)
            if process.poll() is not None:
                raise RuntimeError(f"the server exited by itself with status {process.returncode}")
        except BaseException as error:
            error.add_note(f"Standard error of the server:\n{log.read_text(encoding='utf-8')}")
            raise
        finally:
            _stop(process)


@contextmanager
def running_on(command: Sequence[str], env: dict[str, str] | None = None) -> Generator[str]:
    """Start a program that says on standard error where it is running, yield that URL, and terminate it at the end."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        try:
            yield next(found[1] for line in process.stderr if (found := re.search(r"running on (http://\S+)", line)))
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError("the server did not start")
    return line


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop the server gracefully, or kill it after a minute."""
    with process:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
