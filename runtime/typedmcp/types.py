"""The types of the protocol, for authors of servers and clients: those of the newest revision, on msgspec.

They are what handlers, `Server`, `Client` and callbacks take and return.
"""

from typing import TYPE_CHECKING

from typedmcp.dialect.structs import *  # noqa: F403

if not TYPE_CHECKING:
    from mcpspec.support.lazy import unknown_names

    # Errors are those of the dialect's module, which says which revisions have a name.
    __getattr__ = unknown_names(Tool.__module__)  # noqa: F405
