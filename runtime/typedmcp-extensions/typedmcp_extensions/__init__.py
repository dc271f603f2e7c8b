"""The official extensions of the Model Context Protocol, for servers and clients of typedmcp.

`typedmcp_extensions.apps` has tools with pages, `io.modelcontextprotocol/ui`.
`typedmcp_extensions.tasks` has calls that outlive their requests, `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

__all__: list[str] = []
