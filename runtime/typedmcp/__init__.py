"""typedmcp: servers and clients of the Model Context Protocol, on the generated types in `mcpspec`.

Handlers are written in one revision of the protocol, the dialect (`typedmcp.dialect`); every revision is spoken.
What is named here is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp import sync as sync
    from typedmcp.changes import Changes as Changes
    from typedmcp.client import CallOptions as CallOptions
    from typedmcp.client import Changed as Changed
    from typedmcp.client import Client as Client
    from typedmcp.client import Subscription as Subscription
    from typedmcp.client import connect as connect
    from typedmcp.client import with_defaults as with_defaults
    from typedmcp.client.config import ServerEntry as ServerEntry
    from typedmcp.client.config import load_config as load_config
    from typedmcp.client.group import ClientGroup as ClientGroup
    from typedmcp.client.group import connect_all as connect_all
    from typedmcp.client.texts import text_of as text_of
    from typedmcp.context import Context as Context
    from typedmcp.dispatch import in_thread as in_thread
    from typedmcp.errors import AuthorizationRequired as AuthorizationRequired
    from typedmcp.errors import CallLost as CallLost
    from typedmcp.errors import ConnectionLost as ConnectionLost
    from typedmcp.errors import DecodeError as DecodeError
    from typedmcp.errors import Error as Error
    from typedmcp.errors import HeaderMismatch as HeaderMismatch
    from typedmcp.errors import HttpStatusError as HttpStatusError
    from typedmcp.errors import InputUnavailable as InputUnavailable
    from typedmcp.errors import InsufficientScope as InsufficientScope
    from typedmcp.errors import InvalidParams as InvalidParams
    from typedmcp.errors import MethodNotFound as MethodNotFound
    from typedmcp.errors import MissingCapability as MissingCapability
    from typedmcp.errors import ProtocolError as ProtocolError
    from typedmcp.errors import RemoteError as RemoteError
    from typedmcp.errors import RequestTimeout as RequestTimeout
    from typedmcp.errors import ResourceNotFound as ResourceNotFound
    from typedmcp.errors import ServerBusy as ServerBusy
    from typedmcp.errors import ToolError as ToolError
    from typedmcp.errors import UnsupportedVersion as UnsupportedVersion
    from typedmcp.errors import UsageError as UsageError
    from typedmcp.forms import Elicited as Elicited
    from typedmcp.http.access import Auth as Auth
    from typedmcp.http.access import Principal as Principal
    from typedmcp.http.asgi import asgi as asgi
    from typedmcp.peer import Kind as Kind
    from typedmcp.peer import Report as Report
    from typedmcp.sealer import Sealer as Sealer
    from typedmcp.server import AssistantMessage as AssistantMessage
    from typedmcp.server import Audio as Audio
    from typedmcp.server import CallNext as CallNext
    from typedmcp.server import File as File
    from typedmcp.server import Image as Image
    from typedmcp.server import Middleware as Middleware
    from typedmcp.server import Server as Server
    from typedmcp.server import UserMessage as UserMessage
    from typedmcp.service import Service as Service
    from typedmcp.serving import serve as serve
    from typedmcp.serving import serve_async as serve_async
    from typedmcp.state import Store as Store
    from typedmcp.state.memory import MemoryStore as MemoryStore
    from typedmcp.state.redis import RedisStore as RedisStore
    from typedmcp.transports import Transport as Transport
    from typedmcp.transports.memory import memory_pair as memory_pair
    from typedmcp.transports.process import StdioServerParameters as StdioServerParameters

_MODULES = {
    "changes": ["Changes"],
    "client": ["CallOptions", "Changed", "Client", "Subscription", "connect", "with_defaults"],
    "client.config": ["ServerEntry", "load_config"],
    "client.group": ["ClientGroup", "connect_all"],
    "client.texts": ["text_of"],
    "context": ["Context"],
    "dispatch": ["in_thread"],
    "errors": [
        "AuthorizationRequired", "CallLost", "ConnectionLost", "DecodeError", "Error", "HeaderMismatch",
        "HttpStatusError", "InputUnavailable", "InsufficientScope", "InvalidParams", "MethodNotFound",
        "MissingCapability", "ProtocolError", "RemoteError", "RequestTimeout", "ResourceNotFound", "ServerBusy",
        "ToolError", "UnsupportedVersion", "UsageError",
    ],
    "forms": ["Elicited"],
    "http.access": ["Auth", "Principal"],
    "http.asgi": ["asgi"],
    "peer": ["Kind", "Report"],
    "sealer": ["Sealer"],
    "server": ["AssistantMessage", "Audio", "CallNext", "File", "Image", "Middleware", "Server", "UserMessage"],
    "service": ["Service"],
    "serving": ["serve", "serve_async"],
    "state": ["Store"],
    "state.memory": ["MemoryStore"],
    "state.redis": ["RedisStore"],
    "transports": ["Transport"],
    "transports.memory": ["memory_pair"],
    "transports.process": ["StdioServerParameters"],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AssistantMessage",
    "Audio",
    "Auth",
    "AuthorizationRequired",
    "CallLost",
    "CallNext",
    "CallOptions",
    "Changed",
    "Changes",
    "Client",
    "ClientGroup",
    "ConnectionLost",
    "Context",
    "DecodeError",
    "Elicited",
    "Error",
    "File",
    "HeaderMismatch",
    "HttpStatusError",
    "Image",
    "InputUnavailable",
    "InsufficientScope",
    "InvalidParams",
    "Kind",
    "MemoryStore",
    "MethodNotFound",
    "Middleware",
    "MissingCapability",
    "Principal",
    "ProtocolError",
    "RedisStore",
    "RemoteError",
    "Report",
    "RequestTimeout",
    "ResourceNotFound",
    "Sealer",
    "Server",
    "ServerBusy",
    "ServerEntry",
    "Service",
    "StdioServerParameters",
    "Store",
    "Subscription",
    "ToolError",
    "Transport",
    "UnsupportedVersion",
    "UsageError",
    "UserMessage",
    "__version__",
    "asgi",
    "connect",
    "connect_all",
    "in_thread",
    "load_config",
    "memory_pair",
    "serve",
    "serve_async",
    "sync",
    "text_of",
    "with_defaults",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "sync":
        return import_module("typedmcp.sync")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, "sync"})
