"""The command `typedmcp`. It needs the extra `cli`, and nothing else of the package imports it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TextIO, cast

from typedmcp import __version__
from typedmcp.cli.interrupts import end_at_once

__all__ = ["main"]


def main() -> None:
    """Do what the command line says, and end with its status. `typedmcp.cli.status` has the statuses."""
    end_at_once()
    _have_standard_error()
    if missing := [name for name in ("cyclopts", "rich") if find_spec(name) is None]:
        sys.exit(_without(missing[0]))
    if sys.argv[1:] == ["--version"] and _is_written(f"typedmcp {__version__}\n"):
        return
    from typedmcp.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _have_standard_error() -> None:
    """Where it is closed it becomes the null device: no other file may get its number."""
    if cast("TextIO | None", sys.stderr) is None:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != 2:
            os.dup2(null, 2)
            os.close(null)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  # it stays open


def _is_written(text: str) -> bool:
    """Write what is asked for often, and needs none of what all else does. That says why it cannot be written."""
    if cast("TextIO | None", sys.stdout) is not None:
        with suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()
            return True
    return False


def _without(missing: str) -> int:
    sys.stderr.write(f"typedmcp: {missing} is missing: pip install 'typedmcp[cli]'\n")
    return 2
