"""The protocol class for uvicorn answers as uvicorn's own one does: the same bytes, timeouts, limits and shutdown."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import logging
import re
import socket
import ssl
import weakref
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import typedmcp
from tests import spoken
from tests.cases import each
from tests.server.http.asgi_driver import ToolHandler, verify
from tests.server.http.http_wire import META, MODERN, call, post, request
from tests.typedmcp_http.two_protocols import Connection, Side, serving_side
from typedmcp import Auth, Limits
from typedmcp.dialect import structs
from typedmcp.server.http.asgi import AsgiApp
from typedmcp_http import HttpProtocol, UvicornServer

T = TypeVar("T")
BOTH: Final = (HttpToolsProtocol, HttpProtocol)
LEGACY, BATCHING = "2025-11-25", "2025-03-26"
assert {LEGACY, BATCHING} <= {*spoken.LEGACY}

Step: TypeAlias = bytes | str | float
"""Bytes to send, something else to do, or seconds that pass."""
ENTERED, GO, AGAIN, RECONNECT, DISCONNECT = "entered", "go", "again", "reconnect", "disconnect"
"""Steps that wait until a handler waits, let it and all others return, let the next ones wait, open a new connection,
and close the client's end."""
ANSWERED = "answered"
"""A step that waits until the last request has been answered, which takes more than turns of the loop."""
SHUTDOWN, CANCEL = "shutdown", "cancel"
"""Steps of uvicorn's shutdown: it asks all connections to end, and cancels the tasks that do not."""
PAUSE, RESUME = "pause", "resume"
"""Steps of a client that does not read, as the transport tells them to the protocol."""


