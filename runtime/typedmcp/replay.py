"""Another name for `typedmcp_cli`, or without it an error that says what to install."""

from typedmcp.satellites import alias_satellite

__all__: list[str] = []

alias_satellite(__name__, "cli")
