"""Standard input, where a command reads it in the place of a file."""

from __future__ import annotations

import sys
from typing import BinaryIO, TextIO, cast

from typedmcp.cli.status import Stop

__all__ = ["standard_input"]


def standard_input() -> BinaryIO:
    """Raises `Stop` where there is none."""
    stream = cast("TextIO | None", sys.stdin)
    if stream is None:
        raise Stop("standard input is closed")
    return stream.buffer
