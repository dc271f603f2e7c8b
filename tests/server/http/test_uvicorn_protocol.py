"""The protocol class for uvicorn answers as uvicorn's own one does: the same bytes, timeouts, limits and shutdown."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tests import spoken
from tests.cases import each
from tests.server.http.asgi_driver import ToolHandler, verify
from tests.server.http.http_wire import META, MODERN, call, post, request
from tests.server.http.two_protocols import Connection, Side, serving_side
from typedmcp import Auth, Limits
from typedmcp.server.http.uvicorn_protocol import HttpProtocol

T = TypeVar("T")
BOTH: Final = (HttpToolsProtocol, HttpProtocol)
LEGACY, BATCHING = "2025-11-25", "2025-03-26"
assert {LEGACY, BATCHING} <= {*spoken.LEGACY}

ENTERED, GO, RECONNECT, DISCONNECT = "entered", "go", "reconnect", "disconnect"
"""Steps that are not bytes: wait until a handler waits, let it return, open a new connection, close the client's end."""


class Talker(ToolHandler):
    """A handler with tools that end in unusual ways. One that waits says so by `entered`."""

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

    async def large(self, ctx: Any, size: int) -> str:
        return "x" * size


class Spoken(NamedTuple):
    """What a side has answered."""

    connections: list[tuple[bytes, bool]]
    """What each connection got, and whether the server closed it."""
    known: int
    """How many requests took the short way."""
    total: int
    """How many requests uvicorn has counted."""


def run(main: Coroutine[Any, Any, T]) -> T:
    async def timed() -> T:
        async with asyncio.timeout(60):
            return await main

    return asyncio.run(timed())


async def play(kind: type[HttpToolsProtocol], steps: Iterable[bytes | str], **options: Any) -> Spoken:
    """Serve a side, take the steps one after the other, and return what it answers.

    A connection that the server closes is followed by a new one.
    """
    options.setdefault("handler", Talker())
    async with serving_side(kind, **options) as side:
        connections: list[Connection] = [await side.connect()]
        for step in steps:
            now = connections[-1]
            if step == RECONNECT or (now.is_closed and isinstance(step, bytes)):
                now = await side.connect()
                connections.append(now)
            if isinstance(step, bytes):
                now.send(step.replace(b"SESSION", _session_of(connections)))
            elif step == ENTERED:
                await side.handler.entered.wait()
            elif step == GO:
                side.handler.entered.clear()
                side.handler.go.set()
            elif step == DISCONNECT:
                now.disconnect()
                while not now.is_closed:
                    await asyncio.sleep(0)
            await now.settle()
        spoken = [(each.output, each.is_closed) for each in connections]
        return Spoken(spoken, side.known, side.state.total_requests)


def _session_of(connections: Sequence[Connection]) -> bytes:
    """Return the id of the session that the last connections have begun."""
    found = [each.output.rpartition(b"mcp-session-id: ")[2].partition(b"\r\n")[0] for each in connections]
    return next((each for each in reversed(found) if each), b"SESSION")


def assert_same(steps: Sequence[bytes | str], known: int | None = None, **options: Any) -> Spoken:
    """Take the steps on both sides. Their answers must be the same, and `known` requests must take the short way."""
    make: Callable[[], dict[str, Any]] = options.pop("make", dict)
    theirs = run(play(HttpToolsProtocol, steps, **options, **make()))
    ours = run(play(HttpProtocol, steps, **options, **make()))
    assert [*map(_masked, ours.connections)] == [*map(_masked, theirs.connections)]
    assert ours.total == theirs.total
    assert theirs.known == 0
    assert known is None or ours.known == known
    return ours


def _masked(connection: tuple[bytes, bool]) -> tuple[bytes, bool]:
    """Leave out what is signed with a random key."""
    output, is_closed = connection
    return re.sub(rb'"requestState":"[^"]+"', b"", output), is_closed


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
    "empty header": added(b"X-One:"),
    "keep-alive": added(b"Connection: Keep-Alive"),
    "further headers": added(b"X-One: 1\r\nTraceparent: 00-1-2-01"),
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
        "OPTIONS", "/mcp", {"Origin": "https://page.test", "Access-Control-Request-Method": "POST",
                            "Access-Control-Request-Headers": "mcp-name"},
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
    "forwarded by the standard": added(b"Forwarded: for=10.0.0.1"),
    "too many headers": added(b"\r\n".join(b"X-%d: 1" % number for number in range(140))),
    "too large headers": added(b"X-Large: " + b"x" * 65_000),
    "body beyond the limit": tool("echo", {"text": "x" * 110_000}),
    "body off the short way": tool("echo", {"text": "x" * 70_000}),
    "head that is too long to be kept": added(b"X-Long: " + b"x" * 4_000),
    "spaces after a value": edited(ECHO, (b"Mcp-Name: echo", b"Mcp-Name: echo  ")),
}
"""Requests that have to go uvicorn's way, at least the first three times."""

