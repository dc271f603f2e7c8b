"""The official Python client uses tasks of 2025-11-25: it prints its observations as a JSON document.

    python python_tasks.py stdio COMMAND [ARGUMENT …]
    python python_tasks.py http URL

It runs in an environment of its own, with `mcp` 1.x, whose tasks are experimental.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import warnings
from contextlib import AsyncExitStack
from typing import Any

mcp: Any = importlib.import_module("mcp")  # by name: type checkers run where it is not installed
types: Any = importlib.import_module("mcp.types")

warnings.simplefilter("ignore")  # its tasks are deprecated, as in the specification


async def elicit(_context: Any, params: Any) -> Any:
    """Answer any form."""
    assert params.message == "Your name?"
    return types.ElicitResult(action="accept", content={"value": "Ada"})


async def observe(session: Any) -> dict[str, Any]:
    """Use every method of tasks."""
    opened = await session.initialize()
    tools = {tool.name: tool.execution.taskSupport for tool in (await session.list_tools()).tools}
    tasks = session.experimental
    made = await tasks.call_tool_as_task("greet", {})
    statuses: list[str] = []
    result: Any = None
    async for status in tasks.poll_task(made.task.taskId):
        statuses.append(status.status)
        if status.status == "input_required":
            result = await tasks.get_task_result(made.task.taskId, types.CallToolResult)
    waiting = await tasks.call_tool_as_task("wait", {})
    cancelled = await tasks.cancel_task(waiting.task.taskId)
    listed = {task.taskId: task.status for task in (await tasks.list_tasks()).tasks}
    try:
        await session.call_tool("only", {})
        refused = None
    except mcp.McpError as error:
        refused = error.error.code
    return {
        "capability": opened.capabilities.tasks.model_dump(exclude_none=True),
        "tools": tools,
        "statuses": statuses,
        "text": result.content[0].text,
        "related": result.meta["io.modelcontextprotocol/related-task"]["taskId"] == made.task.taskId,
        "cancelled": cancelled.status,
        "listed": [listed[made.task.taskId], listed[waiting.task.taskId]],
        "refused": refused,
    }


async def main(kind: str, *target: str) -> None:
    """Connect, and print what was observed."""
    async with AsyncExitStack() as stack:
        if kind == "stdio":
            parameters = mcp.StdioServerParameters(command=target[0], args=list(target[1:]))
            streams = await stack.enter_async_context(mcp.stdio_client(parameters))
        else:
            http: Any = importlib.import_module("mcp.client.streamable_http")
            streams = await stack.enter_async_context(http.streamable_http_client(target[0]))
        session = mcp.ClientSession(streams[0], streams[1], elicitation_callback=elicit)
        print(json.dumps(await observe(await stack.enter_async_context(session))))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
