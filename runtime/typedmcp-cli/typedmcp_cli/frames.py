"""Messages on the terminal: a line for each, as it is on the wire."""

from __future__ import annotations

import sys

from typedmcp.building import visible
from typedmcp.frames import Sender

__all__ = ["show_frame"]


def show_frame(sender: Sender, data: bytes) -> None:
    """Write a message to standard error, after the side that sends it. Control characters are escaped."""
    sys.stderr.write(f"{sender}: {visible(data.decode(errors='replace'))}\n")
