"""The names of mcp 1.x, the official Python SDK, on typedmcp: change `mcp` to `typedmcp_mcp1` in imports.

The modules have the names and the places that they have there: `typedmcp_mcp1.server.fastmcp`,
`typedmcp_mcp1.client.stdio`, `typedmcp_mcp1.types`. All names of `mcp` itself are here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_mcp1 import types as types
    from typedmcp_mcp1.client.session import ClientSession as ClientSession
    from typedmcp_mcp1.client.session_group import ClientSessionGroup as ClientSessionGroup
    from typedmcp_mcp1.client.stdio import StdioServerParameters as StdioServerParameters
    from typedmcp_mcp1.client.stdio import stdio_client as stdio_client
    from typedmcp_mcp1.server.session import ServerSession as ServerSession
    from typedmcp_mcp1.server.stdio import stdio_server as stdio_server
    from typedmcp_mcp1.shared.exceptions import McpError as McpError
    from typedmcp_mcp1.shared.exceptions import UrlElicitationRequiredError as UrlElicitationRequiredError
    from typedmcp_mcp1.streams import transport_of as transport_of
    from typedmcp_mcp1.types import *
else:
    _find, _list = lazy_names(globals(), {
        ".client.session": ["ClientSession"],
        ".client.session_group": ["ClientSessionGroup"],
        ".client.stdio": ["StdioServerParameters", "stdio_client"],
        ".server.session": ["ServerSession"],
        ".server.stdio": ["stdio_server"],
        ".shared.exceptions": ["McpError", "UrlElicitationRequiredError"],
        ".streams": ["transport_of"],
    })  # fmt: skip

    def __getattr__(name: str) -> Any:
        """Return a name of this package, or a type of the protocol."""
        from importlib import import_module

        if name in ("client", "server", "shared", "types"):
            return import_module(f"{__name__}.{name}")
        if name in __all__ or name.startswith("_"):
            return _find(name)
        return getattr(import_module(f"{__name__}.types"), _ALIASES.get(name, name))

    def __dir__() -> list[str]:
        return _list()


_ALIASES = {"SamplingRole": "Role"}

__all__ = [
    "ClientSession", "ClientSessionGroup", "McpError", "ServerSession", "StdioServerParameters",
    "UrlElicitationRequiredError", "stdio_client", "stdio_server", "transport_of",
]  # fmt: skip
