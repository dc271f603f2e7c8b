"""Clients: `connect` to a server and call it."""

from __future__ import annotations

from typedmcp.client.client import Client, connect
from typedmcp.client.connection.targets import Target, describe_target, is_url, target_key
from typedmcp.client.incoming.callbacks import with_defaults
from typedmcp.client.options import URL_OPTIONS, CallOptions, ConnectOptions, check_connect_options
from typedmcp.client.requests.call_options import Arguments
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.subscriptions import ChangeEvent, Subscription

__all__ = [
    "URL_OPTIONS", "Arguments", "CallOptions", "ChangeEvent", "Client", "ConnectOptions", "ServerDescription",
    "Subscription", "Target", "check_connect_options", "connect", "describe_target", "is_url", "target_key",
    "with_defaults",
]  # fmt: skip
