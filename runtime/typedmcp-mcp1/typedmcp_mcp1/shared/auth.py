"""Metadata and tokens of OAuth, under the name of `mcp.shared.auth`: typedmcp_auth keeps them itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp_mcp1.missing import missing_names

if not TYPE_CHECKING:
    __getattr__ = missing_names(
        __name__, "pass auth=typedmcp_auth.OAuth(…) to the client, which registers and keeps tokens itself"
    )

__all__: list[str] = []
