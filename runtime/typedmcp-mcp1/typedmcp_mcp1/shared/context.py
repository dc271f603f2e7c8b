"""The context of a request, under the names of `mcp.shared.context`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from typedmcp_mcp1.shared.message import CloseSSEStreamCallback

if TYPE_CHECKING:
    from typedmcp_mcp1 import types

__all__ = ["LifespanContextT", "RequestContext", "RequestT", "SessionT"]

SessionT = TypeVar("SessionT", default=Any)
LifespanContextT = TypeVar("LifespanContextT", default=Any)
RequestT = TypeVar("RequestT", default=Any)


@dataclass
class RequestContext(Generic[SessionT, LifespanContextT, RequestT]):
    """A request that is handled: its id, its `_meta`, the session, and what the lifespan has yielded."""

    request_id: types.RequestId
    meta: types.RequestParamsMeta | None
    session: SessionT
    lifespan_context: LifespanContextT
    experimental: Any = None
    request: RequestT | None = None
    """The HTTP request; None on other transports."""
    close_sse_stream: CloseSSEStreamCallback | None = None
    close_standalone_sse_stream: CloseSSEStreamCallback | None = None
