"""fastmcp with many tools, over stdio."""

import uvloop
from fastmcp import FastMCP
from many_tools import make_functions

server = FastMCP("many", version="1")
for function in make_functions():
    server.tool(output_schema=None)(function)
uvloop.run(server.run_stdio_async(show_banner=False, log_level="WARNING"))
