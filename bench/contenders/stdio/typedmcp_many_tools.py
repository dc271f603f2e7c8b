"""A `Server` of typedmcp with many tools, over stdio."""

from many_tools import make_functions

import typedmcp

server = typedmcp.Server("many", version="1")
for function in make_functions():
    server.tool(function)
server.run()
