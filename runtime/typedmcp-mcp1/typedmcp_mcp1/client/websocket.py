"""WebSockets, under the name of `mcp.client.websocket`: the protocol has no such transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp_mcp1.missing import missing_names

if not TYPE_CHECKING:
    __getattr__ = missing_names(
        __name__, "the protocol has no transport over WebSockets; use HTTP, or write a typedmcp.Transport"
    )

__all__: list[str] = []
