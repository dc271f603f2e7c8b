"""The members of `_meta` that the protocol itself has.

https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta
"""

from __future__ import annotations

from typing import Final

__all__ = ["CAPABILITIES", "CLIENT_INFO", "LOG_LEVEL", "SERVER_INFO", "SUBSCRIPTION", "VERSION"]

_OURS = "io.modelcontextprotocol/"

VERSION: Final = _OURS + "protocolVersion"
"""Makes a request a modern one."""
CLIENT_INFO: Final = _OURS + "clientInfo"
CAPABILITIES: Final = _OURS + "clientCapabilities"
LOG_LEVEL: Final = _OURS + "logLevel"
SERVER_INFO: Final = _OURS + "serverInfo"
SUBSCRIPTION: Final = _OURS + "subscriptionId"
"""Names the `subscriptions/listen` request that a notification is for."""