class Talker(ToolHandler):
    """A handler with tools that end in unusual ways. One that waits says so by `entered`."""

    def __init__(self) -> None:
        super().__init__()
        self.never = asyncio.Event()
        self.ttl_ms = 60_000  # tools of a list that is fresh are known to repeat no parameter
        names = ("turn", "report", "report_and_wait", "wait", "large", "interrupt", "fail")
        self.tools = [*self.tools, *(structs.Tool(name=name, input_schema={"type": "object"}) for name in names)]

    async def exit(self, ctx: Any) -> str:
        raise SystemExit(3)

    async def interrupt(self, ctx: Any, waits: bool = False) -> str:
        if waits:
            await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def generator_exit(self, ctx: Any) -> str:
        raise GeneratorExit

    async def cancel(self, ctx: Any, waits: bool = False) -> str:
        if waits:
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    async def cancel_itself(self, ctx: Any) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "not cancelled"

    async def cancel_itself_and_return(self, ctx: Any) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "returned"

    async def cancel_itself_in_vain(self, ctx: Any) -> str:
        """Be cancelled at the first step, while it waits for a future."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        task.uncancel()
        await asyncio.sleep(0)
        return "not cancelled"

    async def cancel_itself_soon(self, ctx: Any) -> str:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        await self.never.wait()
        return "not cancelled"

    async def time_out(self, ctx: Any, at_once: bool = False) -> str:
        try:
            async with asyncio.timeout(0):
                await (asyncio.sleep(0) if at_once else self.never.wait())
        except TimeoutError:
            return "timed out"
        return "ended"

    async def group(self, ctx: Any, fails: bool = False) -> str:
        async def part(at: int) -> int:
            await asyncio.sleep(0)
            return 1 // (at if fails else 1)

        async with asyncio.TaskGroup() as tasks:
            parts = [tasks.create_task(part(at)) for at in range(3)]
        return str([each.result() for each in parts])

    async def large(self, ctx: Any, size: int) -> str:
        return "x" * size


class Spoken(NamedTuple):
    """What a side has answered."""

    connections: list[tuple[bytes, bool]]
    """What each connection got, and whether the server closed it."""
    closed: list[bool]
    """Whether the last connection was closed, after each step."""
    known: int
    """How many requests took the short way."""
    total: int
    """How many requests uvicorn has counted."""


def run(main: Coroutine[Any, Any, T]) -> T:
    async def timed() -> T:
        async with asyncio.timeout(60):
            return await main

    return asyncio.run(timed())


async def play(kind: type[HttpToolsProtocol], steps: Iterable[Step], **options: Any) -> Spoken:
    """Serve a side, take the steps one after the other, and return what it answers.

    A connection that the server closes is followed by a new one.
    """
    options.setdefault("handler", Talker())
    clock = Clock()
    async with serving_side(kind, **options) as side:
        connections: list[Connection] = [await side.connect()]
        closed: list[bool] = []
        for step in steps:
            if step == RECONNECT or (connections[-1].is_closed and isinstance(step, bytes)):
                connections.append(await side.connect())
            now = connections[-1]
            if isinstance(step, bytes):
                now.send(step.replace(b"SESSION", _session_of(connections)))
            elif isinstance(step, str):
                await _take(step, side, now)
            else:
                clock.passed += step
            await now.settle()
            closed.append(now.is_closed)
        spoken = [(each.output, each.is_closed) for each in connections]
        return Spoken(spoken, closed, side.known, side.state.total_requests)


async def _take(step: str, side: Side, connection: Connection) -> None:
    """Take a step that is neither bytes nor time."""
    if step == ENTERED:
        await side.handler.entered.wait()
    elif step == ANSWERED:
        while not connection.protocol.cycle.response_complete:
            await asyncio.sleep(0.001)
    elif step == GO:
        side.handler.entered.clear()
        side.handler.go.set()
    elif step == AGAIN:
        side.handler.go.clear()
        side.handler.entered.clear()
    elif step == DISCONNECT:
        connection.disconnect()
        while not connection.is_closed:
            await asyncio.sleep(0)
    else:
        _act(step, side, connection)


def _act(step: str, side: Side, connection: Connection) -> None:
    """Do what the server or the transport does."""
    if step == SHUTDOWN:
        for each in [*side.state.connections]:
            each.shutdown()
    elif step == CANCEL:
        for task in [*side.state.tasks]:
            task.cancel("cancelled by the server")
    elif step == PAUSE:
        connection.watched.pause_writing()
    elif step == RESUME:
        connection.watched.resume_writing()


class Clock:
    """Time of the running loop that passes when a test says so, in addition to real time."""

    def __init__(self) -> None:
        self.passed = 0.0
        loop = asyncio.get_running_loop()
        real = loop.time
        vars(loop)["time"] = lambda: real() + self.passed


def _session_of(connections: Sequence[Connection]) -> bytes:
    """Return the id of the session that the last connections have begun."""
    found = [each.output.rpartition(b"mcp-session-id: ")[2].partition(b"\r\n")[0] for each in connections]
    return next((each for each in reversed(found) if each), b"SESSION")


def assert_same(steps: Sequence[Step], known: int | None = None, **options: Any) -> Spoken:
    """Take the steps on both sides. Their answers must be the same, and `known` requests must take the short way."""
    make: Callable[[], dict[str, Any]] = options.pop("make", dict)
    theirs = run(play(HttpToolsProtocol, steps, **options, **make()))
    ours = run(play(HttpProtocol, steps, **options, **make()))
    assert [*map(_masked, ours.connections)] == [*map(_masked, theirs.connections)]
    assert ours.closed == theirs.closed
    assert ours.total == theirs.total
    assert theirs.known == 0
    assert known is None or ours.known == known
    return ours


def _masked(connection: tuple[bytes, bool]) -> tuple[bytes, bool]:
    """Leave out what is signed with a random key, and its length: the time in it has more digits or fewer."""
    output, is_closed = connection
    signed = rb'content-length: \d+((?:\r\n[^\r]+)*\r\n\r\n[^\r]*?)"requestState":"[^"]+"'
    return re.sub(signed, rb"\1", output), is_closed


# Requests


def tool(name: str, arguments: dict[str, Any] | None = None, headers: Any = None, **members: Any) -> bytes:
    """Return a call of a tool on the newest revision."""
    params = {"name": name, "arguments": arguments or {}, "_meta": {**META, **members.pop("meta", {})}}
    return call({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **members}, headers)


def modern(method: str, headers: Any = None, **params: Any) -> bytes:
    return call({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}, headers)


def legacy(method: str, params: Any = None, headers: Any = None, *, revision: str = LEGACY, id: Any = 1) -> bytes:
    """Return a message in the session that the connection has begun."""
    named = {"jsonrpc": "2.0", "method": method, **({} if id is None else {"id": id})}
    return legacy_post({**named, "params": params or {}}, headers, revision)


def legacy_post(message: Any, headers: Any = None, revision: str = LEGACY) -> bytes:
    return post(message, {"MCP-Protocol-Version": revision, "Mcp-Session-Id": "SESSION", **(headers or {})})


def legacy_tool(name: str, arguments: Any = None, **options: Any) -> bytes:
    meta = {"_meta": options.pop("meta")} if "meta" in options else {}
    return legacy("tools/call", {"name": name, "arguments": arguments or {}, **meta}, **options)


def initialize(revision: str = LEGACY, **capabilities: Any) -> bytes:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
    return post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})


def session(revision: str = LEGACY, **capabilities: Any) -> list[bytes]:
    return [initialize(revision, **capabilities), legacy("notifications/initialized", id=None, revision=revision)]


def edited(data: bytes, *edits: tuple[bytes, bytes]) -> bytes:
    """Return a request with parts replaced, each of which occurs in it."""
    for old, new in edits:
        assert old in data, old
        data = data.replace(old, new, 1)
    return data


def added(line: bytes, data: bytes | None = None) -> bytes:
    """Return a request with one more line in its head."""
    return edited(ECHO if data is None else data, (b"\r\n\r\n", b"\r\n" + line + b"\r\n\r\n"))


def chunked_body(data: bytes, *sizes: int) -> bytes:
    """Return a request whose body comes in chunks."""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    pieces: list[bytes] = []
    for size in (*sizes, len(body)):
        piece, body = body[:size], body[size:]
        pieces.append(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"")
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b"".join(pieces) + b"0\r\n\r\n"])


ECHO = tool("echo")
HEAD_END = ECHO.index(b"\r\n\r\n") + 4
LEGACY_ECHO = legacy_tool("echo")
QUERY = {"region": "eu", "count": 3}
QUERY_HEADERS = {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "3"}
EVENTS_ONLY = {"Accept": "text/event-stream"}
PROGRESS = {"progressToken": "p"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}

KNOWABLE: dict[str, bytes] = {
    "echo": ECHO,
    "another argument": tool("echo", {"text": "ü\U0001f600"}),
    "the id is text": tool("echo", id="one"),
    "list": modern("tools/list"),
    "resource": modern("resources/read", {"Mcp-Name": "a:b"}, uri="a:b"),
    "prompt": modern("prompts/get", {"Mcp-Name": "p"}, name="p"),
    "async": tool("turn"),
    "unknown tool": tool("no"),
    "fails": tool("fail"),
    "fails later": tool("fail", {"waits": True}),
    "scopes": tool("scoped", {"scopes": ["a", "b"]}),
    "progress": tool("report", meta=PROGRESS),
    "progress at once": tool("report", {"waits": False}, meta=PROGRESS),
    "large response": tool("large", {"size": 70_000}),
    "largest response on the short way": tool("large", {"size": 65_000}),
    "large body": tool("echo", {"text": "x" * 60_000}),
    "right headers of parameters": tool("query", QUERY, QUERY_HEADERS),
    "wrong header of a parameter": tool("query", QUERY, {**QUERY_HEADERS, "Mcp-Param-Region": "us"}),
    "missing header of a parameter": tool("query", QUERY, {"Mcp-Param-Region": "eu"}),
    "another method in the header": modern("tools/list", {"Mcp-Method": "prompts/list"}),
    "no method in the header": modern("tools/list", {"Mcp-Method": None}),
    "another name in the header": tool("echo", headers={"Mcp-Name": "turn"}),
    "no name in the header": tool("echo", headers={"Mcp-Name": None}),
    "encoded name in the header": tool("echo", headers={"Mcp-Name": "=?base64?ZWNobw==?="}),
    "another revision in the body": edited(
        ECHO, (b'protocolVersion": "' + MODERN.encode(), b'protocolVersion": "2222-22-22')
    ),
    "unknown method": modern("no/such"),
    "ping": modern("ping"),
    "notification": call({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}),
    "malformed JSON": call(b'{"jsonrpc": "2.0"', {"Mcp-Method": "tools/list"}),
    "not UTF-8": call(b'{"jsonrpc": "2.0", "id": "\xff"}', {"Mcp-Method": "tools/list"}),
    "no object": call(b"7", {"Mcp-Method": "tools/list"}),
    "empty body": call(b"", {"Mcp-Method": "tools/list"}),
    "no method": call({"jsonrpc": "2.0", "id": 1}),
    "a response": call({"jsonrpc": "2.0", "id": 1, "result": {}}),
    "batch": call([{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}], {"Mcp-Method": "tools/list"}),
    "exit": tool("exit"),
    "interrupt": tool("interrupt"),
    "interrupt later": tool("interrupt", {"waits": True}),
    "generator exit": tool("generator_exit"),
    "cancelled": tool("cancel"),
    "cancelled later": tool("cancel", {"waits": True}),
    "cancels itself": tool("cancel_itself"),
    "cancels itself and returns": tool("cancel_itself_and_return"),
    "cancels itself in vain": tool("cancel_itself_in_vain"),
    "cancels itself soon": tool("cancel_itself_soon"),
    "times out": tool("time_out"),
    "times out at once": tool("time_out", {"at_once": True}),
    "tasks": tool("group"),
    "tasks that fail": tool("group", {"fails": True}),
    "empty header": added(b"X-One:"),
    "keep-alive": added(b"Connection: Keep-Alive"),
    "further headers": added(b"X-One: 1\r\nX-Two: 2"),
    "names in lower case": edited(ECHO, (b"Host", b"host"), (b"Mcp-Name", b"mcp-name")),
    "spaces around a value": edited(ECHO, (b"Mcp-Name: echo", b"Mcp-Name: \t echo")),
    "no space before a value": edited(ECHO, (b"Mcp-Name: echo", b"Mcp-Name:echo")),
    "slash at the end of the path": edited(ECHO, (b"/mcp ", b"/mcp/ ")),
    "escape in the path": edited(ECHO, (b"/mcp ", b"/%6dcp ")),
    "absolute target": edited(ECHO, (b"/mcp ", b"http://localhost/mcp ")),
    "absolute target of another host": edited(ECHO, (b"/mcp ", b"http://evil.test/mcp ")),
    "empty query": edited(ECHO, (b"/mcp ", b"/mcp? ")),
    "fragment": edited(ECHO, (b"/mcp ", b"/mcp#part ")),
    "accepts JSON alone": tool("report", meta=PROGRESS, headers={"Accept": "application/json"}),
    "accepts all": tool("report", meta=PROGRESS, headers={"Accept": None}),
    "elicitation": tool("name", meta={"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}),
    "no capability": tool("name"),
    "page of an allowed origin": tool("echo", headers={"Origin": "https://page.test"}),
    "error for an allowed origin": tool("no", headers={"Origin": "https://page.test"}),
    "stream for an allowed origin": tool("report", meta=PROGRESS, headers={"Origin": "https://page.test"}),
    "page of the server": tool("echo", headers={"Origin": "http://localhost"}),
}
"""Requests whose heads can become known."""

OTHER: dict[str, bytes] = {
    "unknown revision": tool("echo", headers={"MCP-Protocol-Version": "2222-22-22"}),
    "no revision": tool("echo", headers={"MCP-Protocol-Version": None}),
    "wrong host": tool("echo", headers={"Host": "evil.test"}),
    "no host": tool("echo", headers={"Host": None}),
    "wrong origin": tool("echo", headers={"Origin": "https://evil.test"}),
    "accepts HTML": tool("echo", headers={"Accept": "text/html"}),
    "wrong content type": tool("echo", headers={"Content-Type": "text/plain"}),
    "GET": request("GET", "/mcp", EVENTS_ONLY),
    "DELETE": request("DELETE", "/mcp"),
    "PUT": request("PUT", "/mcp", {}, b"{}"),
    "HEAD": request("HEAD", "/mcp"),
    "OPTIONS": request("OPTIONS", "/mcp", {"Origin": "https://page.test"}),
    "preflight": request(
        "OPTIONS",
        "/mcp",
        {
            "Origin": "https://page.test",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "mcp-name",
        },
    ),
    "another path": edited(ECHO, (b"/mcp ", b"/other ")),
    "query": edited(ECHO, (b"/mcp ", b"/mcp?a=b ")),
    "access token in the query": edited(ECHO, (b"/mcp ", b"/mcp?access_token=ann ")),
    "HTTP/1.0": edited(ECHO, (b"HTTP/1.1", b"HTTP/1.0")),
    "HTTP/1.0 with keep-alive": added(b"Connection: keep-alive", edited(ECHO, (b"HTTP/1.1", b"HTTP/1.0"))),
    "HTTP/1.7": edited(ECHO, (b"HTTP/1.1", b"HTTP/1.7")),
    "HTTP/2.0": edited(ECHO, (b"HTTP/1.1", b"HTTP/2.0")),
    "close": added(b"Connection: close"),
    "close among others": added(b"Connection: keep-alive, close"),
    "close of a proxy": added(b"Proxy-Connection: close"),
    "two headers Connection": added(b"Connection: keep-alive\r\nConnection: keep-alive"),
    "upgrade": added(b"Connection: upgrade\r\nUpgrade: websocket"),
    "expect": added(b"Expect: 100-continue"),
    "expect something else": added(b"Expect: tea"),
    "chunks": chunked_body(ECHO),
    "several chunks": chunked_body(ECHO, 1, 20),
    "chunks and length": added(b"Transfer-Encoding: chunked"),
    "repeated header": added(b"X-One: 1\r\nX-One: 2"),
    "repeated host": added(b"Host: localhost"),
    "repeated name": added(b"Mcp-Name: echo"),
    "repeated accept": added(b"Accept: application/json"),
    "two lengths": added(b"Content-Length: 9"),
    "two equal lengths": added(b"Content-Length: %d" % (len(ECHO) - HEAD_END)),
    "no length": edited(ECHO, (b"Content-Length: %d\r\n" % (len(ECHO) - HEAD_END), b"")),
    "signed length": edited(ECHO, (b"Content-Length: ", b"Content-Length: +")),
    "length of zero": edited(ECHO, (b"Content-Length: ", b"Content-Length: 0\r\nX-Was: ")),
    "shorter length": edited(ECHO, (b"Content-Length: %d" % (len(ECHO) - HEAD_END), b"Content-Length: 20")),
    "folded header": edited(ECHO, (b"Mcp-Name: echo", b"Mcp-Name:\r\n echo")),
    "folded further header": added(b"X-One: 1\r\n 2"),
    "space before the colon": edited(ECHO, (b"Mcp-Name: ", b"Mcp-Name : ")),
    "line without a colon": added(b"nonsense"),
    "NUL in a header": added(b"X-One: \x00"),
    "LF alone": edited(ECHO, (b"Mcp-Name: echo\r\n", b"Mcp-Name: echo\n")),
    "LF alone everywhere": ECHO[:HEAD_END].replace(b"\r\n", b"\n") + ECHO[HEAD_END:],
    "CR in a header": edited(ECHO, (b"Mcp-Name: echo", b"Mcp-Name: ec\rho")),
    "no request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "method in lower case": edited(ECHO, (b"POST", b"post")),
    "forwarded": added(b"X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https"),
    "trace of its own": added(b"Traceparent: 00-1-2-01"),
    "forwarded by the standard": added(b"Forwarded: for=10.0.0.1"),
    "too many headers": added(b"\r\n".join(b"X-%d: 1" % number for number in range(140))),
    "too large headers": added(b"X-Large: " + b"x" * 65_000),
    "body beyond the limit": tool("echo", {"text": "x" * 110_000}),
    "body off the short way": tool("echo", {"text": "x" * 70_000}),
    "more headers than are kept": added(b"\r\n".join(b"X-%d: 1" % number for number in range(40))),
    "head that is too long to be kept": added(b"X-Long: " + b"x" * 4_000),
    "spaces after a value": edited(ECHO, (b"Mcp-Name: echo", b"Mcp-Name: echo  ")),
}
"""Requests that have to go uvicorn's way, at least the first three times."""

