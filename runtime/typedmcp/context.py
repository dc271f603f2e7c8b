"""What a handler is given beside its parameters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, overload

import msgspec

from typedmcp import dialect
from typedmcp.dispatch import is_awaitable
from typedmcp.errors import ResourceNotFound
from typedmcp.forms import Elicited, form_of
from typedmcp.inputs import Attempt
from typedmcp.peer import Kind, Report
from typedmcp.wire import RequestId

if TYPE_CHECKING:
    from typedmcp.changes import Changes
    from typedmcp.codec import Entry
    from typedmcp.engine import Channel, Engine
    from typedmcp.facts import Facts

__all__ = ["Context", "InputRequest", "LogLevel"]

D = dialect.structs
T = TypeVar("T")

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

LEVELS: dict[str, int] = {
    level: rank
    for rank, level in enumerate(("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"))
}

InputRequest: TypeAlias = "D.ElicitRequest | D.CreateMessageRequest | D.ListRootsRequest"
"""A request for input from the client, as the dialect has it."""


class _Drained:
    """Awaitable that waits while the peer does not keep up. Not awaiting it is allowed."""

    __slots__ = ("_ctx", "_engine")

    def __init__(self, engine: Engine, ctx: Context) -> None:
        self._engine = engine
        self._ctx = ctx

    def __await__(self) -> Generator[Any, None, None]:
        if self._engine.is_congested(self._ctx):
            yield from self._engine.drain(self._ctx).__await__()


class Context(msgspec.Struct, eq=False, weakref=True, dict=True):
    """One request or notification that is being handled, and what can be done about it.

    The same on every wire. Of a notification `id` is None, and there is nothing to ask or to report on. It is a struct
    since one is made for each message, and nothing is made faster.
    """

    _engine: Engine
    entry: Entry
    id: RequestId | None
    """The id of the request; None for a notification."""
    facts: Facts
    """What is known of the client, from which the properties below are read."""
    meta: Any
    """The `_meta` of the message, as the dialect has it, trace context and members unknown here included."""
    raw: bytes
    """The line as it came: for forwarding it untouched."""
    channel: Channel | None = None
    cancelled: bool = False
    """Whether the client gave the request up: a plain handler in a thread should look now and then."""
    params: Any = None
    """The parameters as the dialect has them."""
    task: asyncio.Task[Any] | None = None
    attempt: Attempt | None = None
    ended: bool = False
    """Whether the request has been answered: nothing more is sent for it."""
    owner: Any = None
    """The server that handles it, where that is one that is mounted in the one that is served."""
    _progress: float | None = None

    @property
    def method(self) -> str:
        """The method on the wire, such as `tools/call`."""
        return self.entry.method

    @property
    def revision(self) -> str:
        """The protocol revision on the wire, such as `2025-11-25`."""
        return self.facts.revision

    @property
    def is_modern(self) -> bool:
        """Whether the wire is one without a handshake."""
        return self.facts.is_modern

    @property
    def client_info(self) -> D.Implementation | None:
        """Name and version that the client gives itself. Not to be trusted."""
        return self.facts.client_info

    @property
    def client_capabilities(self) -> D.ClientCapabilities:
        """What the client has declared."""
        return self.facts.capabilities

    @property
    def principal(self) -> str | None:
        """Who the client was authenticated as, if it was."""
        return self._engine.principal if self.channel is None else self.channel.principal

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, their names in lower case; empty where it came otherwise."""
        return {} if self.channel is None else self.channel.request_headers

    @property
    def lifespan(self) -> Any:
        """What the lifespan of the server yielded; None without one."""
        return self._engine.service.lifespan_of(self.owner)

    @property
    def changes(self) -> Changes:
        """The hub to publish changes to; in a server that is mounted in another, its own."""
        return self._engine.service.changes if self.owner is None else cast("Changes", self.owner.changes)

    # Telling

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Tell the client how far the request is. Await it to go no faster than the client reads.

        Sent if the client asked for progress, and only if it is more than last time, as the protocol demands.
        """
        token = self.meta.get("progressToken") if self.meta is not None else None
        if token is None or self.cancelled or (self._progress is not None and progress <= self._progress):
            return self._told(None)
        self._progress = progress
        params = D.ProgressNotificationParams(progress=progress, progress_token=token)
        if total is not None:
            params.total = total
        if message is not None:
            params.message = message
        return self._told(lambda: self._engine.notify(self, "notifications/progress", params))

    def debug(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of that level."""
        return self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of that level."""
        return self.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of that level."""
        return self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of that level."""
        return self.log("error", data, logger)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client wants messages of this level. `data` is any JSON."""
        rank = LEVELS.get(level)
        if rank is None:
            raise ValueError(f"no log level {level!r}; there are {', '.join(LEVELS)}")
        wanted = self.facts.log_level
        if wanted is None:
            self._engine.unheard_log(self, level, data)
        if wanted is None or rank < LEVELS[wanted] or self.cancelled:
            return self._told(None)
        params = D.LoggingMessageNotificationParams(level=level, data=data)
        if logger is not None:
            params.logger = logger
        return self._told(lambda: self._engine.notify(self, "notifications/message", params))

    def report(self, text: str, error: BaseException | None = None) -> None:
        """Tell the operator, by `on_report`, that something failed. The client hears nothing of it."""
        self._engine.report(Report(Kind.FAILED, text, self.method, self.id, error=error))

    async def in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """What a function gives that blocks: it runs in one of the threads of the server."""
        return await self._engine.run_in_thread(function, *args)

    async def read_resource(self, uri: str) -> list[D.TextResourceContents | D.BlobResourceContents]:
        """The contents of a resource of this server. Raises `ResourceNotFound`, and what reading it raises.

        In a server that is mounted in another, URIs are those of the mounted one.
        """
        owner = self.owner
        read = self._engine.service.functions.get("read_resource") if owner is None else owner.read_resource
        if read is None:
            raise ResourceNotFound(uri)
        try:
            made = read(D.ReadResourceRequestParams(meta=self.meta, uri=uri), self)
            result = await made if is_awaitable(made) else made
        finally:
            self.owner = owner  # it may have gone on to a server that is mounted in this one
        return cast(D.ReadResourceResult, result).contents

    async def hang_up(self, retry: float = 1.0) -> None:
        """Let go of the HTTP connection of a long call: the client comes back for the answer after `retry` seconds.

        Only sessions of older revisions over HTTP can do that; otherwise nothing happens.
        """
        await asyncio.sleep(0)  # a call that has waited has a stream
        if self.channel is not None:
            self.channel.hang_up(retry)

    def _told(self, tell: Callable[[], None] | None) -> Awaitable[None]:
        engine = self._engine
        if threading.get_ident() == engine.thread:
            if tell is not None:
                tell()
        elif tell is not None:
            engine.from_thread(self, tell)
        return _Drained(engine, self)

    # Asking

    @overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> Elicited[T]: ...
    @overload
    async def elicit(  # type: ignore[overload-overlap]  # the last one is for what `type[T]` is not: a `Literal`
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> D.ElicitResult: ...
    @overload
    async def elicit(self, message: str, schema: object, *, key: str | None = None) -> Elicited[Any]: ...
    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Any:
        """Ask the person at the client to fill in a form.

        `schema` is an object schema of plain fields; or a type with such fields, a Struct, a dataclass, a TypedDict or
        a Pydantic model, of which the answer then has one as `data`; or a single type, such as `str`, `bool` or a
        `Literal`. `key` names the question where several are asked; without one it is the how-manyth question of its
        kind that this is. See `ask` for what asking means. Raises `UsageError` for a type that no form has.
        """
        form = None if isinstance(schema, Mapping) else form_of(schema)
        wanted = {**cast("Mapping[str, Any]", schema)} if form is None else form.schema
        params = D.from_builtins(
            {"message": message, "mode": "form", "requestedSchema": wanted}, D.ElicitRequestFormParams
        )
        result = cast(D.ElicitResult, await self._ask_one(D.ElicitRequest(params=params), key))
        return result if form is None else form.elicited(result)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> D.ElicitResult:
        """Ask the person at the client to open a URL, for what must not pass through the client."""
        params = D.ElicitRequestURLParams(message=message, url=url)
        return cast(D.ElicitResult, await self._ask_one(D.ElicitRequest(params=params), key))

    async def sample(
        self,
        params: D.CreateMessageRequestParams | str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        temperature: float | None = None,
        key: str | None = None,
    ) -> D.CreateMessageResult:
        """Ask the client's model: with a text, for which the other options are, or with all that can be said.

        `text_of` gives the text of the answer.
        """
        if isinstance(params, str):
            message = D.SamplingMessage(role="user", content=D.TextContent(text=params))
            params = D.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
            if system_prompt is not None:
                params.system_prompt = system_prompt
            if temperature is not None:
                params.temperature = temperature
        return cast(D.CreateMessageResult, await self._ask_one(D.CreateMessageRequest(params=params), key))

    async def list_roots(self, *, key: str | None = None) -> list[D.Root]:
        """Ask for the folders that the client works in."""
        result = await self._ask_one(D.ListRootsRequest(), key)
        return cast(D.ListRootsResult, result).roots

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Ask the client several things at once; the answers by the same keys.

        On older wires the client is asked while the handler waits. On a modern one this attempt ends here, and the
        handler is entered again from its beginning once the client has answered: what it did before asking, it does
        again. Keep side effects behind the last question.

        Raises `MissingCapability` where the client has not declared what it would need, and `InputUnavailable`
        outside `tools/call`, `prompts/get` and `resources/read`, or after too many rounds.
        """
        return await self._engine.inputs.ask(self, requests)

    async def _ask_one(self, request: Any, key: str | None) -> Any:
        if key is None:
            self.attempt = self.attempt or Attempt()
            key = self.attempt.key(request.method)
        return (await self.ask({key: request}))[key]
