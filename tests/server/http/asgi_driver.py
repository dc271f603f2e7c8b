"""An ASGI server without sockets, in which a test controls bodies, events and disconnections.

`serving` opens a `Served` application. At its end, no task, no stream and no open request may be left.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeAlias

import typedmcp
from tests.spoken import MODERN_REVISION
from typedmcp import Diagnostic, Principal
from typedmcp.dialect import structs
from typedmcp.protocol.sse import EventParser, ServerSentEvent
from typedmcp.revisions.features import FEATURES
from typedmcp.server.http.asgi import AsgiApp

__all__ = [
    "ACCEPT",
    "MODERN",
    "CompleteResponse",
    "Headers",
    "OpenRequest",
    "Served",
    "SessionClient",
    "ToolHandler",
    "base64_header",
    "in_loop",
    "make_served",
    "message",
    "messages",
    "run_loop",
    "serving",
    "tool",
    "verify",
]  # fmt: skip

P = ParamSpec("P")
Headers: TypeAlias = Mapping[str, str] | Sequence[tuple[bytes, bytes]]
"""Headers of a request: by name, or as ASGI has them if order, repetition or bytes matter."""

ACCEPT = "application/json, text/event-stream"
MODERN: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_TIMEOUT = 60.0
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE = (
    (b"host", b"localhost:8000"),
    (b"accept", ACCEPT.encode()),
    (b"content-type", b"application/json"),
)


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in an event loop of its own, with a timeout."""

    @wraps(test)
    def timed(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            async with asyncio.timeout(_TIMEOUT):
                await test(*args, **kwargs)

        asyncio.run(main())

    return timed


def message(**members: Any) -> bytes:
    """Return a JSON-RPC message."""
    return json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False).encode()


def messages(events: Iterable[ServerSentEvent]) -> list[Any]:
    """Return the messages in events, without events that only have an id."""
    return [json.loads(event.data) for event in events if isinstance(event.data, bytes) and event.data]


class CompleteResponse:
    """A complete response."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.headers = {name.decode(): value.decode("latin-1") for name, value in headers}
        self.body = body

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def json(self) -> Any:
        """The body of a JSON response."""
        assert self.headers.get("content-type") == "application/json", (self.status, self.headers, self.body)
        return json.loads(self.body)

    @property
    def events(self) -> list[ServerSentEvent]:
        """The events of a stream."""
        assert self.is_stream, (self.status, self.headers, self.body)
        return EventParser().feed(self.body)

    @property
    def answer(self) -> Any:
        """The JSON-RPC response, in a stream or not."""
        return messages(self.events)[-1] if self.is_stream else self.json

    @property
    def text(self) -> str:
        """The text of the tool's result."""
        return str(self.answer["result"]["content"][0]["text"])

    @property
    def code(self) -> int | None:
        """The code of the error, or None."""
        code = self.answer.get("error", {}).get("code")
        assert code is None or isinstance(code, int)
        return code


