"""Services: handlers that describe themselves while they are served, since what they offer changes.

A gateway is one: what it offers is what the servers behind it offer at the moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from typedmcp import dialect
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.server.changes import Changes
from typedmcp.server.state_token import StateSigner

if TYPE_CHECKING:
    from typedmcp.server.extension_setup import OfferedExtension

__all__ = ["AppLink", "Caller", "CallerKind", "OpenMember", "Service", "WorkerLink"]

D = dialect.structs

CallerKind: TypeAlias = Literal["connection", "session", "principal", "address"]
"""The thing by which callers are told apart: a connection, a session of a legacy revision over HTTP, the access token's
principal, or nothing but the address that requests come from."""

OpenMember: TypeAlias = Callable[[Any, Any], AbstractAsyncContextManager[Any]]
"""Serves a member of the filter of `subscriptions/listen`. Takes the member, as plain JSON, and an `ExtensionListener`.
Returns a context manager that yields the part which is granted, as plain JSON, or None for nothing."""


class Caller(NamedTuple):
    """The client that sent a request, as far as the server can tell it from others."""

    key: str
    """A text that callers of the same kind are told apart by. It may be as secret as the session is."""
    kind: CallerKind
    is_alone: bool
    """True if no other client has this key. False for an address, which clients may share."""


class WorkerLink(Protocol):
    """Sends messages to the other workers of a shared store, and receives theirs."""

    message_handlers: dict[str, Callable[..., None]]
    """The functions that handle messages, by kind."""

    @property
    def worker(self) -> str:
        """The name of this worker."""
        ...

    async def send_to(self, worker: str, kind: str, *arguments: Any) -> None:
        """Send a message to one worker. A message to a dead worker is dropped."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in a task that is cancelled when the application closes."""
        ...


class AppLink(Protocol):
    """The part of the application or the connection that a service gets."""

    @property
    def limits(self) -> Limits:
        """The limits on clients."""
        ...

    @property
    def state_signer(self) -> StateSigner:
        """Signs what clients send back."""
        ...

    @property
    def workers(self) -> WorkerLink | None:
        """The other workers that serve the same clients. None without a shared store."""
        ...

    def describe(self, info: D.Implementation) -> None:
        """Describe the server to clients as `info` from now on. Options of a `ServerConfig` take precedence."""
        ...

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`."""
        ...


class Service:
    """A handler whose description may change while it is served. Derive a gateway from it.

    A service has methods like any handler, and these attributes, which are read whenever a client asks for them. A
    subclass sets them, or has properties in their place. `changes` stays the same, and `info` is what
    `AppLink.describe` changes. Options that a `ServerConfig` is made with take precedence.
    """

    info: D.Implementation = D.Implementation(name="service", version="0")
    """The name and the version for clients."""
    instructions: str | None = None
    """The instructions for the client's model."""
    capabilities: D.ServerCapabilities
    """The capabilities, without extensions; none at first."""
    extensions: Sequence[OfferedExtension] = ()
    """The extensions to declare. Their methods reach `fallback`."""
    header_params: Mapping[str, str] = {}
    """The parameters that the header `Mcp-Name` repeats, by method, for methods that the protocol does not have."""

    def __init__(self) -> None:
        self.capabilities = D.ServerCapabilities()
        self.changes: Changes = Changes()
        """The hub that changes are published to."""

    def open(self, app: AppLink) -> AbstractAsyncContextManager[None]:  # noqa: ARG002  # for subclasses
        """Open what the service needs, such as connections. Entered before the first request, left after the last."""
        return nullcontext()

    def input_schema_of(self, tool: str) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Return the input schema of a tool, to check the headers of its calls.

        Empty if there is no such tool, None if only the list of tools can tell.
        """
        return None

    def members(self, names: Sequence[str], ctx: Any) -> Mapping[str, OpenMember]:  # noqa: ARG002
        """Return the functions for members of a filter of `subscriptions/listen` that the protocol does not have.

        `names` are the members of the request, whose `Context` is `ctx`. Members without a function are ignored.
        """
        return {}

    def topic_of(self, uri: str, ctx: Any) -> str:  # noqa: ARG002
        """Return the text whose changes the client of a request hears of, once it may subscribe to a resource.

        `changes.resource_updated` takes that text. It is the URI, or the URI, a line feed, and a key for the clients
        that share its content: others do not hear of the change.
        """
        return uri

    async def on_unsubscribed(self, uri: str, ctx: Any) -> None:
        """Take note of the end of a subscription to a resource on a legacy revision. `ctx` is its `Context`."""
