"""An authorization server, under the name of `mcp.server.auth.routes`: there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp_mcp1.missing import missing_names

if not TYPE_CHECKING:
    __getattr__ = missing_names(
        __name__, "typedmcp has no authorization server; use any provider, and pass a token_verifier for its tokens"
    )

__all__: list[str] = []