CLOSE = frozenset(("HTTP/2.0", "close among others", "close of a proxy"))
"""Those of `OTHER` after which httptools takes nothing more."""
SHORT_OTHER = frozenset(("no length", "length of zero", "spaces after a value"))
"""Those of `OTHER` that may take the short way later."""


def options() -> dict[str, Any]:
    return {"origins": ["https://page.test"], "limits": Limits(http_body_bytes=100_000)}


@each("name", KNOWABLE)
def test_a_known_head_is_answered_as_an_unknown_one(name: str) -> None:
    got = assert_same([KNOWABLE[name]] * 6, make=options)
    assert got.known == 4, got
    assert len(got.connections) == (6 if got.closed[0] else 1), got


@each("name", OTHER)
def test_other_requests_go_the_usual_way(name: str) -> None:
    got = assert_same(with_answers(name, [OTHER[name]] * 4), make=options)
    assert name in SHORT_OTHER or got.known == 0, got


@each("name", OTHER)
def test_a_connection_can_change_between_the_two_ways(name: str) -> None:
    if name in CLOSE and not assert_same([OTHER[name]], make=options).closed[0]:
        pytest.skip("this version of uvicorn keeps a connection whose parser takes nothing more")
    steps: list[Step] = [ECHO, ECHO, ECHO, OTHER[name], ECHO, OTHER[name] + ECHO, ECHO, ECHO]
    assert_same(with_answers(name, steps), make=options)


