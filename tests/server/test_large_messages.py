"""Large messages: a connection keeps nothing of them, and nothing is lost between small ones."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

from tests.cases import each
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp import connect
from typedmcp.dialect import structs

SIZE = 4 << 20
KINDS = ("result", "argument")


class LargeTools:
    """Makes large results, and takes large arguments. A tool waits if its name says so."""

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "waiting":
            await asyncio.sleep(0)
        text = str(len(arguments["text"])) if "text" in arguments else "x" * arguments["size"]
        return structs.CallToolResult(content=[structs.TextContent(text=text)], result_type="complete")


async def call(client: Any, tool: str, kind: str, size: int) -> None:
    arguments = {"size": size} if kind == "result" else {"text": "x" * size}
    (content,) = (await client.call_tool(tool, arguments)).content
    assert (len(content.text) if kind == "result" else int(content.text)) == size


@each("revision", [MODERN_REVISION, *LEGACY])
@each("tool", ["immediate", "waiting"])
@each("kind", KINDS)
def test_nothing_is_kept_of_a_large_message(kind: str, tool: str, revision: str) -> None:
    async def main() -> int:
        async with connect(LargeTools(), revisions=[revision]) as client:
            await call(client, tool, kind, 100_000)
            tracemalloc.start(1)
            try:
                await call(client, tool, kind, SIZE)
                await asyncio.sleep(0)  # the step in which a task wakes up keeps what it has waited for
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

    assert asyncio.run(main()) < SIZE / 4


@each("kind", KINDS)
def test_large_and_small_messages_go_out_in_their_order(kind: str) -> None:
    async def main() -> None:
        async with connect(LargeTools()) as client:
            sizes = [1, 70_000, 2, SIZE, 3, 70_001]
            await asyncio.gather(
                *(call(client, tool, kind, size) for size in sizes for tool in ("immediate", "waiting"))
            )

    asyncio.run(main())
