"""Tools of servers for the APIs of language models, as plain dicts, without the SDKs of these APIs."""

from __future__ import annotations

from typedmcp_hosts.formats import LlmApi
from typedmcp_hosts.tools import call_for, tools_for

__all__ = ["LlmApi", "call_for", "tools_for"]
