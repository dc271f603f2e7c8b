"""The session of a client, as handlers see it, under the names of `mcp.server.session`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from typedmcp import Context as ServedContext
from typedmcp.building import is_object
from typedmcp.dialect import methods, structs
from typedmcp.errors import InputUnavailableError, RemoteError
from typedmcp.extensions import SessionHandle
from typedmcp.revisions.features import structs_of
from typedmcp.types import CreateMessageRequest, ElicitRequest, ListRootsRequest, from_builtins, to_builtins
from typedmcp_mcp1 import types
from typedmcp_mcp1.shared.exceptions import McpError

T = TypeVar("T")

__all__ = ["ServerSession", "ServerSessionT", "served_request", "session_of"]

ServerSessionT = TypeVar("ServerSessionT", bound="ServerSession")

served_request: ContextVar[ServedContext[Any]] = ContextVar("served_request")
"""The request that this task handles."""

_sessions: WeakKeyDictionary[object, ServerSession] = WeakKeyDictionary()


def session_of(ctx: ServedContext[Any]) -> ServerSession:
    """Return the session of a request: the same object for all requests of a connection."""
    found = _sessions.get(ctx.connection)
    if found is None:
        found = _sessions[ctx.connection] = ServerSession(ctx)
    return found


class ServerSession:
    """The client of a connection or a session. What a request sends goes with the request, as long as it is handled.

    Questions are asked while a request for a tool, a prompt or a resource is handled, as the protocol demands since
    2025-11-25; elsewhere they raise `InputUnavailableError`.
    """

    def __init__(self, ctx: ServedContext[Any]) -> None:
        self._handle = SessionHandle(ctx)
        self._connection_id = id(ctx.connection)
        self._client_info = ctx.client_info
        self._capabilities = ctx.client_capabilities
        self._revision = ctx.revision

    @property
    def client_params(self) -> types.InitializeRequestParams | None:
        """The parameters of the handshake: revision, capabilities, name and version of the client."""
        if self._client_info is None:
            return None
        members = {
            "protocolVersion": self._revision,
            "capabilities": to_builtins(self._capabilities),
            "clientInfo": to_builtins(self._client_info),
        }
        return types.InitializeRequestParams.model_validate(members)

    def check_client_capability(self, capability: types.ClientCapabilities) -> bool:
        """Return whether the client has declared all members of a capability."""
        return _contains(to_builtins(self._capabilities), types.to_builtins(capability))

    @property
    def _request(self) -> ServedContext[Any] | None:
        """The request of this session that the task handles; None elsewhere."""
        ctx = served_request.get(None)
        is_own = ctx is not None and id(ctx.connection) == self._connection_id and not ctx.is_answered
        return ctx if is_own else None

    # Notifications

    async def send_log_message(
        self, level: types.LoggingLevel, data: Any, logger: str | None = None, related_request_id: Any = None
    ) -> None:
        """Send a log message, unless the client has asked for a higher level."""
        ctx = self._request
        if ctx is not None and ctx.log_level is not None:
            await ctx.log(level, data, logger)
            return
        members = {"level": level, "data": data, **({} if logger is None else {"logger": logger})}
        await self._notify("notifications/message", members)

    async def send_progress_notification(
        self,
        progress_token: str | int,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        related_request_id: Any = None,
    ) -> None:
        """Send the progress of the request that is handled."""
        ctx = self._request
        if ctx is not None:
            await ctx.progress(progress, total, message)

    async def send_resource_updated(self, uri: types.AnyUrl | str) -> None:
        """Tell the client that a resource has changed."""
        await self._notify("notifications/resources/updated", {"uri": str(uri)})

    async def send_resource_list_changed(self) -> None:
        """Tell the client that the list of resources has changed."""
        await self._notify("notifications/resources/list_changed", {})

    async def send_tool_list_changed(self) -> None:
        """Tell the client that the list of tools has changed."""
        await self._notify("notifications/tools/list_changed", {})

    async def send_prompt_list_changed(self) -> None:
        """Tell the client that the list of prompts has changed."""
        await self._notify("notifications/prompts/list_changed", {})

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: Any = None) -> None:
        """Tell the client that the user has done what a URL asked for."""
        await self._notify("notifications/elicitation/complete", {"elicitationId": elicitation_id})

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send any notification."""
        members = types.to_builtins(notification)
        await self._notify(members["method"], members.get("params", {}))

    async def _notify(self, method: str, members: dict[str, Any]) -> None:
        ctx, name = self._request, _PARAMS.get(method, "NotificationParams")
        if ctx is not None and method in methods.METHODS:
            notify: Any = ctx.notify
            await notify(method, structs.from_builtins(members, getattr(structs, name)))
            return
        exact = structs_of(self._revision)
        self._handle.notify(method, exact.from_builtins(members, getattr(exact, name)))

    # Questions

    async def create_message(
        self,
        messages: list[types.SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        include_context: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        model_preferences: types.ModelPreferences | None = None,
        tools: list[types.Tool] | None = None,
        tool_choice: types.ToolChoice | None = None,
        related_request_id: Any = None,
    ) -> types.CreateMessageResult:
        """Ask the client's model for a message."""
        members = {
            "messages": messages,
            "maxTokens": max_tokens,
            "systemPrompt": system_prompt,
            "includeContext": include_context,
            "temperature": temperature,
            "stopSequences": stop_sequences,
            "metadata": metadata,
            "modelPreferences": model_preferences,
            "tools": tools,
            "toolChoice": tool_choice,
        }
        given = {name: value for name, value in members.items() if value is not None}
        params = types.CreateMessageRequestParams.model_validate(given)
        return await self._ask(CreateMessageRequest, params, types.CreateMessageResult)

    async def list_roots(self) -> types.ListRootsResult:
        """Ask the client for the folders that it works in."""
        return await self._ask(ListRootsRequest, {}, types.ListRootsResult)

    async def elicit(
        self, message: str, requestedSchema: dict[str, Any], related_request_id: Any = None
    ) -> types.ElicitResult:
        """Ask the user to fill in a form."""
        return await self.elicit_form(message, requestedSchema, related_request_id)

    async def elicit_form(
        self, message: str, requestedSchema: dict[str, Any], related_request_id: Any = None
    ) -> types.ElicitResult:
        """Ask the user to fill in a form. `requestedSchema` is the JSON Schema of its fields."""
        params = {"mode": "form", "message": message, "requestedSchema": types.to_builtins(requestedSchema)}
        return await self._ask(ElicitRequest, params, types.ElicitResult)

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, related_request_id: Any = None
    ) -> types.ElicitResult:
        """Ask the user to open a URL. The id is one of our own: the protocol has none any more."""
        params = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
        return await self._ask(ElicitRequest, params, types.ElicitResult)

    async def send_ping(self) -> types.EmptyResult:
        """Raise `InputUnavailableError`: a server cannot ping. A client that has gone ends its requests."""
        raise InputUnavailableError("a server cannot send a ping; a request whose client has gone is cancelled")

    async def _ask(self, kind: Any, params: Any, result: type[T]) -> T:
        ctx = self._request
        if ctx is None:
            raise InputUnavailableError("a client is asked while a request of it is handled")
        question = from_builtins({"method": _METHODS[kind], "params": types.to_builtins(params)}, kind)
        try:
            answers = await ctx.ask({ctx_key(ctx): question})
        except RemoteError as error:
            raise McpError(types.ErrorData(code=error.code, message=error.message, data=error.data)) from error
        (answer,) = answers.values()
        return types.from_builtins(to_builtins(answer), result)


_METHODS = {
    CreateMessageRequest: "sampling/createMessage",
    ElicitRequest: "elicitation/create",
    ListRootsRequest: "roots/list",
}
_PARAMS = {
    "notifications/message": "LoggingMessageNotificationParams",
    "notifications/resources/updated": "ResourceUpdatedNotificationParams",
    "notifications/elicitation/complete": "ElicitationCompleteNotificationParams",
    "notifications/progress": "ProgressNotificationParams",
}


def ctx_key(ctx: ServedContext[Any]) -> str:
    """Return a name for the next question of a request, the same in every attempt."""
    asked = vars(ctx)
    asked["questions"] = number = asked.get("questions", 0) + 1
    return f"question-{number}"


def _contains(whole: Any, part: Any) -> bool:
    if not is_object(part):
        return part in (None, False) or whole == part
    return is_object(whole) and all(name in whole and _contains(whole[name], part[name]) for name in part)