def with_answers(name: str, steps: Sequence[Step]) -> list[Step]:
    """Wait for the answers to large bodies, which take turns that have a time."""
    after = [ANSWERED] if name == "body off the short way" else []
    return [each for step in steps for each in (step, *after)]


# Bodies


LONG = tool("echo", {"text": "x" * 1_000})
LONG_END = LONG.index(b"\r\n\r\n") + 4
BODIES: dict[str, bytes] = {
    "too deep": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
    "malformed": b"{" * 20,
    "spaces": b"",
    "NUL": b"\x00",
    "another tool": tool("turn").partition(b"\r\n\r\n")[2],
    "another method": modern("tools/list").partition(b"\r\n\r\n")[2],
    "a notification": json.dumps(INITIALIZED).encode(),
    "a batch": json.dumps([INITIALIZED, {"jsonrpc": "2.0", "id": 1, "method": "ping"}]).encode(),
    "a legacy call": legacy_tool("echo").partition(b"\r\n\r\n")[2],
    "a handshake": initialize().partition(b"\r\n\r\n")[2],
    "another argument": tool("echo", {"text": "other"}).partition(b"\r\n\r\n")[2],
    "a head": ECHO[:HEAD_END],
}


@each("name", BODIES)
def test_a_known_head_may_have_any_body(name: str) -> None:
    body = BODIES[name].ljust(len(LONG) - LONG_END)
    assert_same([LONG, LONG, LONG, LONG[:LONG_END] + body, LONG], known=3)


# Chunks


def cuts(data: bytes) -> dict[str, tuple[list[bytes], int]]:
    """Return the pieces in which a known request is sent, by name, and how many requests then take the short way: this
    one, the same one after it, and the same one on a new connection.
    """
    head = data.index(b"\r\n\r\n") + 4
    line = data.index(b"\n") + 1
    return {
        "whole": ([data], 3),
        "head and body": ([data[:head], data[head:]], 3),
        "head, and body in two pieces": ([data[:head], data[head:-1], data[-1:]], 2),
        "head, and another request": ([data[:head], data], 2),
        "head, and a shorter body": ([data[:head], data[head:-1]], 1),
        "first byte": ([data[:1], data[1:]], 2),
        "in the method": ([data[:3], data[3:]], 2),
        "in the target": ([data[:7], data[7:]], 2),
        "after the first line": ([data[:line], data[line:]], 2),
        "in the end of the head": ([data[: head - 2], data[head - 2 :]], 2),
        "last byte": ([data[:-1], data[-1:]], 2),
        "two at once": ([data + data], 2),
        "three at once": ([data * 3], 2),
        "with the beginning of the next": ([data + data[:20], data[20:]], 2),
        "with the first byte of the next": ([data + data[:1], data[1:]], 2),
        "with the head of the next": ([data + data[:head], data[head:]], 2),
        "the last byte with the next": ([data[:-1], data[-1:] + data], 2),
        "the body with the next": ([data[:head], data[head:] + data], 2),
        "the rest with the next": ([data[:20], data[20:] + data], 2),
        "empty line before": ([b"\r\n" + data], 2),
        "empty line alone": ([b"\r\n", data], 3),
        "LF before": ([b"\n", data], 3),
        "empty line after": ([data + b"\r\n"], 2),
        "end of a head before": ([b"\r\n\r\n" + data], 2),
        "space before": ([b" " + data], 2),
        "garbage after": ([data + b"garbage"], 2),
        "garbage alone": ([data, b"garbage"], 3),
        "a shorter body": ([data[:-1]], 1),
        "a longer body": ([data + b" "], 2),
    }


CUT = ("echo", "async", "progress", "interrupt", "notification", "unknown tool")


@each("name", CUT)
@each("cut", cuts(ECHO))
def test_a_known_request_may_arrive_in_any_pieces(name: str, cut: str) -> None:
    data = KNOWABLE[name]
    closes = b"500 Internal" in assert_same([data]).connections[0][0]
    pieces, known = cuts(data)[cut]
    steps: list[Step] = [data, data, *pieces, data, RECONNECT, data]
    got = assert_same(steps)
    assert closes or got.known == known, got


@each("name", ["echo", "async", "progress"])
def test_a_known_request_may_arrive_byte_by_byte(name: str) -> None:
    data = KNOWABLE[name]
    assert_same([data, data, *(data[at : at + 1] for at in range(len(data))), data], known=1)


@each("at", [*range(1, 24), *range(HEAD_END - 5, HEAD_END), HEAD_END + 1, len(ECHO) - 1])
def test_the_rest_of_a_request_is_not_learnt(at: int) -> None:
    """A request that arrives in pieces has no head that another one could have."""
    rest = ECHO[at:]
    begun: list[Step] = [ECHO, ECHO[:at], rest, ECHO[:at], rest]
    assert_same([*begun, RECONNECT, rest, RECONNECT, rest], known=0)
    assert_same([*begun[:2], rest + ECHO, RECONNECT, rest + ECHO, RECONNECT, rest, ECHO])


def test_a_head_is_learnt_that_comes_before_its_body() -> None:
    pieces: list[Step] = [ECHO[:HEAD_END], ECHO[HEAD_END:]]
    assert_same(pieces * 6, known=4)
    assert_same([*pieces * 2, *[ECHO] * 2, RECONNECT, *pieces], known=3)


# Order


