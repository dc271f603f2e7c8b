"""Standard input, for commands that can read it instead of a file."""

from __future__ import annotations

import sys
from typing import BinaryIO, TextIO, cast

from typedmcp_cli.status import CommandExit

__all__ = ["open_standard_input"]


def open_standard_input() -> BinaryIO:
    """Return standard input as a binary stream. Raises `CommandExit` if it is closed."""
    stream = cast("TextIO | None", sys.stdin)
    if stream is None:
        raise CommandExit("standard input is closed")
    return stream.buffer
