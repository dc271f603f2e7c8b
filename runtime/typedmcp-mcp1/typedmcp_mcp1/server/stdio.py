"""Standard input and output, under the names of `mcp.server.stdio`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from typedmcp.errors import UsageError
from typedmcp.transports.stdio import stdio
from typedmcp_mcp1.streams import ReadStream, WriteStream

__all__ = ["stdio_server"]


@asynccontextmanager
async def stdio_server(stdin: Any = None, stdout: Any = None) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Reserve standard input and output for messages, and yield them as streams, for `Server.run`.

    Raises `UsageError` for other files: give `typedmcp.serve_async` a `Transport` over those.
    """
    if stdin is not None or stdout is not None:
        raise UsageError("stdio_server serves standard input and output only: write a typedmcp.Transport for others")
    async with stdio() as transport:
        yield ReadStream(transport), WriteStream(transport)
