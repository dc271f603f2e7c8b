"""The options of a gateway: names, types, meanings and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ForwardRef, TypeAlias, TypedDict

from typedmcp import ConnectOptions, Principal
from typedmcp.building import check_integer, check_names
from typedmcp.errors import UsageError
from typedmcp_gateway.audit import OnCall
from typedmcp_gateway.exchange import ExchangeOf
from typedmcp_gateway.names import Kind, NameRules
from typedmcp_gateway.server_identity import OnStderr

if TYPE_CHECKING:
    from typedmcp.services import Credentials
    from typedmcp_hosts import Config as Config
else:
    Credentials = ForwardRef("Credentials", module="typedmcp.services")  # for `inspect.signature`

__all__ = ["CredentialsOf", "GatewayOptions", "Policy", "ServersConfig", "check_options"]

ServersConfig: TypeAlias = "Config | None"
"""A configuration of several servers, or None."""

CredentialsOf: TypeAlias = Callable[["Principal | None", str], "Credentials | None"]
"""Returns the credentials for a principal at the server with a name: a value for the option `auth` of `connect`."""

Policy: TypeAlias = Callable[["Principal | None", str, Kind, str], bool]
"""Returns whether a principal may see and use something: its server, its kind, and its own name or URI there."""


class GatewayOptions(TypedDict, total=False):
    """The options of `Gateway`."""

    name: str
    """The name of the gateway for clients. By default the gateway of one server has its name, version, title and icons,
    and that of several is called "typedmcp-gateway"."""
    version: str
    """The version of the gateway for clients; by default "0"."""
    tell_causes: bool
    """True tells clients why a server cannot be reached, such as its exit status and its last lines on standard error.
    False, which is the default, tells them the name of the server alone."""
    on_stderr: OnStderr | None
    """Called with the name of a server and each line that its process writes to standard error, which it inherits by
    default. Errors have the last lines then."""
    instructions: str | None
    """Instructions for the client's model; by default those of the servers, one after the other."""
    separator: str
    """The text between the name of a server and that of a tool or prompt; by default "_". Only for several servers."""
    rules: Mapping[str, NameRules]
    """Prefix, filters and other names, by the name of the server."""
    credentials: CredentialsOf | None
    """The credentials of each principal at each URL. By default all principals share those of `connect`."""
    exchange: ExchangeOf | None
    """Exchanges the token of each principal for one of each server (RFC 8693), instead of `credentials`."""
    policy: Policy | None
    """Decides which tools, prompts and resources a principal may see and use; by default all."""
    on_call: OnCall | None
    """Called with an `AuditRecord` at the end of each call."""
    audit_arguments: bool
    """True puts the arguments of calls, which may be secret, into audit records; False by default."""
    reload_seconds: float | None
    """Seconds between two looks at the file of the configuration, which is loaded again when it has changed; by default
    it is not."""
    connect: ConnectOptions
    """The options of `connect` for all servers; those for URLs apply to URLs."""
    max_connections: int
    """Connections and processes at a time; by default 100. Idle ones are closed if there are more."""
    max_calls: int
    """Calls at a time over one connection to a server; by default 1000, to a URL at most the `http_calls_in_flight` of
    `connect`. Of a connection that clients share, one over HTTP has at most `Limits.client_share_percent` of them.
    Further ones wait, and after 30 seconds end with error -32603."""
    max_parked: int
    """Calls at a time that wait for answers of clients; by default 1000. One client has at most
    `Limits.client_share_percent` of them. A further one ends with error -32603."""
    answer_seconds: float
    """Seconds that a client may take to answer a question of a legacy server; by default 600."""
    idle_seconds: float
    """Seconds after which an unused connection is closed, and with it the session of a client; by default 300."""


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `TypeError` for an option that a gateway does not have, `UsageError` for two that exclude each other."""
    check_names("Gateway", options, GatewayOptions)
    for name in ("max_connections", "max_calls", "max_parked"):
        number = options.get(name, 1)
        check_integer(name, number)
        if number < 1:
            raise UsageError(f"{name} must be at least 1, not {number}")
    if options.get("exchange") is not None and options.get("credentials") is not None:
        raise UsageError("Gateway takes either credentials= or exchange=, not both")
