"""A server over stdio that prints, reads standard input and sends large results, and still serves."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
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


if __name__ == "__main__":
    if "--asyncio" in sys.argv:
        sys.modules["uvloop"] = None  # type: ignore[assignment]  # hides the installed one
    typedmcp.serve(Talkative(), name="talkative", version="1", grace=0.5)
