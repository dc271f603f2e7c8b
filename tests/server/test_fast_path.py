"""The fast path of a call: what it takes, and that it sends what the slow path sends."""

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
from typedmcp.server.call_states import TRANSITIONS, CallEvent, CallState
from typedmcp.server.connection import ServerConnection
from typedmcp.server.context import Context
from typedmcp.server.line_channel import LineChannel


class Tools:
    def call_tool(self, params: Any, _ctx: Any) -> structs.CallToolResult:
        raise NotImplementedError


class Served:
    """A session whose responses are kept."""

    def __init__(self, config: ServerConfig) -> None:
        _, far = memory_pair()
        self.session = ServerConnection(config, far).session
        self.calls, self.engine = self.session.calls, self.session.engine
        self.channel: Any = Kept()

    @property
    def sent(self) -> list[bytes]:
        """The responses so far."""
        return list(self.channel.sent)

    def decode(self, line: bytes) -> Context | None:
        """Decode a line on the fast path."""
        return self.engine.decode(self.session, line, self.channel)

    def decoded(self, line: bytes) -> Context:
        """Return the call of a line that takes the fast path."""
        ctx = self.decode(line)
        assert ctx is not None
        return ctx

    def waiting(self, id: int) -> Context:
        """Return a call in flight, as it is once its handler waits."""
        ctx = self.decoded(call(MODERN_REVISION, id, name="x"))
        assert self.calls.admit(ctx)
        return ctx


class Kept(LineChannel):
    """A channel that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send_fast(self, line: bytes) -> None:
        self.sent.append(line)


def served(revision: str, **options: Any) -> Served:
    """Return a session that is ready for requests of a revision."""
    made = Served(ServerConfig(Tools(), name="s", version="100%", **options))
    if revision in LEGACY:
        params = {**CLIENT, "protocolVersion": revision}
        made.calls.start(frame(id=0, method="initialize", params=params), made.channel)
        made.calls.start(frame(method="notifications/initialized"), made.channel)
    made.session.use_revision(revision)
    made.channel.sent.clear()
    return made


def result(text: str = "hello", meta: Mapping[str, Any] | None = None) -> structs.CallToolResult:
    made = structs.CallToolResult(result_type="complete", content=[structs.TextContent(text=text)])
    if meta is not None:
        made.meta = structs.from_builtins(dict(meta), structs.ResultMetaObject)
    return made


@each("revision", [MODERN_REVISION, *LEGACY])
@each("id", [7, "seven"])
@each("made", [result(), result("%d\u2028"), result(meta={"a": 1})], ids=["plain", "odd", "meta"])
def test_the_fast_path_sends_what_the_slow_path_sends(revision: str, id: Any, made: structs.CallToolResult) -> None:
    async def main() -> None:
        one = served(revision)
        line = call(revision, id, name="x", arguments={})
        for _ in range(2):  # the slow path compiles the converters
            one.calls.respond_slow(one.decoded(line), made)
        fast = one.decoded(line)
        encoded = one.engine.encode(fast, made)
        assert encoded is not None
        assert json.loads(encoded) == json.loads(one.sent[-1])
        one.calls.respond(fast, made)
        assert one.sent[-1] == encoded
        assert fast.is_answered
        waiting = one.decoded(line)
        one.calls.admit(waiting)
        one.calls.respond(waiting, made)
        assert one.sent[-1] == encoded
        assert waiting.is_answered
        assert one.session.in_flight == {}

    asyncio.run(main())


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
    assert served(MODERN_REVISION).decode(line) is None


def test_requests_beyond_the_limit_and_with_an_id_in_flight_leave_the_fast_path() -> None:
    one = served(MODERN_REVISION, limits=Limits(requests_in_flight=2))
    one.waiting(1)
    assert one.decode(call(MODERN_REVISION, 1, name="x")) is None
    one.waiting(2)
    assert one.decode(call(MODERN_REVISION, 3, name="x")) is None


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
    one = served(MODERN_REVISION)
    one.calls.respond(one.waiting(1), result())
    ctx = one.decoded(call(MODERN_REVISION, 2, name="x"))
    assert one.engine.encode(ctx, made) is None
    assert not ctx.is_answered


def waiting_call(one: Served) -> Context:
    """Return a call whose handler waits, after another one that has compiled the converters."""
    one.calls.respond(one.waiting(1), result())
    return one.waiting(2)


def test_a_cancelled_request_gets_no_response_when_its_handler_has_waited() -> None:
    one = served(MODERN_REVISION)
    ctx = waiting_call(one)
    one.channel.sent.clear()
    one.session.cancel(2)
    one.calls.respond(ctx, result())
    assert ctx.cancelled
    assert one.sent == []


def test_a_result_without_json_becomes_an_internal_error_when_its_handler_has_waited() -> None:
    one = served(MODERN_REVISION)
    ctx = waiting_call(one)
    broken = structs.CallToolResult(result_type="complete", content=[], structured_content={"a": float("nan")})
    one.calls.respond(ctx, broken)
    assert json.loads(one.sent[-1])["error"]["code"] == INTERNAL_ERROR
    assert one.session.in_flight == {}


def test_a_result_type_that_no_extension_has_declared_is_rejected_when_its_handler_has_waited() -> None:
    one = served(MODERN_REVISION)
    one.calls.respond(waiting_call(one), structs.CallToolResult(result_type="task", content=[]))
    assert json.loads(one.sent[-1])["error"]["code"] == INTERNAL_ERROR


@each("revision", LEGACY)
def test_a_response_has_the_revision_of_its_request_when_another_one_came_in_between(revision: str) -> None:
    one = served(MODERN_REVISION)
    ctx = waiting_call(one)
    one.session.use_revision(revision)
    one.calls.respond(ctx, result())
    sent = json.loads(one.sent[-1])["result"]
    assert sent["resultType"] == "complete"
    assert sent["_meta"]


def test_no_state_of_a_call_lacks_an_event_that_can_happen() -> None:
    """Who cancels does not ask for the state, and a cancelled handler may still return a result."""
    assert set(TRANSITIONS) == set(CallState)
    for state, events in TRANSITIONS.items():
        assert CallEvent.CANCEL in events
        assert CallEvent.ANSWER in events or state is CallState.ANSWERED


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