SHORT_OTHER = frozenset(("no length", "length of zero", "spaces after a value"))
"""Those of `OTHER` that may take the short way later."""


def options() -> dict[str, Any]:
    return {"origins": ["https://page.test"], "limits": Limits(http_body_bytes=100_000)}


@each("name", KNOWABLE)
def test_a_known_head_is_answered_as_an_unknown_one(name: str) -> None:
    got = assert_same([KNOWABLE[name]] * 4, make=options)
    assert got.known == 2, got
    assert len(got.connections) == 1 or b"500 Internal" in got.connections[0][0], got


@each("name", OTHER)
def test_other_requests_go_the_usual_way(name: str) -> None:
    got = assert_same([OTHER[name]] * 4, make=options)
    assert name in SHORT_OTHER or got.known == 0, got


@each("name", OTHER)
def test_a_connection_can_change_between_the_two_ways(name: str) -> None:
    assert_same([ECHO, ECHO, ECHO, OTHER[name], ECHO, OTHER[name] + ECHO, ECHO, ECHO], make=options)


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


class Cut(NamedTuple):
    """How a known request is sent, and how many requests then take the short way: this one, and the same one after it,
    and after that on a new connection."""

    pieces: Callable[[bytes], list[bytes]]
    known: int


CUTS: dict[str, Cut] = {
    "whole": Cut(lambda data: [data], 3),
    "head and body": Cut(lambda data: [data[: -_body(data)], data[-_body(data) :]], 2),
    "first byte": Cut(lambda data: [data[:1], data[1:]], 2),
    "in the method": Cut(lambda data: [data[:3], data[3:]], 2),
    "in the target": Cut(lambda data: [data[:7], data[7:]], 2),
    "after the first line": Cut(lambda data: [data[: data.index(b"\n") + 1], data[data.index(b"\n") + 1 :]], 2),
    "in the end of the head": Cut(lambda data: [data[: -_body(data) - 2], data[-_body(data) - 2 :]], 2),
    "last byte": Cut(lambda data: [data[:-1], data[-1:]], 2),
    "two at once": Cut(lambda data: [data + data], 2),
    "three at once": Cut(lambda data: [data * 3], 2),
    "with the beginning of the next": Cut(lambda data: [data + data[:20], data[20:]], 2),
    "with the first byte of the next": Cut(lambda data: [data + data[:1], data[1:]], 2),
    "with the head of the next": Cut(lambda data: [data + data[: -_body(data)], data[-_body(data) :]], 2),
    "the last byte with the next": Cut(lambda data: [data[:-1], data[-1:] + data], 2),
    "the body with the next": Cut(lambda data: [data[: -_body(data)], data[-_body(data) :] + data], 2),
    "the rest with the next": Cut(lambda data: [data[:20], data[20:] + data], 2),
    "empty line before": Cut(lambda data: [b"\r\n" + data], 2),
    "empty line alone": Cut(lambda data: [b"\r\n", data], 3),
    "LF before": Cut(lambda data: [b"\n", data], 3),
    "empty line after": Cut(lambda data: [data + b"\r\n"], 2),
    "end of a head before": Cut(lambda data: [b"\r\n\r\n" + data], 2),
    "space before": Cut(lambda data: [b" " + data], 2),
    "garbage after": Cut(lambda data: [data + b"garbage"], 2),
    "garbage alone": Cut(lambda data: [data, b"garbage"], 3),
    "a shorter body": Cut(lambda data: [data[:-1]], 1),
    "a longer body": Cut(lambda data: [data + b" "], 2),
}


def _body(data: bytes) -> int:
    """Return the length of the body."""
    return len(data) - data.index(b"\r\n\r\n") - 4


CUT = ("echo", "async", "progress", "interrupt", "notification", "unknown tool")


@each("name", CUT)
@each("cut", CUTS)
def test_a_known_request_may_arrive_in_any_pieces(name: str, cut: str) -> None:
    data = KNOWABLE[name]
    closes = b"500 Internal" in assert_same([data]).connections[0][0]
    steps = [data, data, *CUTS[cut].pieces(data), data, RECONNECT, data]
    got = assert_same(steps)
    assert closes or got.known == CUTS[cut].known, got


