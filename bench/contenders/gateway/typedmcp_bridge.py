"""A gateway of typedmcp over HTTP to a command: `typedmcp_bridge.py COMMAND … --port PORT`."""

import sys

import uvicorn

import typedmcp

*command, _, port = sys.argv[1:]
app = typedmcp.Gateway(command).asgi()
uvicorn.run(app, port=int(port), loop="uvloop", http="httptools", access_log=False, log_level="warning")
