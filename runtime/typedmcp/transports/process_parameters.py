"""Parameters of a server that runs as a child process, and what follows from them."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal

from typedmcp.errors import ConnectionLostError, UsageError

__all__ = ["SAFE_ENVIRONMENT", "StdioServerParameters", "child_environment", "start_errors"]

_POSIX = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_WINDOWS = (
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
SAFE_ENVIRONMENT: Final[tuple[str, ...]] = _WINDOWS if sys.platform == "win32" else _POSIX
"""The environment variables that a child inherits. They are unlikely to contain secrets."""


@dataclass(frozen=True, slots=True)
class StdioServerParameters:
    """The command of a server that runs as a child process, and its options.

    Raises `UsageError` for invalid values.
    """

    command: str
    args: Sequence[str] = ()
    _: KW_ONLY
    env: Mapping[str, str] | None = None
    """Environment variables, added to those that the child inherits (`SAFE_ENVIRONMENT`)."""
    cwd: str | os.PathLike[str] | None = None
    """The working directory."""
    encoding: str = "utf-8"
    """The encoding of standard error."""
    stderr: Literal["inherit", "capture", "drop"] | Callable[[str], object] = "inherit"
    """The destination of standard error.

    "capture" keeps the last lines for error messages. A function is also called with each line, without its newline and
    in pieces of at most 65,536 characters.
    """
    close_timeout: float = 2.0
    """Seconds that sending the queued messages and the exit of the child may take together, before SIGTERM."""
    terminate_timeout: float = 2.0
    """Seconds from SIGTERM to SIGKILL. Windows ends a process at once."""
    kill_timeout: float = 2.0
    """Seconds to wait for the end of the child after SIGKILL."""

    def __post_init__(self) -> None:
        if isinstance(self.args, str):
            raise UsageError(f"args must be a list of strings, such as [{self.args!r}]")
        if not callable(self.stderr) and self.stderr not in ("inherit", "capture", "drop"):
            raise UsageError(f"stderr must be 'inherit', 'capture', 'drop' or a function, not {self.stderr!r}")
        try:
            codecs.getincrementaldecoder(self.encoding)
        except LookupError as error:
            raise UsageError(str(error)) from error


def child_environment(parameters: StdioServerParameters) -> dict[str, str]:
    """Return the environment variables of a child."""
    inherited = {name: os.environ[name] for name in SAFE_ENVIRONMENT if name in os.environ}
    # A value with this prefix is a function that a shell exported.
    inherited = {name: value for name, value in inherited.items() if not value.startswith("()")}
    return {**inherited, **(parameters.env or {})}


@contextmanager
def start_errors(parameters: StdioServerParameters) -> Generator[None]:
    """Translate the errors of the start of a child into those that `start` documents."""
    if parameters.cwd is not None and not os.path.isdir(parameters.cwd):
        raise UsageError(f"cannot start {parameters.command!r}: no directory {os.fspath(parameters.cwd)}")
    try:
        yield
    except FileNotFoundError as error:
        text = f"cannot start {parameters.command!r}: no such program, neither as a path nor in the folders of PATH"
        raise ConnectionLostError(text) from error
    except OSError as error:
        raise ConnectionLostError(f"cannot start {parameters.command!r}: {error}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot start {parameters.command!r}: {error}") from error
