"""The fast path of the dispatcher: what it takes, and that it sends what the slow path sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.cases import each
from tests.helpers import CLIENT, LEGACY, MODERN_REVISION, call, frame
from typedmcp import Limits, ServerConfig, memory_pair
from typedmcp.dialect import structs
from typedmcp.errors import INTERNAL_ERROR
from typedmcp.server.connection import ServerConnection
from typedmcp.server.context import Context
from typedmcp.server.dispatcher import Dispatcher


class Tools:
    def call_tool(self, params: Any, _ctx: Any) -> structs.CallToolResult:
        raise NotImplementedError


class Recorder(Dispatcher):
    """A dispatcher that keeps the responses of the slow path."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.sent: list[bytes] = []

    def send_response(self, sink: Any, line: bytes, code: int | None = None) -> None:
        self.sent.append(line)


def dispatcher_for(revision: str, **options: Any) -> Recorder:
    """Return a dispatcher that is ready for requests of a revision."""
    dispatcher = Recorder(ServerConfig(Tools(), name="s", version="100%", **options))
    if revision in LEGACY:
        dispatcher.dispatch(frame(id=0, method="initialize", params={**CLIENT, "protocolVersion": revision}))
        dispatcher.dispatch(frame(method="notifications/initialized"))
    dispatcher.use_revision(revision)
    dispatcher.sent.clear()
    return dispatcher


def result(text: str = "hello", meta: Mapping[str, Any] | None = None) -> structs.CallToolResult:
    made = structs.CallToolResult(result_type="complete", content=[structs.TextContent(text=text)])
    if meta is not None:
        made.meta = structs.from_builtins(dict(meta), structs.ResultMetaObject)
    return made


@each("revision", [MODERN_REVISION, *LEGACY])
@each("id", [7, "seven"])
@each("made", [result(), result("%d\u2028"), result(meta={"a": 1})], ids=["plain", "odd", "meta"])
def test_the_fast_path_sends_what_the_slow_path_sends(revision: str, id: Any, made: structs.CallToolResult) -> None:
    dispatcher = dispatcher_for(revision)
    line = call(revision, id, name="x", arguments={})
    for _ in range(2):  # the slow path compiles the converters
        slow = dispatcher.decode_request(line)
        assert slow is not None
        dispatcher.ensure_registered(slow)
        dispatcher.respond_slow(slow, made)
    fast = dispatcher.decode_request(line)
    assert fast is not None
    encoded = dispatcher.encode_result(fast, made)
    assert encoded is not None
    assert json.loads(encoded) == json.loads(dispatcher.sent[-1])
    assert fast.is_answered
    waiting = dispatcher.decode_request(line)
    assert waiting is not None
    dispatcher.ensure_registered(waiting)
    dispatcher.respond(waiting, made)
    assert dispatcher.sent[-1] == encoded
    assert waiting.is_answered
    assert dispatcher.in_flight == {}


@each(
    "line",
    [
        b"",
        b"nonsense",
        b"[]",
        frame(id=1, method="x/y"),
        frame(id=1, method="tools/call", params={"name": "x"}),
        frame(id=None, method="tools/call"),
        frame(method="notifications/cancelled", params={"requestId": 1}),
        frame(id=1, result={}),
        call(MODERN_REVISION, 1, name=3),
        call(MODERN_REVISION, 1, name="x", requestState="s"),
        call(MODERN_REVISION, 1, name="x", inputResponses={}),
    ],
)
def test_messages_that_need_a_second_look_leave_the_fast_path(line: bytes) -> None:
    assert dispatcher_for(MODERN_REVISION).decode_request(line) is None


def test_requests_beyond_the_limit_and_with_an_id_in_flight_leave_the_fast_path() -> None:
    dispatcher = dispatcher_for(MODERN_REVISION, limits=Limits(requests_in_flight=2))
    ctx = dispatcher.decode_request(call(MODERN_REVISION, 1, name="x"))
    assert ctx is not None
    dispatcher.ensure_registered(ctx)
    assert dispatcher.decode_request(call(MODERN_REVISION, 1, name="x")) is None
    other = dispatcher.decode_request(call(MODERN_REVISION, 2, name="x"))
    assert other is not None
    dispatcher.ensure_registered(other)
    assert dispatcher.decode_request(call(MODERN_REVISION, 3, name="x")) is None


