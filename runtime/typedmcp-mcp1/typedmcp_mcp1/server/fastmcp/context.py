"""The context of a request, as functions get it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic

from typing_extensions import TypeVar

from typedmcp_mcp1 import types
from typedmcp_mcp1.server.elicitation import (
    ElicitationResult,
    ElicitSchemaModelT,
    UrlElicitationResult,
    elicit_url,
    elicit_with_validation,
)
from typedmcp_mcp1.server.lowlevel.helper_types import ReadResourceContents
from typedmcp_mcp1.server.session import ServerSession
from typedmcp_mcp1.shared.context import RequestContext

__all__ = ["Context"]

SessionT = TypeVar("SessionT", default=ServerSession)
LifespanT = TypeVar("LifespanT", default=Any)
HttpRequestT = TypeVar("HttpRequestT", default=Any)


class Context(Generic[SessionT, LifespanT, HttpRequestT]):
    """A request for a tool, a prompt or a resource. A parameter with this annotation gets it."""

    def __init__(
        self,
        *,
        request_context: RequestContext[SessionT, LifespanT, HttpRequestT] | None = None,
        fastmcp: Any = None,
    ) -> None:
        self._request_context = request_context
        self._fastmcp = fastmcp

    @property
    def fastmcp(self) -> Any:
        """The `FastMCP` that serves the request."""
        if self._fastmcp is None:
            raise ValueError("Context is not available outside of a request")
        return self._fastmcp

    @property
    def request_context(self) -> RequestContext[SessionT, LifespanT, HttpRequestT]:
        """The request, its session and its lifespan. Raises `ValueError` outside of a request."""
        if self._request_context is None:
            raise ValueError("Context is not available outside of a request")
        return self._request_context

    @property
    def _session(self) -> ServerSession:
        session: Any = self.request_context.session
        return session  # type: ignore[no-any-return]

    @property
    def session(self) -> Any:
        """The session of the client."""
        return self.request_context.session

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return str(self.request_context.request_id)

    @property
    def client_id(self) -> str | None:
        """The member `client_id` of the `_meta` of the request."""
        meta = self.request_context.meta
        return None if meta is None else meta.get("client_id")

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client has asked for it."""
        await self._session.send_progress_notification("", progress, total, message)

    async def read_resource(self, uri: str | types.AnyUrl) -> Iterable[ReadResourceContents]:
        """Read a resource of this server."""
        contents: Iterable[ReadResourceContents] = await self.fastmcp.read_resource(uri)
        return contents

    async def elicit(self, message: str, schema: type[ElicitSchemaModelT]) -> ElicitationResult[ElicitSchemaModelT]:
        """Ask the user to fill in the fields of a model."""
        return await elicit_with_validation(self._session, message, schema)

    async def elicit_url(self, message: str, url: str, elicitation_id: str) -> UrlElicitationResult:
        """Ask the user to open a URL."""
        return await elicit_url(self._session, message, url, elicitation_id)

    async def log(self, level: types.LoggingLevel, message: Any, *, logger_name: str | None = None) -> None:
        """Send a log message."""
        await self._session.send_log_message(level, message, logger_name)

    async def debug(self, message: Any, **extra: Any) -> None:
        """Send a log message of the level "debug"."""
        await self.log("debug", message, **extra)

    async def info(self, message: Any, **extra: Any) -> None:
        """Send a log message of the level "info"."""
        await self.log("info", message, **extra)

    async def warning(self, message: Any, **extra: Any) -> None:
        """Send a log message of the level "warning"."""
        await self.log("warning", message, **extra)

    async def error(self, message: Any, **extra: Any) -> None:
        """Send a log message of the level "error"."""
        await self.log("error", message, **extra)

    async def close_sse_stream(self) -> None:
        """Close the HTTP connection of a long call. The client reconnects for its response."""
        close = self.request_context.close_sse_stream
        if close is not None:
            await close()

    async def close_standalone_sse_stream(self) -> None:
        """Do nothing: the stream for what belongs to no request stays open."""
