"""The names of the members of `_meta` that the protocol defines.

https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta
"""

from __future__ import annotations

from typing import Final

__all__ = ["CAPABILITIES", "CLIENT_INFO", "LOG_LEVEL", "RELATED_TASK", "SERVER_INFO", "SUBSCRIPTION", "VERSION"]

_PREFIX = "io.modelcontextprotocol/"

VERSION: Final = _PREFIX + "protocolVersion"
"""The revision of a request. A request with this member is a modern one."""
CLIENT_INFO: Final = _PREFIX + "clientInfo"
"""Name and version of the client, in a request."""
CAPABILITIES: Final = _PREFIX + "clientCapabilities"
"""The capabilities of the client, in a request."""
LOG_LEVEL: Final = _PREFIX + "logLevel"
"""The lowest level of log messages that the client wants during a request."""
SERVER_INFO: Final = _PREFIX + "serverInfo"
"""Name and version of the server, in a result."""
SUBSCRIPTION: Final = _PREFIX + "subscriptionId"
"""The id of the `subscriptions/listen` request that a notification belongs to."""
RELATED_TASK: Final = _PREFIX + "related-task"
"""The task of a message, on legacy revisions that have tasks in the protocol itself."""
