"""A handler on the generated types alone, with one tool.

A runtime would call it with typed parameters and a context; here `main` does.
"""

import asyncio

from mcpspec.v2026_07_28 import handlers, structs


class Weather(handlers.ServerStub[None]):
    """Implements two methods. The others raise "method not found"."""

    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: None) -> structs.ListToolsResult:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        tool = structs.Tool(name="get_weather", input_schema=schema)
        return structs.ListToolsResult(tools=[tool], ttl_ms=60_000, cache_scope="public")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: None) -> structs.CallToolResult:
        city = (params.arguments or {}).get("city", "nowhere")
        text = structs.TextContent(text=f"12 degrees in {city}")
        return structs.CallToolResult(content=[text])


async def main() -> None:
    prefix = "io.modelcontextprotocol/"
    meta: dict[str, object] = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    params = structs.CallToolRequestParams(meta=meta, name="get_weather", arguments={"city": "Oslo"})
    print(structs.encode(await Weather().call_tool(params, None)).decode())


if __name__ == "__main__":
    asyncio.run(main())