class OpenRequest:
    """A request in flight."""

    def __init__(self, app: Any, scope: dict[str, Any], chunks: Sequence[bytes], *, ends: bool, raises: bool) -> None:
        self.sent: list[dict[str, Any]] = []
        """The messages that the application has sent."""
        self.unread: int = 0
        """The chunks of the body that the application had not read when its response began."""
        self._chunks = [*chunks]
        self._ends = ends
        self._raises = raises
        self._gone = asyncio.Event()
        self._changed = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._parser = EventParser()
        self._events: list[ServerSentEvent] = []
        self._task: asyncio.Task[None] = asyncio.ensure_future(app(scope, self._receive, self._send))
        self._task.add_done_callback(lambda _: self._changed.set())

    # The side of the application

    async def _receive(self) -> dict[str, Any]:
        if self._chunks:
            chunk = self._chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks) or not self._ends}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, sent: dict[str, Any]) -> None:
        await self._flowing.wait()
        if self._gone.is_set():
            if self._raises:
                raise OSError("the client has disconnected")
            return
        assert not self.is_complete, f"sent after the end: {sent}"
        if not self.sent:
            self.unread = len(self._chunks)
        self.sent.append(sent)
        if sent["type"] == "http.response.body" and self.is_stream:
            self._events += self._parser.feed(sent.get("body", b""))
        if self.is_complete:
            self._gone.set()
        self._changed.set()

    # The side of the client

    @property
    def status(self) -> int | None:
        return int(self.sent[0]["status"]) if self.sent else None

    @property
    def is_stream(self) -> bool:
        return bool(self.sent) and (b"content-type", b"text/event-stream") in self.sent[0]["headers"]

    @property
    def is_complete(self) -> bool:
        """True once the response is complete."""
        return len(self.sent) > 1 and not self.sent[-1].get("more_body")

    @property
    def body(self) -> bytes:
        return b"".join(part.get("body", b"") for part in self.sent[1:])

    @property
    def is_done(self) -> bool:
        """True once the application has returned from the request."""
        return self._task.done()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until a condition holds. Fails if the application returns before."""
        while not happened():
            assert not self._task.done() or self._failure() is None, self._failure()
            assert not self._task.done(), f"the request ended: {self.sent}"
            self._changed.clear()
            await self._changed.wait()

    def _failure(self) -> BaseException | None:
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    async def head(self) -> int:
        """Wait for the status."""
        await self.until(lambda: bool(self.sent))
        assert self.status is not None
        return self.status

    async def event(self) -> ServerSentEvent:
        """Return the next event."""
        if not self._events:
            await self.until(lambda: bool(self._events))
        return self._events.pop(0)

    async def next_message(self) -> Any:
        """Return the message in the next event that has one."""
        while not (event := await self.event()).data:
            pass
        assert isinstance(event.data, bytes)
        return json.loads(event.data)

    def arrived(self) -> list[ServerSentEvent]:
        """Return the events that have come since the last one that was read."""
        events, self._events = self._events, []
        return events

    async def rest(self) -> list[ServerSentEvent]:
        """Return all events up to the end of the response."""
        if not self.is_complete:
            await self.until(lambda: self.is_complete)
        return self.arrived()

    def upload(self, chunk: bytes, *, ends: bool = False) -> None:
        """Add a chunk to the body, before the application waits for it."""
        self._chunks.append(chunk)
        self._ends = ends

    def disconnect(self) -> None:
        """Disconnect the client."""
        self._gone.set()
        self._flowing.set()

    def hold(self) -> None:
        """Stop reading."""
        self._flowing.clear()

    def release(self) -> None:
        """Read again."""
        self._flowing.set()

    def cancel(self) -> None:
        """Cancel the request as a server does."""
        self._task.cancel()

    async def done(self) -> None:
        """Wait until the application has returned from the request, and raise its exception."""
        await self._task

    async def reply(self) -> CompleteResponse:
        """Wait for the complete response, and for the application to return."""
        await self._task
        assert self.is_complete, self.sent
        return CompleteResponse(int(self.sent[0]["status"]), self.sent[0]["headers"], self.body)

    async def discard(self) -> None:
        """End the request in any state."""
        self.disconnect()
        self._task.cancel()
        await asyncio.wait([self._task])


class Served:
    """An application, its handler, and its diagnostics."""

    def __init__(self, app: AsgiApp, handler: Any, reports: list[Diagnostic]) -> None:
        self.app = app
        self.handler = handler
        self.reports = reports
        self.opened: list[OpenRequest] = []
        self.bearer: str | None = None
        """The bearer token of requests."""
        self.address: str | None = None
        """The address that requests come from."""

    def open(
        self,
        method: str,
        headers: Headers = (),
        body: bytes | Sequence[bytes] = b"",
        *,
        path: str = "/mcp",
        root_path: str = "",
        query: bytes = b"",
        bare: bool = False,
        ends: bool = True,
        raises: bool = False,
        held: bool = False,
    ) -> OpenRequest:
        """Open a request. `bare`: with these headers alone; `ends=False`: more of the body follows;
        `raises`: sending to a disconnected client raises an error; `held`: the client does not read at first."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": root_path,
            "query_string": query,
            "headers": self._headers(headers, bare),
            "client": None if self.address is None else (self.address, 50_000),
        }
        chunks = [body] if isinstance(body, bytes) else [*body]
        opened = OpenRequest(self.app, scope, chunks, ends=ends, raises=raises)
        if held:
            opened.hold()
        self.opened.append(opened)
        return opened

    def _headers(self, headers: Headers, bare: bool) -> list[tuple[bytes, bytes]]:
        if isinstance(headers, Mapping):
            given = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        else:
            given = [*headers]
        if bare:
            return given
        own = _BASE if self.bearer is None else (*_BASE, (b"authorization", f"Bearer {self.bearer}".encode()))
        names = {name for name, _ in given}
        return [*(each for each in own if each[0] not in names), *given]

    async def request(self, method: str, *args: Any, **options: Any) -> CompleteResponse:
        """Make a request, and wait for its response."""
        return await self.open(method, *args, **options).reply()

    async def post(self, body: bytes | Sequence[bytes], headers: Headers = (), **options: Any) -> CompleteResponse:
        return await self.open("POST", headers, body, **options).reply()

    # Without a session

    def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = 1,
        headers: Mapping[str, str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> OpenRequest:
        """Open a request of the newest revision. `headers` are added, or removed if None."""
        params = {**(params or {}), "_meta": {**MODERN, **(meta or {})}}
        said: dict[str, str | None] = {"mcp-protocol-version": MODERN_REVISION, "mcp-method": method}
        if method in _NAMED:
            said["mcp-name"] = str(params.get(_NAMED[method]))
        said |= headers or {}
        kept = {name: value for name, value in said.items() if value is not None}
        return self.open("POST", kept, message(id=id, method=method, params=params), **options)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> OpenRequest:
        """Open a call of a tool on the newest revision."""
        return self.ask("tools/call", {"name": name, "arguments": dict(arguments or {})}, **options)

    def listen(self, id: Any = 1, **wanted: Any) -> OpenRequest:
        """Open a subscription."""
        return self.ask("subscriptions/listen", {"notifications": wanted}, id=id)

    # With a session

    async def session(
        self, revision: str = "2025-11-25", capabilities: Mapping[str, Any] | None = None, *, ready: bool = True
    ) -> SessionClient:
        """Begin a session."""
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": dict(capabilities or {}), "clientInfo": client}
        reply = await self.post(message(id=0, method="initialize", params=params))
        assert reply.status == 200, reply.body
        assert reply.json["result"]["protocolVersion"] == revision
        session = SessionClient(self, revision, reply.headers["mcp-session-id"], self.bearer)
        if ready:
            assert (await session.notify("notifications/initialized")).status == 202
        return session

    # State

    @property
    def kinds(self) -> list[str]:
        return [str(report.kind) for report in self.reports]

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self.app.state.streams)

    def remaining_state(self) -> dict[str, Any]:
        """Return what the application still holds of requests."""
        app = self.app
        sessions = [app.stateless.session, *(stored.session for stored in app.sessions.loaded.values())]
        remaining = {
            "streams": app.state.streams,
            "in flight": [each.in_flight for each in sessions if each.in_flight],
            "pending": [each.questions.pending.calls for each in sessions if each.questions.pending.calls],
            "tasks": [each.calls.tasks for each in sessions if each.calls.tasks],
            "listeners": app.stateless.session.subscriptions._listeners,  # pyright: ignore[reportPrivateUsage]
            "bytes": {name: used for name, used in app.config.budgets.in_use().items() if used},
        }
        return {name: value for name, value in remaining.items() if value}

    async def assert_settled(self) -> None:
        """Fail if the application still holds anything of requests."""
        await _run_loop_until(lambda: not self.remaining_state())
        assert not self.remaining_state(), self.remaining_state()