SHARED: Final[list[Step]] = [ECHO, ECHO, RECONNECT]
ORDERS: dict[str, Sequence[Step]] = {
    # After 20 ms, the server watches the client, and reads the second one: its head may be learnt after `GO` only.
    "requests while a handler waits": [tool("wait"), ENTERED, ECHO, ECHO, GO, ECHO, ECHO, ECHO],
    "known requests while a handler waits": [ECHO, ECHO, ECHO, tool("wait"), ENTERED, ECHO, ECHO, GO, ECHO],
    "a known request that waits": [*[tool("turn")] * 2, tool("wait"), GO, *[tool("wait")] * 3],
    "part of a request while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, ECHO[:30], GO, ECHO[30:], ECHO],
    "a wrong request while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, b"garbage\r\n\r\n", GO, ECHO],
    "disconnect while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, DISCONNECT, GO, RECONNECT, ECHO],
    "another connection while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, RECONNECT, ECHO, ECHO, GO],
    "connections that share a head": [*SHARED, *SHARED, *SHARED, ECHO, tool("turn"), RECONNECT, ECHO],
    "heads that alternate": [ECHO, tool("turn"), modern("tools/list"), LONG] * 4,
    "a progress stream between": [ECHO, ECHO, ECHO, *[KNOWABLE["progress"], ECHO] * 4],
    "an error between": [ECHO, ECHO, ECHO, *[KNOWABLE["malformed JSON"], ECHO] * 4],
    "an escaping exception between": [ECHO, ECHO, ECHO, *[tool("interrupt"), ECHO] * 4],
    "disconnect after a known head": [ECHO, ECHO, ECHO[:HEAD_END], DISCONNECT, RECONNECT, ECHO, ECHO],
    "heads alone while a handler waits": [
        *[ECHO] * 3,
        tool("wait"),
        ENTERED,
        ECHO[:HEAD_END],
        GO,
        ECHO[HEAD_END:],
        ECHO[:HEAD_END],
        ECHO[HEAD_END:],
    ],
    "disconnect in the middle of a known request": [ECHO, ECHO, ECHO[:-3], DISCONNECT, RECONNECT, ECHO, ECHO],
}


@each("name", ORDERS)
def test_requests_are_answered_in_order(name: str) -> None:
    assert assert_same(ORDERS[name]).known


# Sessions


def waiting_stream(call: bytes) -> list[Step]:
    """Return steps after which a stream of a known head has begun, and its handler waits."""
    return [call, GO, call, call, AGAIN, call, ENTERED]


REPORTING = waiting_stream(tool("report_and_wait", meta=PROGRESS))

SESSIONS: dict[str, Sequence[Step]] = {
    "calls": [*session(), *[LEGACY_ECHO] * 4],
    "all kinds of calls": [
        *session(),
        *[legacy("ping"), LEGACY_ECHO, legacy_tool("turn"), legacy("tools/list"), legacy_tool("no")] * 4,
    ],
    "a stream": [*session(), *[legacy_tool("report", meta=PROGRESS)] * 4],
    "a stream that waits": [
        *session(),
        *waiting_stream(legacy_tool("report_and_wait", meta=PROGRESS)),
        GO,
        LEGACY_ECHO,
    ],
    "logging": [
        *session(),
        *[legacy_tool("log")] * 3,
        legacy("logging/setLevel", {"level": "debug"}),
        *[legacy_tool("log")] * 3,
    ],
    "no session": [*session(), *[legacy_tool("echo", headers={"Mcp-Session-Id": None})] * 4],
    "an unknown session": [*session(), *[legacy_tool("echo", headers={"Mcp-Session-Id": "unknown"})] * 4],
    "the end of the session": [
        *session(),
        *[LEGACY_ECHO] * 3,
        request("DELETE", "/mcp", {"Mcp-Session-Id": "SESSION"}),
        *[LEGACY_ECHO] * 3,
    ],
    "two sessions": [*session(), *[LEGACY_ECHO] * 3, *session(), *[LEGACY_ECHO] * 3],
    "a batch": [
        *session(BATCHING),
        *[legacy_post([{"jsonrpc": "2.0", "id": at, "method": "ping"} for at in range(3)], None, BATCHING)] * 4,
    ],
    "a modern call": [*session(), *[LEGACY_ECHO, ECHO] * 4],
    "a modern body": [*session(), *[legacy_post(json.loads(ECHO[HEAD_END:]))] * 4],
    "notifications": [*session(), *[legacy("notifications/cancelled", {"requestId": 7}, id=None)] * 4],
    "handshakes": [initialize()] * 4,
    "another handshake in a session": [*session(), *[added(b"Mcp-Session-Id: SESSION", initialize())] * 4],
    "handler that fails": [*session(), *[legacy_tool("fail")] * 4],
    "exit": [*session(), *[legacy_tool("exit")] * 4],
}


@each("name", SESSIONS)
@each("sessions", [True, False], ids=["with sessions", "without sessions"])
def test_legacy_revisions_are_served_the_same(name: str, sessions: bool) -> None:
    got = assert_same(SESSIONS[name], sessions=sessions)
    assert got.known or name in ("handshakes", "another handshake in a session"), got


@each("revision", [LEGACY, "2025-06-18"])
def test_a_handler_of_a_session_can_ask(revision: str) -> None:
    """The answer comes as another request, while the first one waits."""

    async def main(kind: type[HttpToolsProtocol]) -> tuple[list[bytes], int]:
        async with serving_side(kind, Talker()) as side:
            one, other = await side.connect(), await side.connect()
            for data in session(revision, elicitation={}):
                one.send(data)
                await one.settle()
            identified = _session_of([one])
            accepted: dict[str, Any] = {"action": "accept", "content": {}}
            for _ in range(4):
                before = len(one.output)
                one.send(legacy_tool("name", revision=revision).replace(b"SESSION", identified))
                await one.settle()
                found = re.search(rb'elicitation/create.*"id":("[^"]+")', one.output[before:])
                assert found, one.output[before:]
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": json.loads(found[1]), "result": accepted}
                other.send(legacy_post(answer, None, revision).replace(b"SESSION", identified))
                await other.settle()
                await one.settle()
            return [one.output, other.output], side.known

    (theirs, none), (ours, known) = (run(main(kind)) for kind in BOTH)
    assert ours == theirs
    assert ours[0].count(b"accept") == 4
    assert (none, known > 3) == (0, True)


# Credentials


def bearer(token: str, data: bytes = ECHO) -> bytes:
    return added(b"Authorization: Bearer " + token.encode(), data)


CREDENTIALS: dict[str, tuple[Sequence[Step], int]] = {
    "right token": ([bearer("ann:all")] * 4, 2),
    "right and wrong token": ([*[bearer("ann:all")] * 4, *[bearer("nobody")] * 3, bearer("ann:all")], 5),
    "no token": ([*[bearer("ann:all")] * 3, ECHO, ECHO, ECHO], 1),
    "missing scope": ([bearer("ann:all"), *[bearer("ann:some")] * 4, bearer("ann:all")], 3),
    "another scheme": ([*[added(b"Authorization: Basic YTpi")] * 4], 0),
    "two tokens": ([*[added(b"Authorization: Bearer ann:all", bearer("ann:all"))] * 3], 0),
    "token in the query": ([bearer("ann:all"), *[edited(ECHO, (b"/mcp ", b"/mcp?access_token=ann:all "))] * 3], 0),
    "scopes that a tool needs": ([*[bearer("ann:all", tool("scoped", {"scopes": ["b"]}))] * 4], 2),
    "scopes that a tool needs later": ([*[bearer("ann:all", tool("scoped", {"waits": True}))] * 4], 2),
    "who": ([*[bearer("ann:all", tool("who")), bearer("bob:all", tool("who"))] * 3], 3),
    "metadata": ([request("GET", "/.well-known/oauth-protected-resource/mcp")] * 2, 0),
}


