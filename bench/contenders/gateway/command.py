"""A gateway of typedmcp over HTTP to a command: `command.py COMMAND … --port PORT`."""

import sys

import uvicorn

from typedmcp_gateway import Gateway
from typedmcp_http import HttpProtocol

*command, _, port = sys.argv[1:]
app = Gateway(command).asgi()
uvicorn.run(app, port=int(port), loop="uvloop", http=HttpProtocol, access_log=False, log_level="warning")
