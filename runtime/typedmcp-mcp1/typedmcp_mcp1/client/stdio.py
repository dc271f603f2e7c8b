"""Servers that are child processes, under the names of `mcp.client.stdio`."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TextIO

from pydantic import BaseModel, Field

import typedmcp
from typedmcp.transports.process import ProcessTransport
from typedmcp_mcp1.streams import ReadStream, WriteStream

__all__ = ["DEFAULT_INHERITED_ENV_VARS", "StdioServerParameters", "get_default_environment", "stdio_client"]

_POSIX = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"]
_WINDOWS = ["APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP"]

DEFAULT_INHERITED_ENV_VARS: list[str] = _WINDOWS if sys.platform == "win32" else _POSIX
"""Variables that are unlikely to be secrets."""


def get_default_environment() -> dict[str, str]:
    """Return the variables of this process that a child may have."""
    found = {name: os.environ[name] for name in DEFAULT_INHERITED_ENV_VARS if name in os.environ}
    return {name: value for name, value in found.items() if not value.startswith("()")}  # a function of a shell


class StdioServerParameters(BaseModel):
    """The command of a server that runs as a child process."""

    command: str
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    """Variables beside those that a child may have."""
    cwd: str | Path | None = None
    encoding: str = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"


@asynccontextmanager
async def stdio_client(
    server: StdioServerParameters, errlog: TextIO = sys.stderr
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Start a server, and yield its messages as streams, for a `ClientSession`. It ends with the block.

    `errlog` gets what the server writes to standard error. Raises `typedmcp.ConnectionLostError` if the command cannot
    be started.
    """
    parameters = typedmcp.StdioServerParameters(
        server.command,
        server.args,
        env=server.env,
        cwd=server.cwd,
        stderr="inherit" if errlog is sys.stderr else _writer_of(errlog),
    )
    transport = await ProcessTransport.start(parameters)
    try:
        yield ReadStream(transport), WriteStream(transport)
    finally:
        await transport.close()


def _writer_of(file: TextIO) -> Callable[[str], object]:
    return lambda line: file.write(f"{line}\n")
