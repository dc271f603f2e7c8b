"""The official Python SDK, its high-level `MCPServer` with many tools."""

import uvloop
from many import functions
from mcp.server.mcpserver import MCPServer

server = MCPServer("many", version="1", log_level="WARNING")
for function in functions():
    server.tool(structured_output=False)(function)
uvloop.run(server.run_stdio_async())
