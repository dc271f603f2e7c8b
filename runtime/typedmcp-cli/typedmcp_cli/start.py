"""The start of the command `typedmcp`, which loads little before it is known what is asked for."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO, cast

from typedmcp import __version__
from typedmcp_cli.interrupts import exit_on_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line in `sys.argv` and exit with its status; see `typedmcp_cli.status`."""
    exit_on_interrupt()
    _ensure_standard_error()
    if sys.argv[1:] == ["--version"] and _write_version():
        return
    from typedmcp_cli.command_line import run_command_line

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
