"""Clients: `connect` to a server and call it."""

from __future__ import annotations

from typedmcp.client.client import Client, connect
from typedmcp.client.connection.options import CallOptions, ConnectOptions
from typedmcp.client.connection.targets import Target
from typedmcp.client.incoming.callbacks import with_defaults
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.subscriptions import ChangeEvent, Subscription

__all__ = [
    "CallOptions", "ChangeEvent", "Client", "ConnectOptions", "ServerDescription", "Subscription", "Target", "connect",
    "with_defaults",
]  # fmt: skip
