"""`typedmcp record`: record the messages between a host and a server."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from typedmcp import StdioServerParameters
from typedmcp_cli.interrupts import run_async
from typedmcp_cli.options import Mask, Target
from typedmcp_cli.recorded_relay import relay
from typedmcp_cli.recording.recorder import Recorder
from typedmcp_cli.status import ALREADY_REPORTED, FAILED, USAGE, CommandExit
from typedmcp_cli.targets import parse_target

__all__ = ["record"]


def record(
    target: Target,
    /,
    *,
    out: Annotated[str, Parameter(alias="-o", help="The file to write, which is replaced.")] = "recording.jsonl",
    mask: Mask = (),
) -> int:
    """Start a server for the client at standard input and output, and record what passes."""
    parameters = parse_target(target)
    if not isinstance(parameters, StdioServerParameters):
        raise CommandExit(
            f"{target}: record starts a server for a host; use a file, or a command after --. "
            "To record calls of a URL, use --record FILE with call, list or read"
        )
    status = run_async(relay(parameters, Recorder(out, mask=mask)))
    return status - ALREADY_REPORTED if status - ALREADY_REPORTED in (FAILED, USAGE) else status
