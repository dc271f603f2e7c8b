"""Prompts, under the names of `mcp.server.fastmcp.prompts`."""

from typedmcp_mcp1.server.fastmcp.prompts.base import Prompt

__all__ = ["Prompt"]
