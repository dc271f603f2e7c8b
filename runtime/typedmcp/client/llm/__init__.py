"""Tools of servers for the APIs of language models, as plain dicts, without the SDKs of these APIs."""

from __future__ import annotations

from typedmcp.client.llm.formats import LlmApi
from typedmcp.client.llm.toolbox import Toolbox

__all__ = ["LlmApi", "Toolbox"]
