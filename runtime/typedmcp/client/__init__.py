"""Clients: `connect` to a server, and call it."""

from __future__ import annotations

from typedmcp.client.callbacks import with_defaults
from typedmcp.client.client import CallOptions, Client, connect
from typedmcp.client.era import Server
from typedmcp.client.listening import Changed, Subscription
from typedmcp.client.targets import Target

__all__ = ["CallOptions", "Changed", "Client", "Server", "Subscription", "Target", "connect", "with_defaults"]
