"""The proxy of fastmcp over HTTP, to the server whose address is in the environment."""

import logging
import os

from fastmcp.server import create_proxy

logging.disable(logging.INFO)
app = create_proxy(os.environ["BENCH_UPSTREAM"], name="proxy").http_app(json_response=True)
