"""Servers of typedmcp over HTTP with uvicorn: `serve(…, "http")` uses this.

`HttpProtocol` is the protocol class for a uvicorn of your own: `uvicorn --http typedmcp_http:HttpProtocol module:app`.
"""

from __future__ import annotations

from typedmcp_http.protocol import HttpProtocol
from typedmcp_http.server import UvicornServer

__all__ = ["HttpProtocol", "UvicornServer"]
