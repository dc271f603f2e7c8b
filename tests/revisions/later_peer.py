"""A server and a client with the features of the later revision, which run in processes of their own.

`later_peer.py server stdio|http` serves over standard input and output, or over HTTP and prints its URL.
`later_peer.py client stdio|http REVISION` starts that server, uses it on a revision, and prints the results as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import typedmcp
from tests.revisions.two_modern_peer import serve_http
from typedmcp import dialect
from typedmcp.transports.process_parameters import StdioServerParameters

S: Any = dialect.structs
RECIPE = {"type": "recipe", "title": "Soup", "steps": ["boil"]}
CONTENT = [
    {"type": "text", "text": "a", "annotations": {"modifiedAt": "2031-01-01"}},
    RECIPE,
]
USED: dict[str, Any] = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
RETURNED = {"type": "tool_result", "callId": "1", "content": [RECIPE]}
SAMPLING: dict[str, Any] = {
    "messages": [{"role": "assistant", "content": [USED]}, {"role": "user", "content": [RETURNED]}],
    "maxTokens": 1,
    "tools": [],
}
SAMPLED = {"role": "assistant", "model": "m", "content": [RETURNED]}


class Handler:
    """A handler of the later revision."""

    async def get_recipe(self, params: Any, _ctx: typedmcp.Context) -> Any:
        recipe = S.RecipeContent(title=params.title, steps=["boil"])
        return S.GetRecipeResult(recipe=recipe, result_type="complete")

    async def list_tools(self, _params: Any, _ctx: typedmcp.Context) -> Any:
        return S.ListToolsResult(tools=[], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
        content: Any = CONTENT
        if params.name == "ask":
            answer: Any = await ctx.sample(S.from_builtins(SAMPLING, S.CreateMessageRequestParams))
            content = [{"type": "text", "text": answer.content[0].call_id}]
        elif params.name == "change":
            changes: Any = ctx.changes
            changes.recipes_changed()
            changes.tools_changed()
        return S.CallToolResult(content=S.from_builtins(content, list[S.ContentBlock]), result_type="complete")


@asynccontextmanager
async def connected(transport: str, revision: str, **options: Any) -> AsyncGenerator[typedmcp.Client]:
    """Start the server, and connect to it on a revision."""
    command = [sys.executable, __file__, "server", transport]
    if transport == "stdio":
        target = StdioServerParameters(command[0], command[1:], env={"PYTHONPATH": os.environ["PYTHONPATH"]})
        async with typedmcp.connect(target, revisions=[revision], **options) as client:
            yield client
        return
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = (await asyncio.to_thread(server.stdout.readline)).strip()
            async with typedmcp.connect(f"{url}/mcp", revisions=[revision], **options) as client:
                yield client
        finally:
            server.terminate()


async def attempt(call: Any) -> Any:
    """Return the result, or the class of the error."""
    try:
        return await call
    except typedmcp.Error as error:
        return type(error).__name__


async def first_changes(client: Any) -> list[str]:
    """Return the changes up to that of the tools, which every revision announces."""
    async with client.listen(recipes=True, tools=True) as changes:
        await client.call_tool("change")
        kinds = [(await anext(changes)).kind]
        while kinds[-1] != "tools":
            kinds.append((await anext(changes)).kind)
    return kinds


async def recipe(client: typedmcp.Client) -> Any:
    """Use the new method."""
    result: Any = await client.send(dialect.methods.CLIENT_REQUESTS["recipes/get"], {"title": "Soup"})
    return S.to_builtins(result.recipe)


async def text(client: typedmcp.Client, tool: str) -> str:
    return typedmcp.text_of(await client.call_tool(tool))


async def use(transport: str, revision: str) -> dict[str, Any]:
    """Use every new feature once."""
    asked: list[Any] = []

    def sample(params: Any) -> Any:
        asked.append(S.to_builtins(params.messages[-1].content))
        return S.from_builtins(SAMPLED, S.CreateMessageResult)

    async with connected(transport, revision, sample=sample, capabilities={"sampling": {"tools": {}}}) as client:
        return {
            "content": S.to_builtins((await client.call_tool("echo")).content),
            "recipe": await attempt(recipe(client)),
            "changes": await first_changes(client),
            "sampled": [await attempt(text(client, "ask")), *asked],
        }


def main(role: str, transport: str, *arguments: str) -> None:
    config = typedmcp.ServerConfig(Handler(), name="later", version="1")
    if role == "client":
        print(json.dumps(asyncio.run(asyncio.wait_for(use(transport, *arguments), 120))))
    elif transport == "stdio":
        typedmcp.serve(config)
    else:
        serve_http(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
