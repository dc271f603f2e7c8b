"""A server over stdio whose handlers do not end. With an argument, it serves outside the main thread."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import typedmcp
from typedmcp.dialect import structs


class Stubborn:
    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> structs.CallToolResult:
        await ctx.progress(1)
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue

    @typedmcp.in_thread
    def read_resource(self, params: Any, ctx: typedmcp.Context) -> Any:
        ctx.progress(1)
        time.sleep(3600)


def main() -> None:
    typedmcp.serve(Stubborn(), name="stubborn", grace=0.2)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        thread = threading.Thread(target=main)
        thread.start()
        thread.join()
    else:
        main()
