"""The command line `typedmcp`, which needs the extra `cli`. No other room imports it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TextIO, cast

from typedmcp import __version__
from typedmcp.cli.interrupts import exit_on_interrupt

__all__ = ["main"]

_DEPENDENCIES = ("cyclopts", "rich")


def main() -> None:
    """Run the command line in `sys.argv` and exit with its status; see `typedmcp.cli.status`."""
    exit_on_interrupt()
    _ensure_standard_error()
    if missing := [name for name in _DEPENDENCIES if find_spec(name) is None]:
        from typedmcp.errors import missing_extra

        text = missing_extra("the command line", "cli")
        sys.stderr.write(f"typedmcp: {missing[0]} is not installed: {text}\n")
        sys.exit(2)
    if sys.argv[1:] == ["--version"] and _write_version():
        return
    from typedmcp.cli.command_line import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))


def _ensure_standard_error() -> None:
    """Open the null device as standard error if that is closed, so that no other file gets its number."""
    if cast("TextIO | None", sys.stderr) is None:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != 2:
            os.dup2(null, 2)
            os.close(null)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  # it stays open


def _write_version() -> bool:
    """Write the version without loading the commands; return False if that failed, so that they report why."""
    if cast("TextIO | None", sys.stdout) is not None:
        with suppress(OSError):
            sys.stdout.write(f"typedmcp {__version__}\n")
            sys.stdout.flush()
            return True
    return False
