"""Messages on their way through a transport, under the names of `mcp.shared.message`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from typedmcp_mcp1 import types

__all__ = [
    "ClientMessageMetadata", "CloseSSEStreamCallback", "MessageMetadata", "ResumptionToken",
    "ResumptionTokenUpdateCallback", "ServerMessageMetadata", "SessionMessage",
]  # fmt: skip

ResumptionToken: TypeAlias = str
ResumptionTokenUpdateCallback: TypeAlias = Callable[[str], Awaitable[None]]
CloseSSEStreamCallback: TypeAlias = Callable[[], Awaitable[None]]


@dataclass
class ClientMessageMetadata:
    """The place at which a client goes on with a stream that broke. Our clients do so by themselves, and ignore it."""

    resumption_token: ResumptionToken | None = None
    on_resumption_token_update: ResumptionTokenUpdateCallback | None = None


@dataclass
class ServerMessageMetadata:
    """The request that a message of a server belongs to."""

    related_request_id: types.RequestId | None = None
    request_context: object | None = None
    close_sse_stream: CloseSSEStreamCallback | None = None
    close_standalone_sse_stream: CloseSSEStreamCallback | None = None


MessageMetadata: TypeAlias = ClientMessageMetadata | ServerMessageMetadata | None


@dataclass
class SessionMessage:
    """A message of JSON-RPC, as streams carry it."""

    message: types.JSONRPCMessage
    metadata: MessageMetadata = None
