"""A handler of typedmcp, over stdio as a script, and over HTTP as `app`."""

import typedmcp
from typedmcp.dialect import handlers, structs

TOOLS = [structs.Tool(name=name, input_schema={"type": "object"}) for name in ("large", "length")]


class LargeHandler(handlers.ServerStub[typedmcp.Context]):
    async def list_tools(self, params: object, ctx: typedmcp.Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=TOOLS, result_type="complete", ttl_ms=0, cache_scope="private")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        arguments = params.arguments or {}
        text = "x" * arguments["size"] if params.name == "large" else str(len(arguments["text"]))
        return structs.CallToolResult(content=[structs.TextContent(text=text)], result_type="complete")


if __name__ == "__main__":
    typedmcp.serve(LargeHandler(), name="large", version="1")
else:
    limits = typedmcp.Limits(http_body_bytes=64 << 20)
    app = typedmcp.asgi(LargeHandler(), name="large", version="1", limits=limits)
