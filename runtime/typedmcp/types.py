"""The types of the protocol, for authors of servers and clients: those of the newest revision, on msgspec.

They are what handlers, `Server`, `Client` and callbacks take and return.
"""

from typedmcp.dialect.structs import *  # noqa: F403
