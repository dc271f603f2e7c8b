"""For hosts, applications with a language model and several servers: groups of clients, configurations, tools.

Configurations are the files in which hosts have their servers. Tools are those of servers for the APIs of language
models, as plain dicts, without the SDKs of these APIs. A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_hosts.config import Config, ServerEntry, load_config, load_entries, read_config
    from typedmcp_hosts.formats import LlmApi
    from typedmcp_hosts.group import ClientGroup, connect_all
    from typedmcp_hosts.tools import call_for, tools_for
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".config": ["Config", "ServerEntry", "load_config", "load_entries", "read_config"],
        ".formats": ["LlmApi"],
        ".group": ["ClientGroup", "connect_all"],
        ".tools": ["call_for", "tools_for"],
    })  # fmt: skip

__all__ = [
    "ClientGroup", "Config", "LlmApi", "ServerEntry", "call_for", "connect_all", "load_config", "load_entries",
    "read_config", "tools_for",
]  # fmt: skip