@each("name", ["echo", "async", "progress", "no name in the header"])
def test_a_known_request_may_arrive_byte_by_byte(name: str) -> None:
    data = KNOWABLE[name]
    assert_same([data, data, *(data[at : at + 1] for at in range(len(data))), data], known=1)


@each("at", [*range(1, 24), *range(HEAD_END - 5, HEAD_END + 2), len(ECHO) - 1])
def test_the_rest_of_a_request_is_not_learnt(at: int) -> None:
    """A request that arrives in pieces has no head that another one could have."""
    rest = ECHO[at:]
    assert_same([ECHO, ECHO[:at], rest, ECHO[:at], rest, RECONNECT, rest, RECONNECT, rest], known=0)
    assert_same([ECHO, ECHO[:at], rest + ECHO, RECONNECT, rest + ECHO, RECONNECT, ECHO[at:], ECHO])


# Order


ORDERS: dict[str, list[bytes | str]] = {
    "a request while a handler waits": [tool("wait"), ENTERED, ECHO, ECHO, GO, ECHO],
    "known requests while a handler waits": [ECHO, ECHO, ECHO, tool("wait"), ENTERED, ECHO, ECHO, GO, ECHO],
    "a known request that waits": [*[tool("turn")] * 2, tool("wait"), GO, *[tool("wait")] * 3],
    "part of a request while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, ECHO[:30], GO, ECHO[30:], ECHO],
    "a wrong request while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, b"garbage\r\n\r\n", GO, ECHO],
    "disconnect while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, DISCONNECT, GO, RECONNECT, ECHO],
    "another connection while a handler waits": [ECHO, ECHO, tool("wait"), ENTERED, RECONNECT, ECHO, ECHO, GO],
    "connections that share a head": [*[ECHO, ECHO, RECONNECT] * 4, tool("turn"), RECONNECT, ECHO],
    "heads that alternate": [ECHO, tool("turn"), modern("tools/list"), LONG] * 4,
    "a progress stream between": [ECHO, ECHO, ECHO, *[KNOWABLE["progress"], ECHO] * 4],
    "an error between": [ECHO, ECHO, ECHO, *[KNOWABLE["malformed JSON"], ECHO] * 4],
    "an escaping exception between": [ECHO, ECHO, ECHO, *[tool("interrupt"), ECHO] * 4],
    "disconnect in the middle of a known request": [ECHO, ECHO, ECHO[:-3], DISCONNECT, RECONNECT, ECHO, ECHO],
}


@each("name", ORDERS)
def test_requests_are_answered_in_order(name: str) -> None:
    waits = [step for step in ORDERS[name] if isinstance(step, bytes)].count(tool("wait"))
    assert_same(ORDERS[name])
    assert waits < 5


# Sessions


SESSIONS: dict[str, list[bytes | str]] = {
    "calls": [*session(), *[LEGACY_ECHO] * 4],
    "all kinds of calls": [
        *session(), *[legacy("ping"), LEGACY_ECHO, legacy_tool("turn"), legacy("tools/list"), legacy_tool("no")] * 4,
    ],
    "a stream": [*session(), *[legacy_tool("report", meta=PROGRESS)] * 4],
    "logging": [*session(), *[legacy_tool("log")] * 3, legacy("logging/setLevel", {"level": "debug"}),
                *[legacy_tool("log")] * 3],
    "no session": [*session(), *[legacy_tool("echo", headers={"Mcp-Session-Id": None})] * 4],
    "an unknown session": [*session(), *[legacy_tool("echo", headers={"Mcp-Session-Id": "unknown"})] * 4],
    "the end of the session": [
        *session(), *[LEGACY_ECHO] * 3, request("DELETE", "/mcp", {"Mcp-Session-Id": "SESSION"}), *[LEGACY_ECHO] * 3,
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
    "another handshake in a session": [*session(), *[edited(initialize(), (b"\r\n\r\n", b"\r\nMcp-Session-Id: SESSION\r\n\r\n"))] * 4],
    "handler that fails": [*session(), *[legacy_tool("fail")] * 4],
    "exit": [*session(), *[legacy_tool("exit")] * 4],
}


@each("name", SESSIONS)
@each("sessions", [True, False], ids=["with sessions", "without sessions"])
def test_legacy_revisions_are_served_the_same(name: str, sessions: bool) -> None:
    got = assert_same(SESSIONS[name], sessions=sessions)
    assert got.known or name in ("handshakes", "another handshake in a session"), got
