"""Thousands of malformed HTTP requests to a real server: each gets a documented status."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from tests.cases import each
from tests.pairs import examples
from tests.server.http.http_wire import (
    LEGACY,
    META,
    MODERN,
    Wire,
    WireResponse,
    WireServer,
    call,
    post,
    request,
    served,
)

REQUESTS = examples(50_000)
BODY_LIMIT = 1 << 16

Random: TypeAlias = random.Random
Value: TypeAlias = str | bytes | None
Writer: TypeAlias = Callable[[Random, str], bytes]
"""Returns the bytes of a request, which may use the legacy session that it is given."""

NOTHING = 0
"""Stands for a connection that was closed without a response."""
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022


@dataclass(frozen=True)
class Kind:
    """A kind of request with the responses that are allowed."""

    write: Writer
    statuses: frozenset[int]
    codes: frozenset[int]
    """The allowed error codes; any code if empty."""
    promises: bool
    """True if the request announces more bytes than it has, so no request can follow on the connection."""
    ends: bool
    """True if the client also closes its sending side."""

    def __str__(self) -> str:
        return self.write.__name__


KINDS: list[Kind] = []


def expect_statuses(
    *statuses: int, codes: tuple[int, ...] = (), promises: bool = False, ends: bool = False
) -> Callable[[Writer], Writer]:
    """Add a kind of request to the table, with the statuses that are allowed."""

    def added(write: Writer) -> Writer:
        KINDS.append(Kind(write, frozenset(statuses), frozenset(codes), promises, ends))
        return write

    return added


# How requests are changed


def message(method: str = "tools/call", id: Any = 1, **wrong_params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": wrong_params}


def echo(**more: Any) -> dict[str, Any]:
    return message(name="echo", arguments={"n": 1}, _meta=META, **more)


def in_session(session: str, body: Any, headers: dict[str, Value] | None = None) -> bytes:
    return post(body, {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY, **(headers or {})})


def body_of_either_revision(rng: Random, session: str, body: Any, headers: dict[str, Value] | None = None) -> bytes:
    """Return a request of a modern or a legacy revision with this body, and headers for the call of a tool."""
    if rng.random() < 0.5:
        return in_session(session, body, headers)
    return call(body, {"Mcp-Method": "tools/call", "Mcp-Name": "echo", **(headers or {})})


def with_headers(rng: Random, session: str, headers: dict[str, Value]) -> bytes:
    """Return a valid call with these headers added."""
    if rng.random() < 0.5:
        return in_session(session, message(name="echo"), headers)
    return call(echo(), headers)


def sample_of(rng: Random, alphabet: bytes, most: int = 30) -> bytes:
    return bytes(rng.choices(alphabet, k=rng.randrange(1, most)))


ANY = bytes(range(0x100))
VISIBLE = bytes(range(0x21, 0x7F))
IN_HEADERS = VISIBLE + bytes(range(0x80, 0x100))
LETTERS = b"abcdefghijklmnopqrstuvwxyz"


def mutate(rng: Random, data: bytes, alphabet: bytes = ANY) -> bytes:
    """Return bytes of which some are changed, removed, repeated or inserted."""
    spoilt = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(spoilt) + 1)
        end = min(len(spoilt), at + rng.randrange(12))
        change = rng.randrange(4)
        if change == 0:
            spoilt[at:end] = b""
        elif change == 1:
            spoilt[at:at] = sample_of(rng, alphabet, 8)
        elif change == 2:
            spoilt[at:at] = spoilt[at:end]
        elif at < len(spoilt):
            spoilt[at] = rng.choice(alphabet)
    return bytes(spoilt)


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


# Checks before the body


@expect_statuses(400, 405)
def methods(rng: Random, session: str) -> bytes:
    method = rng.choice(
        ("PUT", "PATCH", "OPTIONS", "TRACE", "LINK", "PROPFIND", "GET", "DELETE", "FOO", "post", "P0ST")
    )
    needs_session = method in ("GET", "DELETE")
    return request(method, "/mcp", {} if needs_session else {"Mcp-Session-Id": rng.choice((session, "x"))})


@expect_statuses(404)
def paths(rng: Random, session: str) -> bytes:
    path = rng.choice(("/mcp/x", "/MCP", "/mcpx", "/.", "/mcp/..", "/%2e%2e/mcp", "//", "/mcp%00", "/%ff", "*", "/mc"))
    target = path + sample_of(rng, LETTERS, 9).decode() if rng.random() < 0.5 else path
    return call(echo()).replace(b"/mcp", target.encode(), 1)


@expect_statuses(421)
def hosts(rng: Random, session: str) -> bytes:
    host = rng.choice((
        b"evil.example.com", b"localhost.evil.example.com", b"127.0.0.1.evil.example.com:80", b"localhost@evil", b"",
        b"localhost:80:80", b"[::1", b"[::2]", b"2130706433", b"0.0.0.0", b"localhost:x", b"\xff", b"a" * 5000,
        sample_of(rng, IN_HEADERS), None,
    ))  # fmt: skip
    return with_headers(rng, session, {"Host": host})


@expect_statuses(403)
def origins(rng: Random, session: str) -> bytes:
    origin = rng.choice((
        b"https://evil.example.com", b"null", b"", b"http://localhost.evil.example.com", b"http://localhost@evil.com",
        b"file://localhost", b"http://", b"://localhost", b"localhost", b"http://localhost:1:1", b"\xff",
        b"chrome-extension://x", b"http://localhost, https://evil.example.com", sample_of(rng, IN_HEADERS),
    ))  # fmt: skip
    return with_headers(rng, session, {"Origin": origin})


@expect_statuses(415)
def content_types(rng: Random, session: str) -> bytes:
    kind = rng.choice((
        b"text/plain", b"", b"application/jsonp", b"application/x-www-form-urlencoded", b"multipart/form-data", b"json",
        b"text/json", b"application/json,text/plain", b"*/*", b"application", b";application/json",
        sample_of(rng, IN_HEADERS), None,
    ))  # fmt: skip
    return with_headers(rng, session, {"Content-Type": kind})


@expect_statuses(406)
def accepts(rng: Random, session: str) -> bytes:
    accept = rng.choice((
        b"text/event-streamx", b"text/html", b"", b"application/json;q=0, text/event-stream;q=0", b"image/*",
        b"application/json text/event-stream", b"application/jsonx, text/event-streamx",
        sample_of(rng, VISIBLE),
    ))  # fmt: skip
    return with_headers(rng, session, {"Accept": accept})


@expect_statuses(413)
def long_bodies(rng: Random, session: str) -> bytes:
    size = BODY_LIMIT + rng.choice((1, 2, 1000, 100_000))
    if rng.random() < 0.5:
        return body_of_either_revision(rng, session, message(name="echo", arguments={"text": "x" * size}))
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size)
    return body_of_either_revision(rng, session, b"", {"Content-Length": None, "Transfer-Encoding": "chunked"}) + chunk


@expect_statuses(413, promises=True)
def long_promises(rng: Random, session: str) -> bytes:
    return body_of_either_revision(rng, session, b"{", {"Content-Length": str(rng.choice((BODY_LIMIT + 1, 10**15)))})


@expect_statuses(431)
def many_headers(rng: Random, session: str) -> bytes:
    if rng.random() < 0.5:
        many: dict[str, Value] = {f"X-{number}": "x" for number in range(rng.choice((129, 500, 2000)))}
        return with_headers(rng, session, many)
    return with_headers(rng, session, {"X-Long": "x" * rng.choice((66_000, 200_000))})


@expect_statuses(400)
def headers_twice(rng: Random, session: str) -> bytes:
    name = rng.choice((
        b"Host: localhost", b"Content-Type: application/json", b"MCP-Protocol-Version: " + MODERN.encode(),
        b"Mcp-Method: tools/call", b"Mcp-Name: echo", b"Mcp-Name: other", b"mcp-session-id: x", b"Mcp-Param-Region: a",
        b"Origin: http://localhost", b"Content-Length: 5", b"Last-Event-ID: 1", b"Authorization: Bearer x",
    ))  # fmt: skip
    sent = call(echo(), {"Mcp-Session-Id": session, "MCP-Protocol-Version": MODERN})
    line, _, rest = sent.partition(b"\r\n")
    once = b"" if name.partition(b":")[0].lower() in sent.lower() else name + b"\r\n"
    return line + b"\r\n" + once + name + b"\r\n" + rest


# Headers and bodies that contradict each other


@expect_statuses(400, codes=(HEADER_MISMATCH,))
def wrong_names(rng: Random, session: str) -> bytes:
    name = rng.choice((
        b"=?base64?ZWNobw=?=", b"=?base64?ZWNobw?=", b"=?base64?!!!!?=", b"=?base64??=", b"=?base64?/w==?=", b"",
        b"=?base64?ZWNobw==", b"=?BASE64?ZWNobw==?=x", b"=?base64?b3RoZXI=?=", b"Echo", b"echo,echo", b"other", None,
        b"=?base64?" + sample_of(rng, VISIBLE) + b"?=", sample_of(rng, IN_HEADERS),
    ))  # fmt: skip
    return call(echo(), {"Mcp-Name": name})


@expect_statuses(400, codes=(HEADER_MISMATCH,))
def methods_in_headers(rng: Random, session: str) -> bytes:
    return call(echo(), {"Mcp-Method": rng.choice(("tools/list", "TOOLS/CALL", "", None, sample_of(rng, IN_HEADERS)))})


@expect_statuses(400, codes=(HEADER_MISMATCH,))
def params_in_headers(rng: Random, session: str) -> bytes:
    body = message(name="echo", arguments={"region": "north"}, _meta=META)
    region = rng.choice((None, b"", b"North", b"=?base64?bm9ydG?=", b"south", sample_of(rng, IN_HEADERS)))
    return call(body, {"Mcp-Param-Region": region})


@expect_statuses(400, codes=(HEADER_MISMATCH, UNSUPPORTED_VERSION, INVALID_REQUEST))
def versions(rng: Random, session: str) -> bytes:
    version = rng.choice((
        "", "2026-07-29", "9999-99-99", "1999-01-01", "2025-11-25", "2024-11-05", "latest", f"{MODERN},{MODERN}",
        f"v{MODERN}", sample_of(rng, IN_HEADERS), b"\xff" * 3000, None,
    ))  # fmt: skip
    inside = rng.choice((MODERN, MODERN, version if isinstance(version, str) else "x"))
    if version is None:
        inside = "3000-01-01"
    meta = {**META, "io.modelcontextprotocol/protocolVersion": inside}
    return call(message(name="echo", _meta=meta), {"MCP-Protocol-Version": version})


@expect_statuses(400, codes=(HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_VERSION))
def mixed_revisions(rng: Random, session: str) -> bytes:
    """Mix the body of one revision with the headers of another."""
    if rng.random() < 0.5:
        return in_session(session, echo())
    meta = {**META, "io.modelcontextprotocol/protocolVersion": LEGACY}
    return call(message(name="echo", _meta=meta))


@expect_statuses(200, 400)
def keys_twice(rng: Random, session: str) -> bytes:
    """Repeat a key in the body: what is done must agree with the headers."""
    body = encode(echo())
    extra = rng.choice(
        (b'"name": "other", ', b'"name": "other", "name": "other", ', b'"Name": "other", ', b'"n\\u0061me": "other", ')
    )
    return call(
        body.replace(b'"name"', extra + b'"name"') if rng.random() < 0.5 else _appended(body, extra),
        {"Mcp-Method": "tools/call", "Mcp-Name": "echo"},
    )


def _appended(body: bytes, extra: bytes) -> bytes:
    """Return the body with the same key again at the end of the parameters."""
    assert body.endswith(b"}}")
    return body[:-2] + b", " + extra.rstrip(b", ") + b"}}"


# Bodies


@expect_statuses(400, codes=(PARSE_ERROR,))
def invalid_json(rng: Random, session: str) -> bytes:
    body = rng.choice((
        b"{", b"}", b"nope", b'{"a"}', b"{'a': 1}", b'{"a": 1,}', b'"\\ud800', b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}",
        b"[" * 60_000, b'{"a":' * 9000, encode(echo()).decode().encode("utf-16"), gzip.compress(encode(echo())),
        b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', b"1e", b"NaN", sample_of(rng, bytes(range(0x80, 0x100))),
        encode(echo())[: rng.randrange(1, 40)],
    ))  # fmt: skip
    return body_of_either_revision(rng, session, body)


@expect_statuses(400, codes=(INVALID_REQUEST,))
def invalid_messages(rng: Random, session: str) -> bytes:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    bodies: tuple[Any, ...] = (
        1, "x", None, True, {}, [], [1], [[]], [ping], {"jsonrpc": "2.0"}, {"id": 1}, {**ping, "jsonrpc": "1.0"},
        {**ping, "id": None}, {**ping, "id": 1.5}, {**ping, "id": {}}, {**ping, "method": 1}, {**ping, "params": []},
        {**ping, "params": 1}, {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
    )  # fmt: skip
    return body_of_either_revision(rng, session, encode(rng.choice(bodies)))


@expect_statuses(400)
def blank_bodies(rng: Random, session: str) -> bytes:
    return body_of_either_revision(rng, session, rng.choice((b"", b" ", b"\n", b"\r\n\t ")))


@expect_statuses(400, codes=(INVALID_PARAMS,))
def bodies_with_meta(rng: Random, session: str) -> bytes:
    meta: Any = dict(META)
    way = rng.randrange(4)
    if way == 0:
        del meta[rng.choice(("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"))]
    elif way == 1:
        meta["io.modelcontextprotocol/clientCapabilities"] = rng.choice((1, [], "x", None))
    else:
        find_fault: tuple[Any, ...] = (None, 1, [], "x", {})
        meta = rng.choice(find_fault)
    if way == 3:
        return call({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    return call(message(name="echo", _meta=meta))


@expect_statuses(400, codes=(INVALID_PARAMS, HEADER_MISMATCH))
def wrong_params(rng: Random, session: str) -> bytes:
    find_fault: dict[str, Any] = rng.choice((
        {"name": 1}, {"name": None}, {"name": "echo", "arguments": 1}, {"name": "echo", "arguments": []}, {},
        {"name": "echo", "inputResponses": 1}, {"name": "echo", "requestState": {}},
    ))  # fmt: skip
    return call(message(**find_fault, _meta=META), {"Mcp-Name": "echo"})


@expect_statuses(400, codes=(MISSING_CAPABILITY,))
def capabilities(rng: Random, session: str) -> bytes:
    return call(message(name="asks", arguments={"n": rng.randrange(9)}, _meta=META))


@expect_statuses(404, codes=(METHOD_NOT_FOUND,))
def unknown_methods(rng: Random, session: str) -> bytes:
    method = rng.choice((
        "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tools/Call", "", "x",
        "__init__", "call_tool", "tasks/get", sample_of(rng, VISIBLE).decode(),
    ))  # fmt: skip
    return call(message(method, _meta=META))


@expect_statuses(200)
def failing(rng: Random, session: str) -> bytes:
    """Call a tool whose handler raises an exception."""
    if rng.random() < 0.5:
        return in_session(session, message(name="fails"))
    return call(message(name="fails", _meta=META))


@expect_statuses(202)
def messages_without_response(rng: Random, session: str) -> bytes:
    body: dict[str, Any] = rng.choice((
        {"method": "notifications/x"},
        {"method": "notifications/cancelled", "params": {"requestId": 7}},
        {"method": "notifications/progress", "params": {"progressToken": "x", "progress": 1}},
        {"id": "not.asked.7", "result": {}},
        {"id": 7, "error": {"code": 1, "message": "x"}},
    ))  # fmt: skip
    return in_session(session, {"jsonrpc": "2.0", **body})


@expect_statuses(200, 400)
def mutated_bodies(rng: Random, session: str) -> bytes:
    if rng.random() < 0.5:
        bodies = (
            message(name="echo"),
            message("tools/list"),
            message("ping"),
            message("logging/setLevel", level="info"),
        )
        return in_session(session, mutate(rng, encode(rng.choice(bodies))))
    return call(mutate(rng, encode(echo())), {"Mcp-Method": "tools/call", "Mcp-Name": "echo"})


# Sessions


@expect_statuses(404)
def sessions(rng: Random, session: str) -> bytes:
    id = rng.choice(
        (
            b"",
            b"x",
            b"0" * 5000,
            session[:-1].encode(),
            session.upper().encode(),
            session.encode() + b"x",
            sample_of(rng, IN_HEADERS),
        )
    )
    headers: dict[str, Value] = {"Mcp-Session-Id": id, "MCP-Protocol-Version": LEGACY}
    method = rng.choice(("POST", "GET", "DELETE"))
    if method == "POST":
        return post(message("ping"), headers)
    return request(method, "/mcp", {"Accept": "text/event-stream", **headers})


@expect_statuses(400)
def without_sessions(rng: Random, session: str) -> bytes:
    return post(
        message(rng.choice(("ping", "tools/list", "tools/call", "x"))),
        {"MCP-Protocol-Version": rng.choice((LEGACY, None))},
    )


@expect_statuses(400)
def last_event_ids(rng: Random, session: str) -> bytes:
    id = rng.choice(
        (
            b"x",
            b"1",
            b".",
            b"..1",
            b"-1",
            b"x.1",
            b"x.-1",
            b"x.1.1",
            b"\xff.1",
            b"x." + b"9" * 5000,
            sample_of(rng, LETTERS) + b".3",
        )
    )
    return request("GET", "/mcp", {"Accept": "text/event-stream", "Mcp-Session-Id": session, "Last-Event-ID": id})


@expect_statuses(404, 405)
def two_endpoints(rng: Random, session: str) -> bytes:
    """Use the endpoints of 2024-11-05."""
    if rng.random() < 0.5:
        return request(rng.choice(("PUT", "POST", "DELETE")), "/sse", {"Content-Length": "0"})
    query = rng.choice(
        (
            "",
            "?",
            "?session_id=x",
            "?sessionId=" + sample_of(rng, LETTERS).decode(),
            "?session_id=%ff",
            "?" + "a=b&" * 500,
        )
    )
    return post(message("ping")).replace(b"/mcp", b"/messages" + query.encode(), 1)


# Invalid HTTP


@expect_statuses(200, 202, 400, 403, 404, 405, 406, 413, 415, 421, 431, NOTHING, ends=True)
def mutated_heads(rng: Random, session: str) -> bytes:
    head, _, body = with_headers(rng, session, {}).partition(b"\r\n\r\n")
    return mutate(rng, head) + b"\r\n\r\n" + body


@expect_statuses(400, 421, NOTHING, ends=True)
def invalid_http(rng: Random, session: str) -> bytes:
    return rng.choice((
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 50, b"G\r\n",
        b"GET /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET  /mcp  HTTP/1.1\r\n\r\n", b"GET /mcp\r\n\r\n",
        b": x\r\n\r\n", b"\r\n\r\n\r\n", b"POST /mcp HTTP/1.1\nHost localhost\n\n", sample_of(rng, ANY, 200),
    ))  # fmt: skip


@expect_statuses(400, NOTHING, ends=True)
def truncated(rng: Random, session: str) -> bytes:
    sent = with_headers(rng, session, {})
    return sent[: rng.randrange(1, len(sent))]


@expect_statuses(400, ends=True)
def smuggled(rng: Random, session: str) -> bytes:
    """Send a body with an ambiguous end."""
    inner = call(echo())
    headers, body = rng.choice((
        ({"Transfer-Encoding": "chunked", "Content-Length": "5"}, b"0\r\n\r\n" + inner),
        ({"Transfer-Encoding": "chunked", "Content-Length": None}, b"zz\r\n" + inner),
        ({"Transfer-Encoding": "chunked", "Content-Length": None}, b"-5\r\nabcde\r\n0\r\n\r\n"),
        ({"Transfer-Encoding": "chunked", "Content-Length": None}, b"fffffffffffffffff\r\nx"),
        ({"Transfer-Encoding": "xchunked", "Content-Length": "2"}, b"{}" + inner),
        ({"Transfer-Encoding": "gzip, chunked", "Content-Length": None}, b"2\r\n{}\r\n0\r\n\r\n"),
        ({"Transfer-Encoding ": "chunked", "Content-Length": "2"}, b"{}" + inner),
        ({"Content-Length": "-1"}, inner), ({"Content-Length": "0x5"}, inner), ({"Content-Length": "5, 5"}, b"nope!"),
        ({"Content-Length": "+5"}, b"nope!"), ({"Content-Length": "2"}, b"{}" + inner[:20]),
    ))  # fmt: skip
    return call(b"", headers) + body


@expect_statuses(400, 404)
def upgrades(rng: Random, session: str) -> bytes:
    key = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    to = rng.choice(("websocket", "h2c", "x"))
    return request("GET", rng.choice(("/mcp", "/x")), {"Connection": "Upgrade", "Upgrade": to, **key})


# Checking the responses

LEAKS = re.compile(rb'Traceback|File "|line \d+, in |0x[0-9a-f]{6,}|object at|site-packages|\.py\b|nobody\'s business')


def find_fault(kind: Kind, sent: bytes, answer: WireResponse | None) -> str | None:
    """Return what is wrong with a response, or None."""
    status = NOTHING if answer is None else answer.status
    if status not in kind.statuses:
        return f"status {status}, none of {sorted(kind.statuses)}"
    if answer is None:
        return None
    if LEAKS.search(answer.body):
        return "tells what it should not"
    if status == 405 and not answer.headers.get("allow"):
        return "405 without Allow"
    if b"Mcp-Name: echo" in sent and b"I am other" in answer.body:
        return "does something else than the headers say"
    return find_error_fault(kind, answer) if status >= 400 else None


def find_error_fault(kind: Kind, answer: WireResponse) -> str | None:
    if answer.headers.get("content-type") != "application/json":
        return None if answer.body == b"Invalid HTTP request received." else "an error that is no JSON"
    error = answer.json
    if error.get("jsonrpc") != "2.0" or not isinstance(error["error"]["message"], str) or error.get("id", 0) is None:
        return "no proper error"
    if kind.codes and error["error"]["code"] not in kind.codes:
        return f"code {error['error']['code']}, none of {sorted(kind.codes)}"
    return None


def fuzz(server: WireServer, kind: Kind, count: int) -> Counter[int]:
    """Send this many requests of a kind. Return how often each status came."""
    rng, session = random.Random(f"{kind} {count}"), server.session()
    statuses: Counter[int] = Counter()
    with Wire(server) as wire:
        for number in range(count):
            sent = kind.write(rng, session)
            answer = wire.send(sent, ends=kind.ends)
            if kind.promises:
                wire.close()
            fault = find_fault(kind, sent, answer)
            assert fault is None, f"request {number} of {kind}: {fault}\n{sent[:2000]!r}\n{answer}"
            statuses[NOTHING if answer is None else answer.status] += 1
        for good in (call(echo()), in_session(server.session(), message(name="echo"))):
            answer = wire.send(good)
            assert answer is not None
            assert answer.json["result"]["content"] == [{"type": "text", "text": "I am echo"}]
    assert server.running.process.poll() is None
    assert server.complaints == []
    return statuses


@pytest.fixture(scope="module")
def server() -> Generator[WireServer]:
    with served(str(BODY_LIMIT)) as found:
        yield found


@each("kind", KINDS, ids=str)
def test_a_mutated_request_gets_a_documented_status(server: WireServer, kind: Kind) -> None:
    assert sum(fuzz(server, kind, 20).values()) == 20


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_many_mutated_requests_get_documented_statuses(server: WireServer, kind: Kind) -> None:
    statuses = fuzz(server, kind, REQUESTS // len(KINDS) + 1)
    if NOTHING not in kind.statuses:  # otherwise it depends on chance whether a request is valid HTTP
        assert statuses.keys() == kind.statuses