@each("name", CREDENTIALS)
def test_credentials_are_checked_for_each_request(name: str) -> None:
    steps, known = CREDENTIALS[name]

    def make() -> dict[str, Any]:
        resource = {"resource": "https://mcp.test/mcp", "issuers": ["https://issuer.test"]}
        return {"auth": Auth(verify, scopes=["all"], **resource)}  # type: ignore[arg-type]

    assert_same(steps, known, make=make)


def test_a_token_that_expires_is_rejected_from_then_on() -> None:
    async def main(kind: type[HttpToolsProtocol]) -> tuple[bytes, int]:
        valid = {"ann"}
        async with serving_side(kind, auth=Auth(lambda token: verify(token) if token in valid else None)) as side:
            connection = await side.connect()
            for at in range(6):
                if at == 4:
                    valid.clear()
                connection.send(bearer("ann"))
                await connection.settle()
            return connection.output, side.known

    (theirs, none), (ours, known) = (run(main(kind)) for kind in BOTH)
    assert ours == theirs
    assert [ours.count(b"HTTP/1.1 %d" % status) for status in (200, 401)] == [4, 2]
    assert (none, known) == (0, 4)


# Configurations


class Observed(AsgiApp):
    """An application that does more when it is called."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_observed(message: Any) -> None:
            if "headers" in message:
                message["headers"].append((b"x-observed", b"1"))
            await send(message)

        await super().__call__(scope, receive, send_observed)


def observed(app: AsgiApp) -> Any:
    return Observed(app.config)


def in_starlette(app: AsgiApp) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/", app)])


def in_function(app: AsgiApp) -> Any:
    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return wrapped


class Sink:
    """Takes the frames of all connections."""

    def open(self, info: Any) -> Any:
        return self.take

    def take(self, *_: Any) -> None: ...


CONFIGURATIONS: dict[str, tuple[dict[str, Any], int | None]] = {
    "plain": ({}, 5),
    "root path": ({"config": {"root_path": "/api"}}, 5),
    "further header": ({"config": {"headers": [("X-One", "1")]}}, 5),
    "no own headers": ({"config": {"server_header": False}}, 5),
    "no proxy headers": ({"config": {"proxy_headers": False}}, 5),
    "trusts every proxy": ({"config": {"forwarded_allow_ips": "*"}}, 5),
    "closes each connection": ({"config": {"headers": [("Connection", "close")]}}, 0),
    "closes each connection in other letters": ({"config": {"headers": [("CONNECTION", "Close, x")]}}, 0),
    "wrong name of a header": ({"config": {"headers": [("X(One", "1")]}}, None),
    "wrong value of a header": ({"config": {"headers": [("X-One", "1\n2")]}}, 0),
    "chunked": ({"config": {"headers": [("Transfer-Encoding", "chunked")]}}, 0),
    "limit of connections": ({"config": {"limit_concurrency": 10}}, 0),
    "limit of connections that is reached": ({"config": {"limit_concurrency": 1}}, 0),
    "contexts": ({"config": {"reset_contextvars": True}}, 0),
    "tracing": ({"config": {"log_level": "trace"}}, 0),
    "in Starlette": ({"wrap": in_starlette}, 0),
    "in a function": ({"wrap": in_function}, 0),
    "a class that derives from the application": ({"wrap": observed}, 0),
    "record": ({"record": Sink()}, 0),
}


@each("name", CONFIGURATIONS)
def test_what_uvicorn_is_configured_to_do_is_done(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, known = CONFIGURATIONS[name]
    if not {*given.get("config", {})} <= {*inspect.signature(uvicorn.Config).parameters}:
        pytest.skip("this version of uvicorn has no such option")
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "level", logging.NOTSET)
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "level", logging.NOTSET)
    monkeypatch.setattr(logging.getLogger("uvicorn.asgi"), "level", logging.NOTSET)
    steps: list[Step] = [ECHO, ECHO, ECHO, tool("turn"), tool("turn"), tool("turn"), ECHO, ECHO]
    assert_same(steps, known, **given)


# Time, shutdown, and clients that do not read


WAITING: list[Step] = [tool("wait"), ENTERED]
BRIEF: Final[list[Step]] = [ECHO, 4.9, ECHO, 4.9, ECHO, 4.9]
LIVES: dict[str, tuple[list[Step], list[bool]]] = {
    "no request": ([20.0], [False]),
    "first request": ([ECHO, 4.9, 0.2], [False, False, True]),
    "known requests": ([*[ECHO] * 3, 4.9, ECHO, 4.9, ECHO, 2.0, 2.9, 0.2], [*[False] * 9, True]),
    "known requests at once": ([*[ECHO] * 3, 4.9, ECHO, ECHO, 4.9, 0.2], [*[False] * 7, True]),
    "several times": ([*BRIEF, *BRIEF, *BRIEF, 0.2], [*[False] * 18, True]),
    "a known request that waits": ([*[tool("turn")] * 3, 4.9, tool("turn"), 4.9, 0.2], [*[False] * 6, True]),
    "after both ways": ([*[ECHO] * 3, 4.0, modern("tools/list"), 4.0, ECHO, 4.9, 0.2], [*[False] * 8, True]),
    "a stream": ([*[KNOWABLE["progress"]] * 3, 4.9, 0.2], [*[False] * 4, True]),
    "part of a request": ([*[ECHO] * 3, ECHO[:50], 20.0, ECHO[50:], 4.9, 0.2], [*[False] * 7, True]),
    "a known head alone": (
        [*[ECHO] * 3, ECHO[:HEAD_END], 20.0, ECHO[HEAD_END:], 4.9, 0.2],
        [*[False] * 7, True],
    ),
    "a handler that waits": ([*[ECHO] * 3, *WAITING, 20.0, GO, 4.9, 0.2], [*[False] * 8, True]),
    "a known request whose handler waits": (
        [tool("wait"), GO, *[tool("wait")] * 2, AGAIN, tool("wait"), ENTERED, 20.0, GO, 4.9, 0.2],
        [*[False] * 10, True],
    ),
    "a pipeline": ([*[ECHO] * 3, *WAITING, 20.0, ECHO, 20.0, GO, 4.9, 0.2], [*[False] * 10, True]),
    "disconnect while a handler waits": ([*[ECHO] * 3, *WAITING, 20.0, DISCONNECT, GO], [*[False] * 6, True, True]),
}


@each("name", LIVES)
def test_idle_connections_are_closed_and_busy_ones_are_not(name: str) -> None:
    steps, closed = LIVES[name]
    got = assert_same(steps, config={"timeout_keep_alive": 5})
    assert got.closed == closed


ENDS: dict[str, tuple[list[Step], bool]] = {
    "no request": ([SHUTDOWN], True),
    "idle": ([*[ECHO] * 3, SHUTDOWN], True),
    "idle after the usual way": ([ECHO, SHUTDOWN], True),
    "part of a request": ([*[ECHO] * 3, ECHO[:50], SHUTDOWN], True),
    "a known head alone": ([*[ECHO] * 3, ECHO[:HEAD_END], SHUTDOWN, ECHO[HEAD_END:]], True),
    "a known head alone, and no more": ([*[ECHO] * 3, ECHO[:HEAD_END], SHUTDOWN, DISCONNECT], True),
    "a handler that waits": ([*[ECHO] * 3, *WAITING, SHUTDOWN, GO], True),
    "a known request whose handler waits": (
        [tool("wait"), GO, *[tool("wait")] * 2, AGAIN, tool("wait"), ENTERED, SHUTDOWN, GO],
        True,
    ),
    "a pipeline": ([*[ECHO] * 3, *WAITING, ECHO, SHUTDOWN, GO], True),
    "cancelled": ([*[ECHO] * 3, *WAITING, SHUTDOWN, CANCEL], True),
    "cancelled without a shutdown": ([*[ECHO] * 3, *WAITING, CANCEL, ECHO, ECHO], False),
    "a known request that is cancelled": (
        [tool("wait"), GO, *[tool("wait")] * 2, AGAIN, tool("wait"), ENTERED, SHUTDOWN, CANCEL],
        True,
    ),
    "a stubborn handler": ([*[ECHO] * 3, tool("stubborn"), ENTERED, SHUTDOWN, CANCEL, GO], True),
    "a stream": ([*[ECHO] * 3, tool("report_and_wait", meta=PROGRESS), ENTERED, SHUTDOWN, CANCEL], True),
    "a known stream": ([*REPORTING, SHUTDOWN, CANCEL], True),
    "a known stream that ends": ([*REPORTING, SHUTDOWN, GO], True),
    "two connections": ([*[ECHO] * 3, RECONNECT, *WAITING, SHUTDOWN, GO], True),
}


@each("name", ENDS)
def test_a_shutdown_ends_connections_as_uvicorn_does(name: str) -> None:
    steps, closed = ENDS[name]
    assert assert_same(steps).closed[-1] == closed


SLOW: dict[str, list[Step]] = {
    "known": [*[ECHO] * 3, PAUSE, ECHO, RESUME, ECHO],
    "two known": [*[ECHO] * 3, PAUSE, ECHO, ECHO, ECHO, RESUME, ECHO],
    "known that waits": [*[tool("turn")] * 3, PAUSE, tool("turn"), tool("turn"), RESUME, tool("turn")],
    "stream": [*[KNOWABLE["progress"]] * 3, PAUSE, KNOWABLE["progress"], RESUME, ECHO],
    "between events": [*REPORTING, PAUSE, GO, RESUME, ECHO],
    "disconnect between events": [*REPORTING, PAUSE, GO, DISCONNECT],
    "shutdown between events": [*REPORTING, PAUSE, GO, SHUTDOWN, RESUME],
    "error": [*[KNOWABLE["unknown tool"]] * 3, PAUSE, KNOWABLE["unknown tool"], RESUME, ECHO],
    "exception": [*[ECHO] * 3, PAUSE, tool("interrupt"), RESUME, ECHO],
    "disconnect": [*[ECHO] * 3, PAUSE, ECHO, DISCONNECT, ECHO],
    "shutdown": [*[ECHO] * 3, PAUSE, ECHO, SHUTDOWN, RESUME],
    "cancelled": [*[ECHO] * 3, PAUSE, ECHO, SHUTDOWN, CANCEL, RESUME],
    "exception that is cancelled": [*[tool("interrupt")] * 3, PAUSE, tool("interrupt"), CANCEL, RESUME],
    "time": [*[ECHO] * 3, PAUSE, ECHO, 20.0, RESUME, 4.0, 2.0],
}


@each("name", SLOW)
def test_a_response_waits_until_the_client_reads(name: str) -> None:
    assert assert_same(SLOW[name]).known


def test_the_head_of_a_stream_and_its_first_events_are_one_write() -> None:
    report = tool("report_and_wait", meta=PROGRESS)

    async def main() -> list[bytes]:
        async with serving_side(HttpProtocol, Talker()) as side:
            connection = side.open_pipe()
            side.handler.go.set()
            for _ in range(3):
                connection.send(report)
                await connection.settle()
            side.handler.go.clear()
            del connection.tap.writes[:]
            connection.send(report)
            await connection.settle()
            side.handler.go.set()
            await connection.settle()
            assert side.known
            return connection.tap.writes

    first, last = run(main())
    assert (first.count(b"HTTP/1.1 200 OK"), first.count(b"notifications/progress")) == (1, 2)
    assert last.count(b'"waited"') == 1
    assert last.endswith(b"0\r\n\r\n")


def test_a_client_that_reads_slowly_gets_all() -> None:
    large = tool("large", {"size": 60_000})

    async def main(kind: type[HttpToolsProtocol]) -> tuple[bytes, int]:
        async with serving_side(kind, Talker()) as side:
            connection = await side.connect()
            connection.transport.pause_reading()
            count = 0
            while not connection.protocol.flow.write_paused:
                connection.send(large)
                count += 1
                while connection.watched.received < connection.sent:
                    await asyncio.sleep(0)
                for _ in range(10):
                    await asyncio.sleep(0)
            for _ in range(3):
                connection.send(large)
            before = len(connection.output)
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(connection.output) == before
            connection.transport.resume_reading()
            await connection.settle()
            return await connection.read(), count + 3

    (theirs, asked), (ours, wanted) = (run(main(kind)) for kind in BOTH)
    assert (theirs.count(b"HTTP/1.1 200 OK"), ours.count(b"HTTP/1.1 200 OK")) == (asked, wanted)
    shorter = min(len(theirs), len(ours))  # uvicorn writes a head and its body one after the other
    assert theirs[:shorter] == ours[:shorter]


# Tasks, contexts, and what is left


REQUEST: ContextVar[str] = ContextVar("REQUEST", default="")


class Looking(ToolHandler):
    """A handler that looks at its task and its context."""

    async def look(self, ctx: Any, text: str, waits: bool = False) -> str:
        before, task = REQUEST.get(), asyncio.current_task()
        REQUEST.set(text)
        if waits:
            await asyncio.sleep(0)
            await asyncio.sleep(0.001)
        assert task is not None
        assert asyncio.current_task() is task
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.sleep(10)
        return f"{before!r} {REQUEST.get()}"


@each("waits", [False, True])
@each("kind", BOTH)
def test_each_request_has_a_context_and_one_task(kind: type[HttpToolsProtocol], waits: bool) -> None:
    async def main() -> None:
        async with serving_side(kind, Looking()) as side:
            connection = await side.connect()
            for at in range(10, 20):
                connection.send(tool("look", {"text": f"text{at}", "waits": waits}))
                await connection.until(f"text{at}".encode())
                assert f"'' text{at}".encode() in connection.output
            await connection.settle()
            assert side.known == (8 if kind is HttpProtocol else 0)
            assert not side.state.tasks

    run(main())


class Sometimes(ToolHandler):
    """A handler that waits if the text begins with a w."""

    async def pause(self, ctx: Any, text: str) -> str:
        before = REQUEST.get()
        REQUEST.set(text)
        if text.startswith("w"):
            await asyncio.sleep(0)
        return f"{before!r} {REQUEST.get()}"


@each("texts", ["wwww", "wwdwwd", "ddwdww", "wddddw"])
def test_requests_with_one_head_may_wait_or_not(texts: str) -> None:
    async def main() -> None:
        async with serving_side(HttpProtocol, Sometimes()) as side:
            connection = await side.connect()
            for at, kind in enumerate(texts):
                text = f"{kind}{at}"
                connection.send(tool("pause", {"text": text}))
                await connection.until(f"'' {text}".encode())
                await connection.settle()
            assert side.known == len(texts) - 2  # a template is learnt from the first one, and the head from the second
            assert not side.state.tasks

    run(main())


@each("name", ["echo", "async", "progress", "unknown tool"])
def test_nothing_of_a_connection_is_left_for_the_garbage_collector(name: str) -> None:
    data = KNOWABLE[name]

    async def main() -> None:
        async with serving_side(HttpProtocol, Talker()) as side:
            connection = await side.connect()
            for piece in (data, data, data, data + data, data):
                connection.send(piece)
                await connection.settle()
            assert side.known == 2
            connection.disconnect()
            while not connection.is_closed:
                await asyncio.sleep(0)
            left = weakref.ref(connection.protocol)
            side.accepted.clear()
            del connection
            for _ in range(10):
                await asyncio.sleep(0)
            assert left() is None

    gc.disable()
    try:
        run(main())
    finally:
        gc.enable()


# Logs and telemetry


LOGGED: list[Step] = [ECHO, ECHO, ECHO, tool("turn"), tool("turn"), KNOWABLE["progress"], tool("interrupt"),
          added(b"X-Forwarded-For: 10.1.2.3"), edited(ECHO, (b"/mcp ", b"/%6dcp/ ")), ECHO, OTHER["query"],
          OTHER["wrong host"], *[KNOWABLE["unknown tool"]] * 3, ECHO]  # fmt: skip


@each("level, name", [(logging.INFO, "uvicorn.access"), (logging.INFO, "typedmcp.access"),
                      (logging.WARNING, "typedmcp.access")])  # fmt: skip
def test_the_lines_of_access_logs_are_the_same(
    level: int, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
    caplog.set_level(level, name)
    lines: list[list[str]] = []
    known: list[int] = []
    for kind in BOTH:
        caplog.clear()
        known.append(run(play(kind, LOGGED)).known)
        texts = [record.getMessage() for record in caplog.records if record.name in (name, "uvicorn.error")]
        lines.append([re.sub(r"\d+\.\d ms|(?<=\.1):\d+", "", text) for text in texts])
    assert lines[0] == lines[1]
    assert any("POST" in line for line in lines[0])
    assert not known[0]
    assert bool(known[1]) == (name == "uvicorn.access" or level > logging.INFO)


def test_calls_have_the_same_spans() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from tests.typedmcp_otel.exported import Exported, attributes

    spans: list[list[dict[str, Any]]] = []
    parents: list[Step] = [
        tool("echo", meta={"traceparent": f"00-{at // 3 + 1:032x}-{at // 3 + 1:016x}-01"}) for at in range(6)
    ]
    for kind in BOTH:
        exported = Exported()
        assert bool(run(play(kind, parents, telemetry=exported.telemetry)).known) == (kind is HttpProtocol)
        found = [{**attributes(span), "name": span.name, "parent": span.parent} for span in exported.spans()]
        spans.append([{name: value for name, value in each.items() if name != "client.port"} for each in found])
    assert spans[0] == spans[1]
    assert [each["mcp.method.name"] for each in spans[0]].count("tools/call") == 6


# Servers


def test_a_connection_with_tls_is_served_the_same(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from tests.typedmcp_auth.test_attacks import tls_context

    server = tls_context(tmp_path)
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE

    async def main(kind: type[HttpToolsProtocol]) -> tuple[bytes, int]:
        async with serving_side(kind, Talker(), tls=server) as side:
            connection = await side.connect(client)
            for data in (ECHO, ECHO, ECHO, tool("turn"), ECHO + ECHO, LONG, LONG, LONG, KNOWABLE["progress"]):
                connection.send(data)
                await connection.until_received()
            assert connection.protocol.scheme == "https"
            return await connection.read(), side.known

    (theirs, none), (ours, known) = (run(main(kind)) for kind in BOTH)
    assert ours == theirs
    assert (none, known) == (0, 3)


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> tuple[bytes, bytes]:
    """Send a request, and return the head and the body of its response."""
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length
    return re.sub(rb"date: [^\r]+", b"", head), await reader.readexactly(int(length[1]))


@each("limit", [None, 5])
def test_uvicorn_ends_its_server_in_the_same_way(limit: int | None) -> None:
    """It waits for a handler, whose response closes the connection, and closes idle connections."""

    async def main(kind: type[HttpToolsProtocol]) -> list[Any]:
        handler = Talker()
        app = typedmcp.asgi(handler)
        config = uvicorn.Config(app, http=kind, ws="none", log_config=None, limit_max_requests=limit)
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = listener.getsockname()
            serving = asyncio.create_task(server.serve([listener]))
            while not server.started:
                await asyncio.sleep(0.001)
            idle, busy = [await asyncio.open_connection(*address) for _ in range(2)]
            got = [await talk(*idle, ECHO) for _ in range(4)]
            waiting = asyncio.create_task(talk(*busy, tool("wait")))
            await handler.entered.wait()
            if limit is None:
                server.should_exit = True
            else:
                got.append(await talk(*idle, ECHO))
            end = await idle[0].read()
            assert not serving.done()
            handler.go.set()
            got.append(await waiting)
            assert await busy[0].read() == b""
            await serving
            for _, writer in (idle, busy):
                writer.close()
            return [*got, end, server.server_state.total_requests]

    theirs, ours = (run(main(kind)) for kind in BOTH)
    assert ours == theirs


def test_the_server_of_this_library_has_this_class() -> None:
    server = UvicornServer(typedmcp.asgi(Talker()), "127.0.0.1", 0)
    server.config.load()
    assert server.config.http_protocol_class is HttpProtocol
