"""typedmcp: a decorated server with many tools."""

from many import functions

import typedmcp

server = typedmcp.Server("many", version="1")
for function in functions():
    server.tool(function)
server.run()
