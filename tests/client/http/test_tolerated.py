"""Servers over HTTP that break the specification harmlessly, and what may answer a call."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import MODERN, OLDER, Request, Script, Wire, connected, notification, result
from tests.client.http.test_session import run, text
from typedmcp import DiagnosticKind, Limits
from typedmcp.transports.http1 import Inflater


def message(request: Request, said: str) -> Any:
    return {"jsonrpc": "2.0", "id": request.json["id"], "result": result(said)}


def body(request: Request) -> bytes:
    return json.dumps(message(request, "right")).encode()


def zipped(request: Request, wire: Wire) -> None:
    wire.reply(200, gzip.compress(body(request)), content_type="application/json", content_encoding="gzip")


def deflated(request: Request, wire: Wire) -> None:
    wire.reply(200, zlib.compress(body(request)), content_type="application/json", content_encoding="Deflate")


def zipped_stream(request: Request, wire: Wire) -> None:
    coder = zlib.compressobj(wbits=31)
    wire.events(content_encoding="gzip")
    for part in (b": comment\n\n", b"data: " + body(request) + b"\n\n"):
        wire.chunk(coder.compress(part) + coder.flush(zlib.Z_SYNC_FLUSH))


def created(request: Request, wire: Wire) -> None:
    wire.reply(201, body(request), content_type="application/json")


def created_stream(request: Request, wire: Wire) -> None:
    wire.head(201, content_type="text/event-stream", transfer_encoding="chunked")
    wire.event(message(request, "right"))
    wire.end()


TOLERATED: list[tuple[Callable[[Request, Wire], None], str]] = [
    (zipped, "the response has the content-encoding gzip"),
    (deflated, "the response has the content-encoding deflate"),
    (zipped_stream, "the response has the content-encoding gzip"),
    (created, "the response has the status 201, expected 200"),
    (created_stream, "the response has the status 201, expected 200"),
]


@each("revision", [OLDER, MODERN])
@each("handle, found", TOLERATED)
def test_a_response_in_an_unusual_form_is_read_and_reported_unless_strict(
    handle: Any, found: str, revision: str
) -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        script = Script(revision, tools__call=handle)
        async with connected(script, on_diagnostic=reports.append) as client:
            assert text(await client.call_tool("x")) == "right"
        (report,) = [each for each in reports if each.kind is DiagnosticKind.TOLERATED]
        assert report.text.startswith(found)
        reports.clear()
        async with connected(script, on_diagnostic=reports.append, strict=True) as client:
            with pytest.raises(typedmcp.ProtocolError, match=found):
                await client.call_tool("x")
        assert reports == []

    run(main)


@each("cut, reason", [(-6, "the compressed body ended too early"), (0, "the compressed body is not valid")])
def test_a_broken_compressed_body_fails_the_call(cut: int, reason: str) -> None:
    def call(request: Request, wire: Wire) -> None:
        data = gzip.compress(body(request))[:cut] if cut else b"plain"
        wire.reply(200, data, content_type="application/json", content_encoding="gzip")

    async def main() -> None:
        async with connected(Script(tools__call=call)) as client:
            with pytest.raises(typedmcp.ConnectionLostError, match=reason):
                await client.call_tool("x")

    run(main)


@each("is_stream", [False, True])
def test_nothing_may_follow_a_compressed_body(is_stream: bool) -> None:
    def call(request: Request, wire: Wire) -> None:
        kind = "text/event-stream" if is_stream else "application/json"
        data = gzip.compress(b": comment\n\n" if is_stream else body(request)) + b"more"
        wire.reply(200, data, content_type=kind, content_encoding="gzip")

    async def main() -> None:
        async with connected(Script(MODERN, tools__call=call)) as client:
            with pytest.raises(typedmcp.ConnectionLostError, match="data follows after its end"):
                await client.call_tool("x")

    run(main)


@each("ends_first", [False, True])
def test_an_inflater_keeps_nothing_of_what_follows(ends_first: bool) -> None:
    inflater = Inflater()
    inflater.feed(gzip.compress(b"text"))
    assert (inflater.read(), inflater.is_complete) == (b"text", True)
    if ends_first:
        assert inflater.read() == b""
    for _ in range(2):
        inflater.feed(bytes(1000))
        with pytest.raises(zlib.error, match="data follows"):
            inflater.read()
    assert not vars(inflater)["_stream"].unused_data


def test_a_small_compressed_stream_leaves_turns_to_other_tasks() -> None:
    inflated = 8 << 20
    turns = 0

    def call(request: Request, wire: Wire) -> None:
        wire.events(content_encoding="gzip")
        wire.chunk(gzip.compress(b":\n" * (inflated // 2) + b"data: " + body(request) + b"\n\n"))

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def main() -> None:
        async with connected(Script(MODERN, tools__call=call)) as client:
            counter = asyncio.create_task(count())
            assert text(await client.call_tool("x")) == "right"
            counter.cancel()
        assert turns >= inflated // (1 << 16)

    run(main)


# The calls that a response answers


@each("revision", [OLDER, MODERN])
def test_a_response_answers_only_the_call_of_its_own_stream(revision: str) -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        requests: dict[str, tuple[Request, Wire]] = {}
        both = asyncio.Event()

        def call(request: Request, wire: Wire) -> None:
            requests[request.json["params"]["name"]] = request, wire
            if len(requests) == 2:
                both.set()

        script = Script(revision, tools__call=call)
        async with connected(script, on_diagnostic=reports.append) as client:
            good, evil = (asyncio.create_task(client.call_tool(name)) for name in ("good", "evil"))
            await both.wait()
            (asked, wire), (stolen, other) = requests["good"], requests["evil"]
            other.events()
            other.event(message(asked, "forged"))
            other.event({"jsonrpc": "2.0", "id": asked.json["id"], "error": {"code": 1, "message": "forged"}})
            other.event({"jsonrpc": "2.0", "error": {"code": 7, "message": "no id, so its own"}})
            other.end()
            with pytest.raises(typedmcp.RemoteError, match="its own"):
                await evil
            assert not good.done()
            wire.json(message(asked, "right"))
            assert text(await good) == "right"
            assert stolen.json["id"] != asked.json["id"]
        kinds = [report.kind for report in reports]
        assert kinds == [DiagnosticKind.UNEXPECTED_RESPONSE] * 2

    run(main)


@each("strict", [False, True])
def test_a_result_on_the_stream_of_server_messages_needs_a_202(strict: bool) -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        stream: asyncio.Future[Wire] = asyncio.get_running_loop().create_future()

        async def listen(_request: Request, wire: Wire) -> None:
            wire.events()
            stream.set_result(wire)
            await wire.closed()

        async def call(request: Request, wire: Wire) -> None:
            (await stream).event(message(request, request.json["params"]["name"]))
            if request.json["params"]["name"] == "late":
                wire.reply(202)
            else:
                await asyncio.sleep(0.05)
                wire.json(message(request, "right"))

        script = Script(OLDER, GET=listen, tools__call=call)
        async with connected(script, on_diagnostic=reports.append, strict=strict) as client:
            assert text(await client.call_tool("forged")) == "right"
            assert [report.kind for report in reports] == [DiagnosticKind.UNEXPECTED_RESPONSE]
            reports.clear()
            script.handlers["tools/call"] = answer_elsewhere(stream)
            if strict:
                with pytest.raises(typedmcp.ProtocolError, match="status 202, expected a result"):
                    await client.call_tool("late")
            else:
                assert text(await client.call_tool("late")) == "elsewhere"
                assert [report.kind for report in reports] == [DiagnosticKind.TOLERATED]

    def answer_elsewhere(stream: asyncio.Future[Wire]) -> Any:
        async def call(request: Request, wire: Wire) -> None:
            wire.reply(202)
            await wire.writer.drain()
            await asyncio.sleep(0.05)
            stream.result().event(message(request, "elsewhere"))

        return call

    run(main)


# Streams of server messages


def test_connecting_does_not_wait_for_the_stream_of_server_messages() -> None:
    async def main() -> None:
        hold = asyncio.Event()

        async def listen(_request: Request, wire: Wire) -> None:
            await hold.wait()
            wire.events()
            wire.event(notification("tools/list_changed"))
            await wire.closed()

        script = Script(OLDER, GET=listen)
        async with connected(script) as client:
            assert text(await client.call_tool("echo")) == "echo"
            await script.until("GET")
            async with asyncio.timeout(5), client.listen(tools=True) as changes:  # waits for a second, and no longer
                hold.set()
                assert (await anext(changes)).kind == "tools"

    run(main)


# Event ids


@each("size", [100, 101])
def test_a_stream_is_not_resumed_after_an_event_with_a_very_long_id(size: int) -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []

        def call(_request: Request, wire: Wire) -> None:
            wire.events()
            wire.event(id="x" * size, retry=1)
            wire.end()

        def resume(request: Request, wire: Wire) -> None:
            if "last-event-id" not in request.headers:
                wire.reply(405)
                return
            wire.events()
            wire.event({"jsonrpc": "2.0", "id": script.of("tools/call")[-1].json["id"], "result": result("resumed")})
            wire.end()

        script = Script(OLDER, tools__call=call, GET=resume)
        limits = Limits(http_event_id_bytes=100)
        async with connected(script, on_diagnostic=reports.append, limits=limits) as client:
            if size == 100:
                assert text(await client.call_tool("x")) == "resumed"
                assert reports == []
                return
            with pytest.raises(typedmcp.ConnectionLostError, match="the stream ended before the result came"):
                await client.call_tool("x")
            assert "an event whose id has 101 bytes; the limit is 100 (http_event_id_bytes)" in reports[0].text

    run(main)


# Floods


@each("revision", [OLDER, MODERN])
def test_a_stream_of_invalid_messages_ends_its_call_and_the_session(revision: str) -> None:
    async def main() -> None:
        def call(request: Request, wire: Wire) -> None:
            wire.events()
            for _ in range(1000 if request.json["params"]["name"] == "flood" else 10):
                wire.event({"jsonrpc": "2.0", "method": "x/y"})
            wire.event(message(request, "right"))

        script = Script(revision, tools__call=call)
        limits = Limits(invalid_messages=100)
        async with connected(script, on_diagnostic=ignore, limits=limits) as client:
            assert text(await client.call_tool("x")) == "right"
            with pytest.raises(typedmcp.ProtocolError, match=r"more than 100 within 10 s \(invalid_messages\)"):
                await client.call_tool("flood")
            assert len(script.of("tools/call")) == 2

    def ignore(_report: typedmcp.Diagnostic) -> None: ...

    run(main)
