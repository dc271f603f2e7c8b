"""A gateway of typedmcp over HTTP, to the server whose address is in the environment."""

import os

from typedmcp_gateway import Gateway

app = Gateway(os.environ["BENCH_UPSTREAM"]).asgi()
