"""The protocol class for uvicorn that serves calls fast: `uvicorn --http typedmcp.uvicorn:HttpProtocol module:app`.

`serve(…, "http")` and `typedmcp run` use it. It needs the extra `http`.
"""

from typedmcp.server.http.uvicorn_protocol import HttpProtocol

__all__ = ["HttpProtocol"]