@each(
    "made",
    [
        None,
        {},
        structs.ListToolsResult(result_type="complete", tools=[], cache_scope="public", ttl_ms=0),
        result("null"),
        structs.CallToolResult(result_type="complete", content=[], structured_content=msgspec.Raw(b'{"a":\n1}')),
        structs.CallToolResult(result_type="complete", content=[], structured_content={"a": float("nan")}),
    ],
    ids=["None", "a dict", "another result", "the text null", "encoded lines", "NaN"],
)
def test_results_that_need_a_second_look_leave_the_fast_path(made: Any) -> None:
    dispatcher = dispatcher_for(MODERN_REVISION)
    warm = dispatcher.decode_request(call(MODERN_REVISION, 1, name="x"))
    assert warm is not None
    dispatcher.ensure_registered(warm)
    dispatcher.respond(warm, result())
    ctx = dispatcher.decode_request(call(MODERN_REVISION, 2, name="x"))
    assert ctx is not None
    assert dispatcher.encode_result(ctx, made) is None
    assert not ctx.is_answered


def test_a_registered_request_leaves_the_fast_path() -> None:
    dispatcher = dispatcher_for(MODERN_REVISION)
    ctx = dispatcher.decode_request(call(MODERN_REVISION, 1, name="x"))
    assert ctx is not None
    dispatcher.ensure_registered(ctx)
    assert dispatcher.encode_result(ctx, result()) is None


def registered(dispatcher: Dispatcher, id: int) -> Context:
    """Return a request that is registered, as it is once its handler waits."""
    ctx = dispatcher.decode_request(call(MODERN_REVISION, id, name="x"))
    assert ctx is not None
    dispatcher.ensure_registered(ctx)
    return ctx


def waiting_call(dispatcher: Dispatcher) -> Context:
    """Return a request whose handler waits, after another one that has compiled the converters."""
    dispatcher.respond(registered(dispatcher, 1), result())
    return registered(dispatcher, 2)


def test_a_cancelled_request_gets_no_response_when_its_handler_has_waited() -> None:
    dispatcher = dispatcher_for(MODERN_REVISION)
    removed, cancelled = waiting_call(dispatcher), registered(dispatcher, 3)
    dispatcher.sent.clear()
    dispatcher.unregister(removed)
    dispatcher.respond(removed, result())
    cancelled.cancelled = True
    dispatcher.respond(cancelled, result())
    assert dispatcher.sent == []


def test_a_result_without_json_becomes_an_internal_error_when_its_handler_has_waited() -> None:
    dispatcher = dispatcher_for(MODERN_REVISION)
    ctx = waiting_call(dispatcher)
    broken = structs.CallToolResult(result_type="complete", content=[], structured_content={"a": float("nan")})
    dispatcher.respond(ctx, broken)
    assert json.loads(dispatcher.sent[-1])["error"]["code"] == INTERNAL_ERROR
    assert dispatcher.in_flight == {}


def test_a_result_type_that_no_extension_has_declared_is_rejected_when_its_handler_has_waited() -> None:
    dispatcher = dispatcher_for(MODERN_REVISION)
    ctx = waiting_call(dispatcher)
    dispatcher.respond(ctx, structs.CallToolResult(result_type="task", content=[]))
    assert json.loads(dispatcher.sent[-1])["error"]["code"] == INTERNAL_ERROR


@each("revision", LEGACY)
def test_a_response_has_the_revision_of_its_request_when_another_one_came_in_between(revision: str) -> None:
    dispatcher = dispatcher_for(MODERN_REVISION)
    ctx = waiting_call(dispatcher)
    dispatcher.use_revision(revision)
    dispatcher.respond(ctx, result())
    sent = json.loads(dispatcher.sent[-1])["result"]
    assert sent["resultType"] == "complete"
    assert sent["_meta"]


@each("steps", [0, 1])
def test_a_connection_that_is_stopped_before_it_serves_closes_its_transport(steps: int) -> None:
    async def main() -> None:
        near, far = memory_pair()
        connection = ServerConnection(ServerConfig(Tools()), far)
        running = asyncio.ensure_future(connection.run())
        for _ in range(steps):
            await asyncio.sleep(0)
        connection.stop()
        await asyncio.wait_for(running, 60)
        assert await near.read() == b""

    asyncio.run(main())
