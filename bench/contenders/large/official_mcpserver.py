"""`MCPServer` of the official Python SDK, over stdio as a script, and over HTTP as `app`. Results are plain text."""

import logging

import uvloop
from mcp.server.mcpserver import MCPServer

logging.disable(logging.INFO)
server = MCPServer("large", version="1", log_level="WARNING")


@server.tool(structured_output=False)
async def large(size: int) -> str:
    return "x" * size


@server.tool(structured_output=False)
async def length(text: str) -> str:
    return str(len(text))


if __name__ == "__main__":
    uvloop.run(server.run_stdio_async())
else:
    app = server.streamable_http_app(json_response=True, max_request_body_size=64 << 20)