class SessionClient:
    """A client with a session."""

    def __init__(self, served: Served, revision: str, id: str, token: str | None) -> None:
        self.served = served
        self.revision = revision
        self.id = id
        self.headers = {"mcp-session-id": id}
        if FEATURES[revision].has_version_header:
            self.headers["mcp-protocol-version"] = revision
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"

    def post(self, body: bytes, **options: Any) -> OpenRequest:
        """Open a POST."""
        return self.served.open("POST", self.headers, body, **options)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = 1, **options: Any) -> OpenRequest:
        """Open a request."""
        return self.post(message(id=id, method=method, params=dict(params or {})), **options)

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, id: Any = 1, **options: Any
    ) -> OpenRequest:
        """Open a call of a tool."""
        meta = {"_meta": options.pop("meta")} if "meta" in options else {}
        return self.ask("tools/call", {"name": name, "arguments": dict(arguments or {}), **meta}, id=id, **options)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> CompleteResponse:
        """Send a notification."""
        return await self.post(message(method=method, params=dict(params or {}))).reply()

    async def answer(self, id: Any, **members: Any) -> CompleteResponse:
        """Send the response to a request of the server."""
        return await self.post(message(id=id, **members)).reply()

    def get(self, last: str | None = None, **options: Any) -> OpenRequest:
        """Open the standalone stream, or resume a stream."""
        resumed = {} if last is None else {"last-event-id": last}
        headers = {name: value for name, value in self.headers.items() if name != "content-type"}
        return self.served.open("GET", {**headers, "accept": "text/event-stream", **resumed}, **options)

    async def listening(self, last: str | None = None, **options: Any) -> OpenRequest:
        """Open the standalone stream, and wait for its first event."""
        opened = self.get(last, **options)
        await opened.until(lambda: len(opened.sent) > 1)
        return opened

    async def delete(self) -> CompleteResponse:
        return await self.served.request("DELETE", self.headers)


