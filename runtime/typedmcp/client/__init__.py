"""Clients: `connect` to a server and call it."""

from __future__ import annotations

from typedmcp.client.callbacks import with_defaults
from typedmcp.client.client import Client, connect
from typedmcp.client.options import CallOptions, ConnectOptions
from typedmcp.client.server_description import ServerDescription
from typedmcp.client.subscriptions import ChangeEvent, Subscription
from typedmcp.client.targets import Target

__all__ = [
    "CallOptions", "ChangeEvent", "Client", "ConnectOptions", "ServerDescription", "Subscription", "Target", "connect",
    "with_defaults",
]  # fmt: skip
