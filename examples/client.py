"""A handler that asks the client for input, with an async and a blocking client.

Run `python client.py`. It starts `python client.py serve` as the server.
"""

import asyncio
import sys

import typedmcp
from typedmcp.dialect import structs

COMMAND = [sys.executable, __file__, "serve"]
TOOL = structs.Tool(name="greet", input_schema={"type": "object"})
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


class Greeter:
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[TOOL])

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        answer = await ctx.elicit("What is your name?", FORM)
        name = answer.content["name"] if answer.content else "stranger"
        return structs.CallToolResult(content=[structs.TextContent(text=f"Hello, {name}!")])


async def main() -> None:
    async with typedmcp.connect(COMMAND, elicit=lambda params: {"name": "Ada"}) as client:
        print([tool.name async for tool in client.tools()], "on", client.revision)
        print(typedmcp.text_of(await client.call_tool("greet")))


def call_blocking() -> None:
    with typedmcp.sync.connect(COMMAND) as client:
        try:
            client.call_tool("greet")  # this client has no `elicit`
        except typedmcp.MissingCapabilityError as error:
            print(error)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        typedmcp.serve(Greeter())
    else:
        asyncio.run(main())
        call_blocking()
