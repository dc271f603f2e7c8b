"""A server made with fastmcp, of any major version from 2: `on_fastmcp.py [http]`.

Over HTTP it prints its URL, and runs until it is terminated. Its functions are those of `decorated.py`.
"""

import importlib
import sys
from typing import Any


def main(transport: str = "stdio") -> None:
    decorated: Any = importlib.import_module("decorated")  # in the folder of this script
    server: Any = importlib.import_module("fastmcp").FastMCP("on fastmcp")
    decorated.add_common(server, server.tool, server.resource, server.prompt)
    if transport == "stdio":
        server.run(show_banner=False)
    else:
        decorated.serve_http(server.http_app(path="/mcp"))


if __name__ == "__main__":
    main(*sys.argv[1:])
