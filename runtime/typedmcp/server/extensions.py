"""The server's side of extensions: settings, handlers of methods, filters of subscriptions, and a lifespan.

Requests of an extension reach the same middleware as those of the protocol. A client that has not declared the
extension gets the error "missing capability", and on legacy revisions "method not found".
https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias, TypeVar

import msgspec

from mcpspec.support.handlers import MaybeAwaitable
from mcpspec.support.methods import Method
from typedmcp.errors import UsageError
from typedmcp.protocol.extensions import Extension
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context
from typedmcp.server.extension_filters import ExtensionListener
from typedmcp.server.extension_setup import OfferedExtension, require_extension

__all__ = ["ExtensionHandler", "ExtensionListener", "OpenFilter", "ServerExtension"]

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

ExtensionHandler: TypeAlias = Callable[[P, Context], MaybeAwaitable[R]]
"""Handles a request or a notification: takes the parameters and the context, and returns the result."""

OpenFilter: TypeAlias = Callable[[T, ExtensionListener], AbstractAsyncContextManager[T | None]]
"""Serves a member of the filter of `subscriptions/listen`, in a context manager that yields what it grants: None for
nothing."""


class ServerExtension(OfferedExtension):
    """An extension as a server offers it. `Server`, `asgi` and `serve` take it in the list `extensions`.

    `settings` are declared in `capabilities.extensions`. `lifespan` takes the `ServerConfig` and returns an async
    context manager, which is entered after the server's own lifespan; handlers get the value that it yields from
    `ctx.state_of(extension)`.

    ```python
    search = ServerExtension(SEARCH, {"maxHits": 10})

    @search.handler(methods.ACME_SEARCH)
    async def find(params: structs.SearchRequestParams, ctx: Context) -> structs.SearchResult: ...
    ```
    """

    def __init__(
        self,
        extension: Extension,
        settings: Mapping[str, Any] | msgspec.Struct | None = None,
        *,
        lifespan: Callable[[ServerConfig], AbstractAsyncContextManager[Any]] | None = None,
    ) -> None:
        if lifespan is not None and not callable(lifespan):
            raise UsageError(f"{extension.identifier}: lifespan must be a function, not {lifespan!r}")
        super().__init__(extension, settings, lifespan)

    def __repr__(self) -> str:
        return f"<ServerExtension {self.extension.identifier}>"

    def handler(self, method: Method[P, R]) -> Callable[[ExtensionHandler[P, R]], ExtensionHandler[P, R]]:
        """Register the function for a request or notification of clients: `@extension.handler(methods.ACME_SEARCH)`.

        The function is async, or plain and does not block; `typedmcp.in_thread` marks one that does. Raises
        `UsageError` for a record that is none of the extension's, and for a second function.
        """
        self.extension.check_record(method, "client")

        def register(function: ExtensionHandler[P, R]) -> ExtensionHandler[P, R]:
            if method.name in self.handlers:
                raise UsageError(f"{self.extension.identifier}: {method.name} has a handler already")
            self.handlers[method.name] = function
            return function

        return register

    def filter(self, member: str, kind: type[T]) -> Callable[[OpenFilter[T]], OpenFilter[T]]:
        """Register the function for a member that the extension adds to the filter of `subscriptions/listen`.

        The function takes the member, decoded as `kind`, and an `ExtensionListener`. It returns an async context
        manager that yields the part which is granted, and is left at the end of the subscription. The listener's
        `notify` sends notifications from then on.
        """

        def register(function: OpenFilter[T]) -> OpenFilter[T]:
            if member in self.filters:
                raise UsageError(f"{self.extension.identifier}: the filter {member!r} has a function already")
            self.filters[member] = kind, function
            return function

        return register

    def require(self, ctx: Context) -> None:
        """Raise `MissingCapabilityError` for a client that has not declared the extension.

        On revisions where the extension cannot be used that is `MethodNotFoundError`.
        """
        require_extension(self.extension, ctx)
