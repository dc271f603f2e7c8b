"""`MCPServer` of the official Python SDK with many tools, over stdio."""

import uvloop
from many_tools import make_functions
from mcp.server.mcpserver import MCPServer

server = MCPServer("many", version="1", log_level="WARNING")
for function in make_functions():
    server.tool(structured_output=False)(function)
uvloop.run(server.run_stdio_async())
