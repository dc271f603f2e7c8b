"""The types of the protocol, for authors of servers and clients: those of the newest revision, on msgspec.

They are what handlers, `Server`, `Client` and callbacks take and return.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp.dialect.structs import *  # noqa: F403
else:
    from typedmcp.dialect.structs import __all__, __dir__, __getattr__  # noqa: F401
