"""A handler of typedmcp over HTTP."""

from echo_handler import ExactHttpEchoHandler, HttpEchoHandler

import typedmcp

app = streams = typedmcp.asgi(HttpEchoHandler(), name="echo", version="1")
exact_app = exact_streams = typedmcp.asgi(ExactHttpEchoHandler(), name="echo", version="1")
