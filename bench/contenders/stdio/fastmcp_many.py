"""fastmcp with many tools."""

import uvloop
from fastmcp import FastMCP
from many import functions

server = FastMCP("many", version="1")
for function in functions():
    server.tool(output_schema=None)(function)
uvloop.run(server.run_stdio_async(show_banner=False, log_level="WARNING"))
