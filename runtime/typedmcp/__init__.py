"""Servers and clients of the Model Context Protocol, on the generated types in `mcpspec`.

Handlers and clients are written in one revision of the protocol, the dialect (`typedmcp.dialect`), and speak all
revisions. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names as in _MODULES, which a test compares
    from typedmcp import sync, types
    from typedmcp.app import AssistantMessage, Audio, CallNext, File, Image, Middleware, Server, UserMessage
    from typedmcp.client import CallOptions, ChangeEvent, Client, ConnectOptions, Subscription, connect, with_defaults
    from typedmcp.client.extensions import ClientExtension
    from typedmcp.client.results.text import text_of
    from typedmcp.errors import (
        AuthorizationRequiredError,
        CallLostError,
        ConnectionLostError,
        DecodeError,
        Error,
        HeaderMismatchError,
        HttpStatusError,
        InputUnavailableError,
        InsufficientScopeError,
        InvalidParamsError,
        MethodNotFoundError,
        MissingCapabilityError,
        ProtocolError,
        RemoteError,
        RequestTimeoutError,
        ResourceNotFoundError,
        ServerBusyError,
        SignInError,
        TaskCancelledError,
        ToolError,
        UnsupportedVersionError,
        UsageError,
    )
    from typedmcp.limits import Limits
    from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
    from typedmcp.protocol.extensions import Extension
    from typedmcp.server.changes import Changes
    from typedmcp.server.config import ServerConfig, ServerOptions
    from typedmcp.server.context import Context
    from typedmcp.server.extensions import ServerExtension
    from typedmcp.server.forms import Elicited
    from typedmcp.server.handlers import in_thread
    from typedmcp.server.http.asgi import asgi
    from typedmcp.server.http.auth import Auth, StaticTokens
    from typedmcp.server.principal import Principal
    from typedmcp.server.run import serve, serve_async
    from typedmcp.server.state_token import StateSigner
    from typedmcp.server.store import Store
    from typedmcp.server.store.memory import MemoryStore
    from typedmcp.transports import Transport
    from typedmcp.transports.memory import memory_pair
    from typedmcp.transports.process_parameters import StdioServerParameters

_MODULES = {
    "app": ["AssistantMessage", "Audio", "CallNext", "File", "Image", "Middleware", "Server", "UserMessage"],
    "client": ["CallOptions", "ChangeEvent", "Client", "ConnectOptions", "Subscription", "connect", "with_defaults"],
    "client.extensions": ["ClientExtension"],
    "client.results.text": ["text_of"],
    "server.forms": ["Elicited"],
    "limits": ["Limits"],
    "protocol.diagnostics": ["Diagnostic", "DiagnosticKind"],
    "protocol.extensions": ["Extension"],
    "server.changes": ["Changes"],
    "server.config": ["ServerConfig", "ServerOptions"],
    "server.context": ["Context"],
    "server.extensions": ["ServerExtension"],
    "server.handlers": ["in_thread"],
    "server.http.asgi": ["asgi"],
    "server.http.auth": ["Auth", "StaticTokens"],
    "server.principal": ["Principal"],
    "server.run": ["serve", "serve_async"],
    "server.state_token": ["StateSigner"],
    "server.store": ["Store"],
    "server.store.memory": ["MemoryStore"],
    "transports": ["Transport"],
    "transports.memory": ["memory_pair"],
    "transports.process_parameters": ["StdioServerParameters"],
}  # fmt: skip
__all__ = [
    "AssistantMessage", "Audio", "Auth", "AuthorizationRequiredError", "CallLostError", "CallNext", "CallOptions",
    "ChangeEvent", "Changes", "Client", "ClientExtension", "ConnectOptions",
    "ConnectionLostError", "Context", "DecodeError", "Diagnostic", "DiagnosticKind", "Elicited",
    "Error", "Extension", "File", "HeaderMismatchError", "HttpStatusError", "Image", "InputUnavailableError",
    "InsufficientScopeError", "InvalidParamsError", "Limits", "MemoryStore",
    "MethodNotFoundError", "Middleware", "MissingCapabilityError", "Principal", "ProtocolError",
    "RemoteError", "RequestTimeoutError", "ResourceNotFoundError", "Server",
    "ServerBusyError", "ServerConfig", "ServerExtension", "ServerOptions", "SignInError",
    "StateSigner", "StaticTokens", "StdioServerParameters", "Store", "Subscription", "TaskCancelledError",
    "ToolError", "Transport", "UnsupportedVersionError", "UsageError", "UserMessage", "__version__",
    "asgi", "connect", "in_thread", "memory_pair", "serve", "serve_async", "sync",
    "text_of", "types", "with_defaults",
]  # fmt: skip

_MODULE_OF: dict[str, str] = {
    **{name: "errors" for name in __all__ if name.endswith("Error")},
    **{name: module for module, names in _MODULES.items() for name in names},
}

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name in ("sync", "types"):
        return import_module(f"typedmcp.{name}")
    if (module := _MODULE_OF.get(name)) is None:
        from typedmcp.satellites import find_elsewhere

        return find_elsewhere(name)
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
