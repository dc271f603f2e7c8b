"""Servers that break HTTP or the protocol: every call fails with the cause and releases its connection."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import (
    MODERN,
    OLDER,
    PATIENCE,
    Request,
    Script,
    Wire,
    connected,
    notification,
    pool_of,
    result,
)
from tests.client.http.test_session import run, text
from typedmcp.limits import Limits


def answer(request: Request) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request.json["id"], "result": result("right")}).encode()


def response(request: Request) -> bytes:
    """Return a valid response to a call as bytes."""
    body = answer(request)
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


# Responses that fail the call at once


def endless_trailers(request: Request, wire: Wire) -> None:
    wire.head(content_type="application/json", transfer_encoding="chunked")
    wire.chunk(answer(request))
    wire.raw(b"0\r\n" + b"X: aaaaaaaaaa\r\n" * 20_000)


def no_response(request: Request, wire: Wire) -> None:
    wire.close()


def reset(request: Request, wire: Wire) -> None:
    wire.writer.transport.abort()


def not_http(request: Request, wire: Wire) -> None:
    wire.raw(b"\x16\x03\x01\x00garbage\r\n\r\n")


def half_a_head(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    wire.close()


def endless_head(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 300_000)


def many_headers(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 200 OK\r\n" + b"X-A: a\r\n" * 30_000)


def truncated(request: Request, wire: Wire) -> None:
    wire.raw(response(request)[:-3])
    wire.close()


def truncated_chunks(request: Request, wire: Wire) -> None:
    wire.head(content_type="application/json", transfer_encoding="chunked")
    wire.chunk(answer(request))
    wire.close()


def bad_chunks(request: Request, wire: Wire) -> None:
    wire.head(content_type="application/json", transfer_encoding="chunked")
    wire.raw(b"zz\r\n" + answer(request))


def broken_stream(request: Request, wire: Wire) -> None:
    wire.events()
    wire.event(notification("message", level="info", data="x"))
    wire.close()


def two_lengths(request: Request, wire: Wire) -> None:
    wire.raw(response(request).replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1))


def upgrade(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")


def http_2(request: Request, wire: Wire) -> None:
    wire.raw(b"\x00\x00\x00\x04\x01\x00\x00\x00\x00")
    wire.close()


BROKEN = {
    no_response: "that was to be reused",
    reset: "that was to be reused",
    not_http: "not HTTP",
    half_a_head: "before it answered",
    endless_trailers: "the trailers of the response are longer than",
    endless_head: "the head of the response is longer than",
    many_headers: "the head of the response is longer than",
    truncated: "in the middle of its response",
    truncated_chunks: "in the middle of its response",
    bad_chunks: "not HTTP",
    broken_stream: "the stream ended before the result came.*in the middle",
    two_lengths: "not HTTP",
    upgrade: "another protocol",
    http_2: "not HTTP",
}


@each("revision", [OLDER, MODERN])
@each("handle", BROKEN, ids=lambda handle: handle.__name__)
def test_a_response_that_is_not_http_fails_the_call(handle: Any, revision: str) -> None:
    async def main() -> None:
        script = Script(revision, tools__call=handle)
        async with connected(script) as client:
            with pytest.raises(
                typedmcp.ConnectionLostError, match=rf"tools/call \(id \d+\): .*({BROKEN[handle]})"
            ) as caught:
                await client.call_tool("x")
            assert not isinstance(caught.value, typedmcp.RequestTimeoutError)
            del script.handlers["tools/call"]
            assert text(await client.call_tool("y")) == "y"

    run(main)


def no_json(request: Request, wire: Wire) -> None:
    wire.reply(200, b"{]", content_type="application/json")


def empty(request: Request, wire: Wire) -> None:
    wire.reply(200, b"", content_type="application/json")


def wrong_id(request: Request, wire: Wire) -> None:
    wire.json({"jsonrpc": "2.0", "id": 12345, "result": result()})


def no_id(request: Request, wire: Wire) -> None:
    wire.json({"jsonrpc": "2.0", "result": result()})


def both(request: Request, wire: Wire) -> None:
    wire.json({"jsonrpc": "2.0", "id": request.json["id"], "result": {}, "error": {"code": 1, "message": ""}})


def empty_array(request: Request, wire: Wire) -> None:
    wire.json([])


def only_a_notification(request: Request, wire: Wire) -> None:
    wire.json(notification("message", level="info", data="x"))


def nested(request: Request, wire: Wire) -> None:
    body = b'{"jsonrpc":"2.0","id":%d,"result":' % request.json["id"]
    wire.reply(200, body + b"[" * 200_000, content_type="application/json")


def encoded(request: Request, wire: Wire) -> None:
    wire.reply(200, gzip.compress(answer(request)), content_type="application/json", content_encoding="br")


def bomb(request: Request, wire: Wire) -> None:
    body = gzip.compress(answer(request) + b" " * 50_000_000)
    wire.reply(200, body, content_type="application/json", content_encoding="gzip")


def too_long(request: Request, wire: Wire) -> None:
    wire.head(content_type="application/json", content_length=1 << 40)


def too_long_in_chunks(request: Request, wire: Wire) -> None:
    wire.head(content_type="application/json", transfer_encoding="chunked")
    for _ in range(40):
        wire.chunk(b" " * 60_000)


def too_long_event(request: Request, wire: Wire) -> None:
    wire.events()
    wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": result("x" * 2_000_000)})


def _deep(request: Request) -> str:
    deep = "[" * 200 + "]" * 200
    return f'{{"jsonrpc": "2.0", "id": {request.json["id"]}, "result": {{"_meta": {{"a": {deep}}}}}}}'


def too_deep(request: Request, wire: Wire) -> None:
    wire.reply(200, _deep(request).encode(), content_type="application/json")


def too_deep_event(request: Request, wire: Wire) -> None:
    wire.events()
    wire.event(_deep(request))


def invalid_event(request: Request, wire: Wire) -> None:
    wire.events()
    wire.event(f'{{"jsonrpc": "2.0", "id": {request.json["id"]}, "result": {{]}}')


def result_of_another_method(request: Request, wire: Wire) -> None:
    wire.result(request, {"resultType": "complete", "content": 5})


INVALID = [
    no_json, empty, wrong_id, no_id, both, empty_array, only_a_notification, nested, encoded, bomb,
    too_long, too_long_in_chunks, too_long_event, too_deep, too_deep_event, invalid_event, result_of_another_method,
]  # fmt: skip


@each("revision", [OLDER, MODERN])
@each("handle", INVALID, ids=lambda handle: handle.__name__)
def test_an_invalid_response_fails_the_call(handle: Any, revision: str) -> None:
    async def main() -> None:
        script = Script(revision, tools__call=handle)
        async with connected(script, limits=Limits(message_bytes=1_000_000)) as client:
            with pytest.raises(typedmcp.ProtocolError, match=r"tools/call \(id \d+\): "):
                await client.call_tool("x")
            del script.handlers["tools/call"]
            assert text(await client.call_tool("y")) == "y"

    run(main)


# Responses that never end


async def no_answer(request: Request, wire: Wire) -> None:
    await wire.closed()


async def head_only(request: Request, wire: Wire) -> None:
    wire.events()
    await wire.closed()


async def half_a_body(request: Request, wire: Wire) -> None:
    wire.raw(response(request)[:-3])
    await wire.closed()


async def half_an_event(request: Request, wire: Wire) -> None:
    wire.events()
    wire.chunk(b"data: " + answer(request) + b"\n")
    await wire.closed()


async def endless_events(request: Request, wire: Wire) -> None:
    wire.events()
    while not wire.writer.is_closing():
        wire.event(notification("message", level="info", data="x" * 1000))
        await wire.writer.drain()
        await asyncio.sleep(0)


async def endless_comments(request: Request, wire: Wire) -> None:
    wire.events()
    while not wire.writer.is_closing():
        wire.chunk(b": " + b"x" * 10_000)
        await wire.writer.drain()
        await asyncio.sleep(0)


async def one_byte_at_a_time(request: Request, wire: Wire) -> None:
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000:
        wire.raw(bytes([byte]))
        await wire.writer.drain()
        await asyncio.sleep(0.01)


async def accepted(request: Request, wire: Wire) -> None:
    wire.reply(202)


ENDLESS = [
    no_answer, head_only, half_a_body, half_an_event, endless_events, endless_comments, one_byte_at_a_time,
    accepted,
]  # fmt: skip


@each("revision", [OLDER, MODERN])
@each("handle", ENDLESS, ids=lambda handle: handle.__name__)
def test_an_endless_response_times_out(handle: Any, revision: str) -> None:
    async def main() -> None:
        script = Script(revision, tools__call=handle)
        async with connected(script) as client:
            began = asyncio.get_running_loop().time()
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"tools/call \(id \d+\): no answer within 0\.1 s"):
                await client.call_tool("x", timeout=0.1)
            assert asyncio.get_running_loop().time() - began < PATIENCE / 2
            assert pool_of(client)._busy == set() or revision == OLDER
            del script.handlers["tools/call"]
            assert text(await client.call_tool("y")) == "y"

    run(main)


@each("handle", [no_answer, head_only, endless_events], ids=lambda handle: handle.__name__)
def test_closing_the_client_fails_open_calls(handle: Any) -> None:
    async def main() -> None:
        script = Script(tools__call=handle)
        async with connected(script) as client:
            calling = asyncio.create_task(client.call_tool("x"))
            await script.until("tools/call")
            await client.close()
            with pytest.raises(typedmcp.ConnectionLostError):
                await calling

    run(main)


@each("what", ["server/discover", "initialize", "notifications/initialized", "GET", "DELETE"])
def test_a_silent_server_delays_neither_connect_nor_close(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp.client.http.session._POST_TIMEOUT", 0.3)
    monkeypatch.setattr("typedmcp.client.http.session._DELETE_TIMEOUT", 0.3)
    monkeypatch.setattr("typedmcp.client.http.session._STREAM_OPEN_TIMEOUT", 0.3)

    async def main() -> None:
        script = Script(OLDER, **{what: no_answer})
        if what == "initialize":
            with pytest.raises(typedmcp.RequestTimeoutError):
                async with connected(script, timeout=0.3, probe=0.2):
                    pass
            return
        async with connected(script, probe=0.2) as client:
            assert text(await client.call_tool("x")) == "x"

    run(main)


# Unusual but valid responses


async def in_pieces(request: Request, wire: Wire) -> None:
    for byte in response(request):
        wire.raw(bytes([byte]))
        await wire.writer.drain()
        await asyncio.sleep(0)


def interim(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + response(request))


def until_the_end(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + answer(request))
    wire.close()


def events_until_the_end(request: Request, wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n")
    wire.raw(b"data: " + answer(request) + b"\n\n")


def unusual_line_ends(request: Request, wire: Wire) -> None:
    wire.events()
    wire.chunk(b"\xef\xbb\xbf:hello\rid:1\r\ndata:" + answer(request).replace(b", ", b",\r\ndata:") + b"\r\r")


def with_charset(request: Request, wire: Wire) -> None:
    wire.reply(200, answer(request), content_type="application/json; charset=utf-8")


def excess_response(request: Request, wire: Wire) -> None:
    wire.raw(response(request) + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")


def excess_bytes(request: Request, wire: Wire) -> None:
    wire.raw(response(request) + b"\x00\x01")


def closed_afterwards(request: Request, wire: Wire) -> None:
    wire.raw(response(request))
    wire.close()


def other_messages_first(request: Request, wire: Wire) -> None:
    wire.events()
    wire.event("no JSON")
    wire.event({"jsonrpc": "2.0", "id": 777, "result": {}})
    wire.event({"no": "message"}, type="other")
    wire.chunk(b"data: " + answer(request) + b"\n\n")
    wire.end()


def trailers(request: Request, wire: Wire) -> None:
    wire.head(content_type="application/json", transfer_encoding="chunked")
    wire.chunk(answer(request))
    wire.raw(b"0\r\nContent-Type: text/html\r\nX: y\r\n\r\n")


def odd_keep_alive(request: Request, wire: Wire) -> None:
    wire.raw(response(request).replace(b"Content-Type", b"Keep-Alive: timeout=\xb2\r\nContent-Type"))


UNUSUAL = [
    odd_keep_alive, in_pieces, interim, until_the_end, events_until_the_end, unusual_line_ends, with_charset,
    excess_response, excess_bytes, closed_afterwards, other_messages_first, trailers,
]  # fmt: skip


@each("handle", UNUSUAL, ids=lambda handle: handle.__name__)
def test_unusual_but_valid_http_is_understood(handle: Any) -> None:
    async def main() -> None:
        async with connected(Script(tools__call=handle)) as client:
            for _ in range(3):
                assert text(await client.call_tool("x")) == "right"

    run(main)


@each("method", ["x\r\nX-Evil: 1", "x\nX-Evil: 1", "x\0"])
def test_a_method_name_with_a_line_break_raises_usage_error(method: str) -> None:
    async def main() -> None:
        script = Script()
        async with connected(script) as client:
            with pytest.raises(typedmcp.UsageError, match="line breaks"):
                await client.send(method, {})
            assert text(await client.call_tool("y")) == "y"

    run(main)


def test_a_connection_that_the_server_has_closed_is_not_reused() -> None:
    async def main() -> None:
        wires: list[Wire] = []

        def call(request: Request, wire: Wire) -> None:
            wires.append(wire)
            wire.raw(response(request))

        script = Script(tools__call=call)
        async with connected(script) as client:
            for _ in range(20):
                assert text(await client.call_tool("x")) == "right"
                wires[-1].writer.transport.close()  # without announcing it in a header
                await asyncio.sleep(0)
        assert len(script.of("tools/call")) == 20

    run(main)


def test_a_tool_call_is_not_repeated_if_it_may_have_been_executed() -> None:
    async def main() -> None:
        script = Script(tools__call=no_response, tools__list=no_response)
        async with connected(script) as client:
            with pytest.raises(typedmcp.ConnectionLostError, match="that was to be reused"):
                await client.call_tool("x")
            assert len(script.of("tools/call")) == 1
            await client.ping()
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.list_tools()
            assert len(script.of("tools/list")) == 2  # an idempotent request

    run(main)


CALLS: dict[str, Callable[[Any], Any]] = {
    "tools/list": lambda client: client.list_tools(),
    "tools/list with progress": lambda client: client.list_tools(on_progress=print),
    "prompts/get": lambda client: client.get_prompt("x"),
}


@each("name", CALLS)
def test_a_request_that_is_sent_again_has_a_new_id(name: str) -> None:
    method = name.split()[0]
    complete: Any = {"resultType": "complete", "tools": [], "messages": [], "ttlMs": 0, "cacheScope": "private"}

    def answer_the_second(request: Request, wire: Wire) -> None:
        if len(script.of(method)) == 1:
            no_response(request, wire)
        else:
            wire.result(request, complete)

    script = Script()
    script.handlers[method] = answer_the_second

    async def main() -> None:
        async with connected(script) as client:
            await CALLS[name](client)
            first, second = (request.json for request in script.of(method))
            assert first["id"] != second["id"]
            tokens = [request["params"]["_meta"].get("progressToken") for request in (first, second)]
            assert tokens == ([first["id"], second["id"]] if "progress" in name else [None, None])
            assert len({request.json["id"] for request in script.requests}) == len(script.requests)

    run(main)


def test_a_subscription_that_is_requested_again_has_the_new_id() -> None:
    async def listen(request: Request, wire: Wire) -> None:
        if len(script.of("subscriptions/listen")) == 1:
            no_response(request, wire)
            return
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": request.json["id"]}}
        wire.events()
        wire.event(notification("subscriptions/acknowledged", notifications={"toolsListChanged": True}, **meta))
        wire.event(notification("tools/list_changed", **meta))
        await wire.closed()

    script = Script(subscriptions__listen=listen)

    async def main() -> None:
        async with connected(script) as client, client.listen(tools=True) as changes:
            assert (await anext(changes)).kind == "tools"
            assert changes.id == script.of("subscriptions/listen")[1].json["id"]

    run(main)


def test_reading_pauses_while_a_body_is_not_consumed() -> None:
    async def main() -> None:
        sent = 0

        async def call(request: Request, wire: Wire) -> None:
            nonlocal sent
            wire.head(404, content_type="text/plain", transfer_encoding="chunked")
            while True:
                wire.chunk(b"x" * 65_536)
                await wire.writer.drain()
                sent += 65_536

        async with connected(Script(tools__call=call)) as client:
            with pytest.raises(typedmcp.HttpStatusError, match="answered 404"):
                await client.call_tool("x")
            assert sent < 20_000_000

    run(main)


def test_a_large_response_arrives_complete_and_in_time() -> None:
    async def main() -> None:
        large = "ü" * 10_000_000

        def call(request: Request, wire: Wire) -> None:
            body = {"jsonrpc": "2.0", "id": request.json["id"], "result": result(large)}
            if request.json["params"]["name"] == "json":
                wire.json(body)
            else:
                wire.events()
                wire.event(json.dumps(body, ensure_ascii=False))
                wire.end()

        async with connected(Script(tools__call=call)) as client:
            assert text(await client.call_tool("json")) == large
            assert text(await client.call_tool("events")) == large

    run(main)
