"""A handler of typedmcp over HTTP."""

from echo_handler import HttpEchoHandler

import typedmcp

app = streams = typedmcp.asgi(HttpEchoHandler(), name="echo", version="1")
