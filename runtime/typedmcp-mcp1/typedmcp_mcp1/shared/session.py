"""Small types of sessions, under the names of `mcp.shared.session`."""

from __future__ import annotations

from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

__all__ = ["ProgressFnT", "RequestResponder"]

RequestT = TypeVar("RequestT", default=Any)
ResultT = TypeVar("ResultT", default=Any)


class ProgressFnT(Protocol):
    """Called with the progress of a call, its total and a message."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class RequestResponder(Generic[RequestT, ResultT]):
    """A request of the other side, as a `message_handler` sees it. The callbacks of the session answer it."""

    def __init__(self, request_id: Any, request_meta: Any, request: RequestT) -> None:
        self.request_id: Any = request_id
        self.request_meta: Any = request_meta
        self.request: RequestT = request