def tool(name: str, **properties: Any) -> structs.Tool:
    """Return a tool with these parameters."""
    schema = {"type": "object", "properties": properties}
    return structs.Tool(name=name, input_schema=schema)


def _header(name: str, kind: str = "string") -> dict[str, str]:
    return {"type": kind, "x-mcp-header": name}


class ToolHandler:
    """A handler whose tools use all features of the transport. Each tool is the method with its name."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        """Set to let the waiting tools return."""
        self.entered = asyncio.Event()
        """Set once a tool waits."""
        self.freed = threading.Event()
        """Set to let the tool in a thread return."""
        self.ended: list[str] = []
        """How the waiting tools have ended."""
        self.listed = 0
        """How many times the tools were listed."""
        self.ttl_ms = 0
        """How long the list of tools is fresh."""
        self.tools = [
            tool("echo", text={"type": "string"}),
            tool(
                "query",
                region=_header("Region"),
                count=_header("Count", "integer"),
                dry=_header("Dry", "boolean"),
                where={"type": "object", "properties": {"zone": _header("Zone")}},
            ),
        ]

    async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
        self.listed += 1
        return structs.ListToolsResult(
            tools=self.tools, ttl_ms=self.ttl_ms, cache_scope="public", result_type="complete"
        )

    async def list_resources(self, params: Any, ctx: Any) -> structs.ListResourcesResult:
        return structs.ListResourcesResult(resources=[], ttl_ms=0, cache_scope="public", result_type="complete")

    async def read_resource(self, params: Any, ctx: Any) -> structs.ReadResourceResult:
        contents: list[Any] = [structs.TextResourceContents(uri=params.uri, text=f"at {params.uri}")]
        return structs.ReadResourceResult(contents=contents, ttl_ms=0, cache_scope="public", result_type="complete")

    async def list_prompts(self, params: Any, ctx: Any) -> structs.ListPromptsResult:
        return structs.ListPromptsResult(prompts=[], ttl_ms=0, cache_scope="public", result_type="complete")

    async def get_prompt(self, params: Any, ctx: Any) -> structs.GetPromptResult:
        said = structs.PromptMessage(role="user", content=structs.TextContent(text=params.name))
        return structs.GetPromptResult(messages=[said], result_type="complete")

    async def call_tool(self, params: Any, ctx: Any) -> structs.CallToolResult | structs.InputRequiredResult:
        arguments: Any = params.arguments or {}
        function = getattr(self, params.name, None)
        result = f"the tool {params.name}" if function is None else await function(ctx, **arguments)
        if isinstance(result, structs.InputRequiredResult):
            return result
        return structs.CallToolResult(content=[structs.TextContent(text=str(result))], result_type="complete")

    async def echo(self, ctx: Any, text: str = "echo") -> str:
        return text

    async def turn(self, ctx: Any) -> str:
        await asyncio.sleep(0)
        return "turned"

    async def who(self, ctx: Any) -> str:
        return str(ctx.principal and ctx.principal.subject)

    async def wait(self, ctx: Any, text: str = "waited") -> str:
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("answered")
        return text

    async def stubborn(self, ctx: Any) -> str:
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("kept on")
        return "stubborn"

    async def fail(self, ctx: Any, waits: bool = False) -> str:
        if waits:
            await asyncio.sleep(0)
        raise RuntimeError("a secret")

    async def report(self, ctx: Any, steps: int = 2, waits: bool = True) -> str:
        """Report progress, and return."""
        for step in range(steps):
            sent = ctx.progress(step, steps)
            if waits:
                await sent
        return "reported"

    async def report_and_wait(self, ctx: Any, steps: int = 2) -> str:
        for step in range(steps):
            await ctx.progress(step)
        return await self.wait(ctx)

    async def log(self, ctx: Any, level: str = "info") -> str:
        await ctx.log(level, {"level": level})
        return "logged"

    async def hang_up(self, ctx: Any, retry: float = 0.5) -> str:
        await ctx.disconnect(retry)
        return await self.wait(ctx)

    async def change(self, ctx: Any, uri: str = "") -> str:
        ctx.changes.resource_updated(uri) if uri else ctx.changes.tools_changed()
        return "changed"

    async def name(self, ctx: Any) -> str:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = await ctx.elicit("Who are you?", schema)
        content: Any = answer.content or None
        return f"{answer.action} {content}"

    async def sample(self, ctx: Any) -> str:
        asked = structs.SamplingMessage(role="user", content=structs.TextContent(text="?"))
        result = await ctx.sample(structs.CreateMessageRequestParams(messages=[asked], max_tokens=1))
        return str(result.content.text)

    async def roots(self, ctx: Any) -> str:
        return " ".join(root.uri for root in await ctx.list_roots())

    async def scoped(self, ctx: Any, scopes: list[str] | None = None, waits: bool = False) -> str:
        if waits:
            await asyncio.sleep(0)
        raise typedmcp.InsufficientScopeError(*(scopes or ["files:write"]))


def make_served(handler: object = None, **options: Any) -> Served:
    """Return an application that is not open."""
    reports: list[Diagnostic] = []
    handler = ToolHandler() if handler is None else handler
    options.setdefault("on_diagnostic", reports.append)
    options.setdefault("keep_alive", 1000.0)  # no comment ends what waits for something else
    return Served(typedmcp.asgi(handler, **options), handler, reports)


@asynccontextmanager
async def serving(handler: object = None, **options: Any) -> AsyncGenerator[Served]:
    """Open an application. At the end, nothing of it may be left."""
    before = asyncio.all_tasks()
    served = make_served(handler, **options)
    await served.app.open()
    try:
        yield served
        await _check_ended(served, before)
    finally:
        for opened in served.opened:
            await opened.discard()
        await served.app.close()


async def _check_ended(served: Served, before: set[asyncio.Task[Any]]) -> None:
    """Check that all requests end once their clients have disconnected and no tool waits."""
    if isinstance(served.handler, ToolHandler):
        served.handler.go.set()
        served.handler.freed.set()
    for opened in served.opened:
        opened.disconnect()
    try:
        async with asyncio.timeout(_TIMEOUT / 2):
            for opened in served.opened:
                await asyncio.wait([opened._task])  # pyright: ignore[reportPrivateUsage]
    except TimeoutError:
        stuck = [opened.sent for opened in served.opened if not opened.is_done]
        raise AssertionError(f"requests that do not end: {stuck}") from None
    await served.assert_settled()
    await served.app.close()
    await _run_loop_until(lambda: asyncio.all_tasks() <= before)
    assert asyncio.all_tasks() <= before


async def run_loop(count: int = 50) -> None:
    """Run the loop until published messages are delivered and queued ones are sent."""
    for _ in range(count):
        await asyncio.sleep(0)


async def _run_loop_until(holds: Callable[[], bool]) -> None:
    """Run the loop for a few turns, until a condition holds."""
    for _ in range(20):
        if holds():
            return
        await asyncio.sleep(0)


def verify(token: str) -> Principal | None:
    """Verify tokens such as `ann` or `ann:read,write`: a name, and scopes."""
    name, _, scopes = token.partition(":")
    return Principal(name, frozenset(scopes.split(",")) if scopes else frozenset()) if name != "nobody" else None


def base64_header(value: str) -> str:
    """Encode the value of a header in Base64."""
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
