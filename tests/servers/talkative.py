"""A server over stdio that prints, reads standard input and sends large results, and still serves."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import typedmcp
from typedmcp.dialect import handlers, structs


def text(value: str) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=value)], result_type="complete")


class Talkative(handlers.ServerStub[typedmcp.Context]):
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        arguments: dict[str, Any] = params.arguments or {}
        return text(await getattr(self, f"do_{params.name}")(ctx, **arguments))

    async def do_echo(self, ctx: typedmcp.Context, value: str) -> str:
        return value

    async def do_print(self, ctx: typedmcp.Context) -> str:
        print('{"jsonrpc": "2.0", "method": "not a message"}')
        os.write(1, b"straight to file descriptor 1\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        return "printed"

    async def do_read(self, ctx: typedmcp.Context) -> str:
        child = [sys.executable, "-c", "import sys; print(sys.stdin.read(), end='')"]
        return repr(sys.stdin.read() + subprocess.run(child, check=True, capture_output=True, text=True).stdout)

    async def do_large(self, ctx: typedmcp.Context, size: int) -> str:
        return "x" * size

    async def do_slow(self, ctx: typedmcp.Context, seconds: float, leaves: str) -> str:
        await ctx.progress(1)
        try:
            await asyncio.sleep(seconds)
        finally:
            Path(leaves).write_text("ended", encoding="utf-8")
        return "slept"

    async def do_late(self, ctx: typedmcp.Context, leaves: str) -> str:
        """Report progress and return a result, after the call was cancelled."""
        await ctx.progress(1)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            Path(leaves).write_text("ended", encoding="utf-8")
            await ctx.progress(2)
        return "too late"


@asynccontextmanager
async def lifespan(_server: object) -> AsyncGenerator[None]:
    """Leave a file where the process ends in good order."""
    yield
    await asyncio.sleep(0.01)
    (Path(sys.argv[-1]) / "lifespan").write_text("left", encoding="utf-8")


if __name__ == "__main__":
    if "--asyncio" in sys.argv:
        sys.modules["uvloop"] = None  # type: ignore[assignment]  # hides the installed one
    if "--long-grace" in sys.argv:
        typedmcp.serve(Talkative(), name="talkative", version="1", lifespan=lifespan, grace=100)
    elif "--own-grace" in sys.argv:
        typedmcp.serve(Talkative(), name="talkative", version="1", lifespan=lifespan)
    else:
        typedmcp.serve(Talkative(), name="talkative", version="1", grace=0.5)
