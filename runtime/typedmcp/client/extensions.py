"""The client's side of extensions: settings, callbacks for notifications, and results that need more requests.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, Unpack

import msgspec

from mcpspec.support.methods import Method
from typedmcp.client.requests.call_options import CallOptions
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.subscriptions import Subscription
from typedmcp.errors import UsageError
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.extensions import Extension, check_distinct, check_settings

__all__ = [
    "ClientExtension", "Complete", "ExtendedCall", "ExtensionClient", "LegacyCallForm", "OnNotification",
    "bind_extensions", "client_extension",
]  # fmt: skip

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

OnNotification: TypeAlias = Callable[[P], object]
"""A callback for notifications, plain or async. It gets the parameters."""


class ExtensionClient(Protocol):
    """The part of a client that extensions use."""

    @property
    def limits(self) -> Limits:
        """The limits of the client."""
        ...

    @property
    def is_closed(self) -> bool:
        """True once the client is closed."""
        ...

    async def connect(self) -> ServerDescription:
        """Connect if need be, and return the description of the server, which is new for each session."""
        ...

    async def send(
        self, method: Method[P, R], params: P | Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> R:
        """Call a method, as `Client.send` does."""
        ...

    async def send_raw(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> msgspec.Raw:
        """Call a method with plain JSON, and return the result as the server sent it, as `Client.send_raw` does."""
        ...

    def decode(self, method: str, raw: msgspec.Raw) -> Any:
        """Decode the result of a method of the protocol, on the server's revision, into the dialect.

        Raises `ProtocolError` for a result that is not valid.
        """
        ...

    async def answer(self, method: str, request: Any) -> Any:
        """Answer an input request with the callbacks of the client. `method` is the call that needs the input.

        Raises `ProtocolError` for a request that the client has not declared.
        """
        ...

    def listen(self, members: Mapping[str, Any]) -> Subscription:
        """Subscribe to members of the filter that an extension adds."""
        ...

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`."""
        ...

    def tolerate(self, text: str, method: str) -> bool:
        """Report that a message breaks the specification harmlessly. Return False if it must be rejected instead."""
        ...


class ExtendedCall(NamedTuple):
    """A call whose result is one of an extension."""

    client: ExtensionClient
    method: str
    params: Any
    """The parameters, in the dialect."""
    options: CallOptions


Complete: TypeAlias = Callable[[T, ExtendedCall], Awaitable[Any]]
"""Takes a result of an extension, and returns the result that the caller gets instead."""


class LegacyCallForm(Protocol):
    """The form of an extension on legacy revisions that have it in the protocol itself."""

    revisions: frozenset[str]
    """The revisions that have it."""
    callbacks: Mapping[str, Callable[[Any], object]]
    """The callbacks for notifications of these revisions, by method. They get the parameters, in the exact types."""

    async def call(self, method: str, params: Any, options: CallOptions) -> Any:
        """Make a call in this form. `params` are in the dialect.

        Returns a result of the extension, the `msgspec.Raw` of a usual result, or None for a call that is to be made
        as usual.
        """
        ...


class ClientExtension:
    """An extension as a client supports it. `connect` takes it in the list `extensions`.

    `settings` are declared in `capabilities.extensions`.

    ```python
    search = ClientExtension(SEARCH)

    @search.on(methods.NOTIFICATIONS_ACME_INDEXED)
    def show(params: structs.IndexedNotificationParams) -> None: ...
    ```
    """

    legacy: LegacyCallForm | None = None
    """The form of the extension on legacy revisions whose protocol has it, if there are any."""
    on_other: Callable[[str, bytes], object] | None = None
    """Takes the method and the encoded parameters of each notification that has no callback, for proxies. None: those
    are reported."""
    names: Mapping[str, str] | None = None
    """The parameters that the header `Mcp-Name` repeats, by method, for proxies that learn of them while the client is
    connected. None: those of the protocol and of `extension`."""

    def __init__(self, extension: Extension, settings: Mapping[str, Any] | msgspec.Struct | None = None) -> None:
        self.extension: Extension = extension
        self.settings: Mapping[str, Any] = check_settings(extension.identifier, settings)
        """The settings that the client declares, as plain JSON."""
        self.callbacks: dict[str, Callable[[Any], object]] = {}
        """The callbacks for notifications, by method."""
        self.completions: dict[type, Callable[[Any, ExtendedCall], Awaitable[Any]]] = {}
        """The functions that turn a result of the extension into that of the call, by its type."""

    def __repr__(self) -> str:
        return f"<ClientExtension {self.extension.identifier}>"

    def on(self, method: Method[P, None]) -> Callable[[OnNotification[P]], OnNotification[P]]:
        """Register the callback for a notification of servers: `@extension.on(methods.NOTIFICATIONS_ACME_INDEXED)`.

        Async callbacks are awaited in order. Raises `UsageError` for a record that is none of the extension's, and for
        a second callback.
        """
        self.extension.check_record(method, "server")

        def register(callback: OnNotification[P]) -> OnNotification[P]:
            if method.name in self.callbacks:
                raise UsageError(f"{self.extension.identifier}: {method.name} has a callback already")
            self.callbacks[method.name] = callback
            return callback

        return register

    def completes(self, kind: type[T]) -> Callable[[Complete[T]], Complete[T]]:
        """Register the async function that turns a result of the extension into the result of the call.

        Without it the caller gets the result of the extension. Raises `UsageError` for a type that is none of the
        extension's `results`.
        """
        known = {result.kind for result in self.extension.results.values()}
        if kind not in known:
            raise UsageError(f"{self.extension.identifier}: {kind.__name__} is none of its results")

        def register(function: Complete[T]) -> Complete[T]:
            self.completions[kind] = function
            return function

        return register

    def bind(self, client: ExtensionClient) -> ClientExtension:  # noqa: ARG002  # for extensions with state
        """Return the extension for one client. One that keeps state for each client returns a new object."""
        return self


def client_extension(given: object) -> ClientExtension:
    """Return an item of the option `extensions`; an `Extension` is one without settings and callbacks."""
    if isinstance(given, Extension):
        return ClientExtension(given)
    if not isinstance(given, ClientExtension):
        raise UsageError(f"extensions must be ClientExtension objects, not {given!r}")
    return given


def bind_extensions(given: Iterable[object], client: ExtensionClient) -> Sequence[ClientExtension]:
    """Return the extensions of a client. Raises `UsageError` for items that are none, or have the same methods."""
    extensions = [client_extension(each).bind(client) for each in given]
    check_distinct([each.extension for each in extensions])
    return extensions
