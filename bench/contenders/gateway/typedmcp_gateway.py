"""A gateway of typedmcp over HTTP, to the server whose address is in the environment."""

import os

import typedmcp

app = typedmcp.Gateway(os.environ["BENCH_UPSTREAM"]).asgi()
