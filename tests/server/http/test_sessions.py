"""HTTP with the sessions of legacy revisions, and legacy revisions without sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import (
    OpenRequest,
    Served,
    SessionClient,
    ToolHandler,
    in_loop,
    make_served,
    message,
    messages,
    run_loop,
    serving,
    verify,
)
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp import Auth, MemoryStore
from typedmcp.dialect import structs
from typedmcp.protocol.sse import ServerSentEvent
from typedmcp.server.http import sessions as session_module
from typedmcp.server.http.streams import StreamLog
from typedmcp.server.slow_path import SlowPath
from typedmcp.stores import StoreLimits

CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
PRIMED = "2025-11-25"
ASKS: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
FORM = {"action": "accept", "content": {"name": "Ann"}}


class ManualClock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def initialize(revision: str, **members: Any) -> bytes:
    return message(id=0, method="initialize", params={**CLIENT, "protocolVersion": revision, **members})


def ids(events: list[ServerSentEvent]) -> list[str]:
    """Return the ids of the events that have data."""
    return [str(event.id) for event in events if event.data]


def auth() -> Auth:
    return Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])


# Begin and end


@each("revision", LEGACY)
@in_loop
async def test_initialize_begins_a_session_and_returns_its_id(revision: str) -> None:
    async with serving() as served:
        reply = await served.post(initialize(revision))
        assert reply.status == 200
        assert reply.json["id"] == 0
        assert reply.json["result"]["protocolVersion"] == revision
        id = reply.headers["mcp-session-id"]
        assert all(0x21 <= ord(character) <= 0x7E for character in id)
        assert len(id) >= 32
        session = SessionClient(served, revision, id, None)
        assert (await session.notify("notifications/initialized")).status == 202
        reply = await session.call("echo", {"text": "a"}, id="x").reply()
        assert (reply.status, reply.text, reply.json["id"]) == (200, "a", "x")
        assert "resultType" not in reply.json["result"]
        assert "mcp-session-id" not in reply.headers


@in_loop
async def test_every_session_has_its_own_id() -> None:
    async with serving() as served:
        assert len({(await served.session()).id for _ in range(50)}) == 50


@in_loop
async def test_an_unknown_revision_gets_the_newest_one_with_sessions() -> None:
    async with serving() as served:
        reply = await served.post(initialize("1999-01-01"))
        assert reply.json["result"]["protocolVersion"] == LEGACY[0]
        assert "mcp-session-id" in reply.headers


BEFORE: list[tuple[str, bytes, int]] = [
    ("a request", message(id=1, method="tools/list"), 400),
    ("a notification", message(method="notifications/initialized"), 400),
    ("an answer", message(id=1, result={}), 400),
    ("initialize without an id", message(method="initialize", params={**CLIENT, "protocolVersion": PRIMED}), 400),
    ("a batch", b"[" + initialize("2025-03-26") + b"]", 400),
    ("an empty batch", b"[]", 400),
    ("no JSON", b"{", 400),
    ("nothing", b"", 400),
    ("initialize without parameters", message(id=1, method="initialize"), 200),
    ("initialize with wrong ones", initialize(PRIMED, capabilities=[]), 200),
]


@each("content, status", [row[1:] for row in BEFORE], ids=[row[0] for row in BEFORE])
@in_loop
async def test_only_initialize_begins_a_session(content: bytes, status: int) -> None:
    async with serving() as served:
        reply = await served.post(content)
        assert reply.status == status
        assert "error" in reply.json
        assert "mcp-session-id" not in reply.headers


@in_loop
async def test_requests_before_initialized_are_served_and_reported() -> None:
    async with serving() as served:
        session = await served.session(ready=False)
        assert (await session.ask("ping").reply()).json["result"] == {}
        assert served.kinds == []
        for _ in range(2):
            assert (await session.call("echo").reply()).text == "echo"
        assert served.kinds == ["tolerated"]
        assert (await session.notify("notifications/initialized")).status == 202
        assert (await session.call("echo").reply()).text == "echo"
        assert (await session.post(initialize(PRIMED)).reply()).code == -32600
        assert served.kinds == ["tolerated"]


@each("revision", LEGACY)
@in_loop
async def test_a_request_that_waits_before_initialized_can_be_cancelled(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision, ready=False)
        call = session.call("wait", id=5)
        await served.handler.entered.wait()
        assert (await session.notify("notifications/cancelled", {"requestId": 5})).status == 202
        await call.done()
        assert served.handler.ended == ["cancelled"]


@each("strict", [False, True])
@each("revision", LEGACY)
@in_loop
async def test_a_stream_can_be_opened_before_initialized(revision: str, strict: bool) -> None:
    async with serving(strict=strict) as served:
        session = await served.session(revision, ready=False)
        stream = await session.listening()
        served.app.config.changes.tools_changed()
        assert (await stream.next_message())["method"] == "notifications/tools/list_changed"
        assert (await session.notify("notifications/initialized")).status == 202
        served.app.config.changes.prompts_changed()
        assert (await stream.next_message())["method"] == "notifications/prompts/list_changed"
        assert (await session.call("echo").reply()).text == "echo"
        assert not served.reports


@in_loop
async def test_requests_before_initialized_are_rejected_by_a_strict_server() -> None:
    async with serving(strict=True) as served:
        session = await served.session(ready=False)
        reply = await session.call("echo").reply()
        assert (reply.status, reply.code, reply.json["id"]) == (400, -32600, 1)
        assert (await session.ask("ping").reply()).json["result"] == {}
        reply = await session.post(initialize(PRIMED)).reply()
        assert reply.code == -32600
        assert "mcp-session-id" not in reply.headers
        assert (await session.notify("notifications/initialized")).status == 202
        assert (await session.call("echo").reply()).text == "echo"
        assert (await session.post(initialize(PRIMED)).reply()).code == -32600


@each("method", ["POST", "GET", "DELETE"])
@in_loop
async def test_a_request_needs_the_id_of_an_existing_session(method: str) -> None:
    async with serving() as served:
        session = await served.session()
        content = message(id=1, method="tools/list") if method == "POST" else b""
        for named, status in (
            ({}, 400),
            ({"mcp-session-id": ""}, 404),
            ({"mcp-session-id": "x"}, 404),
            ({"mcp-session-id": session.id.swapcase()}, 404),
        ):
            reply = await served.request(method, {"mcp-protocol-version": PRIMED, **named}, content)
            assert reply.status == status
            assert "id" not in reply.json
        twice = [(b"mcp-session-id", session.id.encode())] * 2
        assert (await served.request(method, twice, content)).status == 400
        assert (await session.call("echo").reply()).status == 200


@each("method", ["POST", "GET", "DELETE"])
@each("token", ["bob", "Ann", "ann2"])
@in_loop
async def test_only_its_own_principal_can_use_a_session(method: str, token: str) -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        session = await served.session()
        assert (await session.call("who").reply()).text == "ann"
        content = (
            message(id=1, method="tools/call", params={"name": "who", "arguments": {}}) if method == "POST" else b""
        )
        headers = {**session.headers, "authorization": f"Bearer {token}"}
        assert (await served.request(method, headers, content)).status == 404
        assert (await session.call("who").reply()).text == "ann"


@in_loop
async def test_a_deleted_session_is_not_found() -> None:
    async with serving() as served:
        session = await served.session()
        stream = await session.listening()
        call = session.call("wait")
        await call.event()
        reply = await session.delete()
        assert (reply.status, reply.body) == (204, b"")
        assert "content-length" not in reply.headers
        await stream.rest()
        assert messages(await call.rest()) == []
        assert served.handler.ended == ["cancelled"]
        await served.assert_settled()
        for again in (session.call("echo"), session.get(), session.get("all.0")):
            assert (await again.reply()).status == 404
        assert (await session.delete()).status == 404
        assert (await served.session()).id != session.id


@in_loop
async def test_deleting_a_session_cancels_calls_without_a_stream() -> None:
    async with serving() as served:
        session = await served.session("2025-06-18")
        call = session.call("wait")
        await served.handler.entered.wait()
        assert (await session.delete()).status == 204
        await call.reply()
        assert served.handler.ended == ["cancelled"]


@in_loop
async def test_an_unused_session_expires() -> None:
    clock = ManualClock()
    async with serving(store=MemoryStore(limits=StoreLimits(ttl=100), clock=clock)) as served:
        one, other = await served.session(), await served.session()
        clock.now = 99
        assert (await one.call("echo").reply()).status == 200
        clock.now = 101
        assert (await one.call("echo").reply()).status == 200
        assert (await other.call("echo").reply()).status == 404
        clock.now = 300
        assert (await one.get().reply()).status == 404


@in_loop
async def test_an_open_stream_keeps_its_session_from_expiring() -> None:
    clock = ManualClock()
    async with serving(store=MemoryStore(limits=StoreLimits(ttl=100), clock=clock), keep_alive=0.01) as served:
        session = await served.session()
        stream = await session.listening()
        for _ in range(4):
            clock.now += 60
            seen = len(stream.sent)
            await stream.until(lambda seen=seen: len(stream.sent) > seen + 2)  # type: ignore[misc]
        assert (await session.call("echo").reply()).status == 200


@in_loop
async def test_sessions_beyond_the_limit_get_503() -> None:
    clock = ManualClock()
    async with serving(store=MemoryStore(limits=StoreLimits(sessions=2, ttl=100), clock=clock)) as served:
        first = await served.session()
        await served.session()
        reply = await served.post(initialize(PRIMED))
        assert reply.status == 503
        assert int(reply.headers["retry-after"]) > 0
        assert "mcp-session-id" not in reply.headers
        assert (await first.delete()).status == 204
        await served.session()
        clock.now = 101
        await served.session()


VERSIONS = [(None, 200), *((revision, 200) for revision in LEGACY), ("1999-01-01", 400), ("", 400), ("x", 400)]


@each("version, status", VERSIONS)
@in_loop
async def test_the_version_header_in_a_session_must_name_a_legacy_revision(version: Any, status: int) -> None:
    async with serving() as served:
        session = await served.session()
        session.headers.pop("mcp-protocol-version")
        if version is not None:
            session.headers["mcp-protocol-version"] = version
        assert (await session.ask("tools/list").reply()).status == status
        stream = session.get()
        assert await stream.head() == status
        stream.disconnect()
        await stream.done()


@in_loop
async def test_a_body_in_a_session_must_not_name_a_modern_revision() -> None:
    async with serving() as served:
        session = await served.session()
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        reply = await session.call("echo", meta=meta).reply()
        assert (reply.status, reply.code) == (400, -32020)


@in_loop
async def test_other_http_methods_are_not_allowed() -> None:
    async with serving() as served:
        session = await served.session()
        for method in ("PUT", "PATCH", "OPTIONS", "HEAD", "get"):
            reply = await served.request(method, session.headers)
            assert (reply.status, reply.headers["allow"]) == (405, "GET, POST, DELETE")


# Errors and responses


@each("revision", LEGACY)
@in_loop
async def test_errors_of_handlers_have_status_200(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        reply = await session.call("fail").reply()
        assert (reply.status, reply.code) == (200, -32603)
        assert b"secret" not in reply.body
        reply = await session.ask("x/y").reply()
        assert reply.code == -32601
        reply = await session.ask("tools/call", {"name": 3}).reply()
        assert reply.code == -32602


@each(
    "content",
    [b"", b"  ", b"{", b"3", message(id=None, method="tools/list"), b"[]", b"[" + message(id=1, method="ping") + b"]"],
)
@in_loop
async def test_an_invalid_message_is_rejected(content: bytes) -> None:
    async with serving() as served:
        reply = await (await served.session()).post(content).reply()
        assert reply.status == 400
        assert "id" not in reply.json


@in_loop
async def test_what_gets_no_response_gets_202_and_an_empty_body() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        for method, params in (
            ("notifications/cancelled", {"requestId": 99}),
            ("notifications/roots/list_changed", {}),
            ("notifications/unknown", {}),
        ):
            reply = await session.notify(method, params)
            assert (reply.status, reply.body) == (202, b"")
        call = session.call("name")
        reply = await session.answer((await call.next_message())["id"], result=FORM)
        assert (reply.status, reply.body) == (202, b"")
        assert (await call.reply()).text == "accept {'name': 'Ann'}"
        reply = await session.notify("notifications/cancelled", {"requestId": []})
        assert reply.status == 400
        assert "id" not in reply.json


@in_loop
async def test_a_second_request_with_an_id_in_flight_is_rejected() -> None:
    async with serving() as served:
        session = await served.session()
        first = session.call("wait", id=1)
        await served.handler.entered.wait()
        reply = await session.call("echo", id=1).reply()
        assert reply.status == 400
        assert "id" not in reply.json
        assert served.kinds == ["duplicate id"]
        other = await served.session()
        assert (await other.call("echo", id=1).reply()).text == "echo"
        assert (await session.call("echo", id="1").reply()).text == "echo"
        served.handler.go.set()
        assert (await first.reply()).text == "waited"
        assert (await session.call("echo", id=1).reply()).text == "echo"


@each("revision", LEGACY)
@in_loop
async def test_a_call_that_waits_gets_a_stream_if_the_revision_has_empty_events(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        opened = session.call("wait")
        await served.handler.entered.wait()
        if revision == PRIMED:
            first = await opened.event()
            assert (first.data, first.retry) == (b"", 1000)
            assert first.id
        served.handler.go.set()
        reply = await opened.reply()
        assert reply.is_stream is (revision == PRIMED)
        assert reply.text == "waited"


@in_loop
async def test_the_standalone_stream_begins_with_an_empty_event_to_resume_from() -> None:
    async with serving() as served:
        stream = await (await served.session(PRIMED)).listening()
        first = await stream.event()
        assert (first.data, first.retry) == (b"", 1000)
        assert first.id


@each("revision", LEGACY)
@in_loop
async def test_messages_of_a_call_come_on_its_stream_with_ids(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        listening = await session.listening()
        reply = await session.call("report", meta={"progressToken": "t"}).reply()
        said = [event for event in reply.events if event.data]
        assert [json.loads(event.data).get("method") for event in said] == [*["notifications/progress"] * 2, None]  # type: ignore[arg-type]
        assert len({event.id for event in said}) == 3
        assert None not in {event.id for event in said}
        assert messages(listening.arrived()) == []


@each("revision", LEGACY)
@in_loop
async def test_the_end_of_a_stream_is_sent_with_the_last_messages(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        complete = session.call("report", {"waits": False}, meta={"progressToken": 1})
        assert len(messages((await complete.reply()).events)) == 3
        assert [sent["type"] for sent in complete.sent] == ["http.response.start", "http.response.body"]
        waiting = session.call("report_and_wait", meta={"progressToken": 1})
        assert (await waiting.next_message())["params"]["progress"] == 0
        served.handler.go.set()
        await waiting.reply()
        assert b'"waited"' in waiting.sent[-1]["body"]


class WaitingStore(MemoryStore):
    """A store in which one method never returns: changes of a session's log level, or another one."""

    def __init__(self, method: str = "update_session") -> None:
        super().__init__()
        self.entered = asyncio.Event()
        self._method = method

    async def _wait_in(self, method: str) -> None:
        if method == self._method:
            self.entered.set()
            await asyncio.sleep(1000)

    async def update_session(self, session: str, fields: Mapping[str, str | None]) -> bool:
        if "level" in fields:
            await self._wait_in("update_session")
        return await super().update_session(session, fields)

    async def create_stream(self, session: str, stream: str, final_event: bytes, *events: Any, **options: Any) -> int:
        await self._wait_in("create_stream")
        return await super().create_stream(session, stream, final_event, *events, **options)

    async def append_events(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        await self._wait_in("append_events")
        return await super().append_events(session, stream, events, last=last)


@in_loop
async def test_a_complete_stream_is_sent_while_changes_of_the_session_are_stored() -> None:
    store = WaitingStore()
    async with serving(store=store) as served:
        session = await served.session()
        stored = await served.app.sessions.load(session.id.encode(), None)
        stored.save_fields({"level": "error"})  # as another request has done
        opened = session.call("report", {"waits": False}, meta={"progressToken": 1})
        assert (await opened.next_message())["method"] == "notifications/progress"
        await store.entered.wait()
        opened.cancel()
        with suppress(asyncio.CancelledError):
            await opened.done()


@each("waits", [False, True])
@each("method", ["create_stream", "append_events"])
@in_loop
async def test_a_stream_ends_if_its_request_is_cancelled_while_events_are_stored(method: str, waits: bool) -> None:
    store = WaitingStore(method)
    async with serving(store=store) as served:
        session = await served.session()
        opened = session.call("report", {"waits": waits}, meta={"progressToken": 1})
        await store.entered.wait()
        opened.cancel()
        with suppress(asyncio.CancelledError):
            await opened.done()


@in_loop
async def test_nobody_waits_for_a_stream_that_was_cancelled_while_its_events_were_stored() -> None:
    async def send(sent: Any) -> None: ...

    store = WaitingStore("append_events")
    async with serving(store=store) as served:
        session = await served.session()
        state = served.app.state
        stream = state.open_stream(send, None, StreamLog(store, session.id, "a", lambda: b"{}", state.spawn))
        assert stream is not None
        pumping = asyncio.ensure_future(stream.pump())
        assert stream.put(b"x" * (stream.buffer + 1))
        await store.entered.wait()
        waiting = asyncio.ensure_future(stream.drain())
        await run_loop()
        assert not waiting.done()
        pumping.cancel()
        await waiting
        assert not stream.put(b"{}")


# Cancellation and disconnection


@each("revision", LEGACY)
@in_loop
async def test_a_call_ends_when_it_is_cancelled(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        for name in ("wait", "stubborn"):
            served.handler.entered.clear()
            opened = session.call(name, id=name)
            await served.handler.entered.wait()
            assert (await session.notify("notifications/cancelled", {"requestId": name})).status == 202
            await opened.done()
            assert opened.is_complete
            assert messages(opened.arrived()) == []
        assert served.handler.ended == ["cancelled", "kept on"]
        await served.assert_settled()
        assert (await session.notify("notifications/cancelled", {"requestId": "wait"})).status == 202
        assert served.kinds == ["unexpected message"]


@in_loop
async def test_a_cancellation_affects_no_other_session() -> None:
    async with serving() as served:
        one, other = await served.session(), await served.session()
        opened = one.call("wait", id=1)
        await served.handler.entered.wait()
        assert (await other.notify("notifications/cancelled", {"requestId": 1})).status == 202
        served.handler.go.set()
        assert (await opened.reply()).text == "waited"


@each("raises", [False, True])
@each("revision", LEGACY)
@in_loop
async def test_a_broken_connection_does_not_cancel_a_call(revision: str, raises: bool) -> None:
    async with serving() as served:
        session = await served.session(revision)
        opened = session.call("report_and_wait", meta={"progressToken": 1}, raises=raises)
        await served.handler.entered.wait()
        opened.disconnect()
        await asyncio.sleep(0)
        served.handler.go.set()
        await opened.done()
        assert served.handler.ended == ["answered"]
        await served.assert_settled()


# Resumption


async def broken(session: SessionClient, served: Served, after: int, **options: Any) -> tuple[OpenRequest, str]:
    """Make a call whose connection breaks after this many events. Return the id of the last of them."""
    opened = session.call("report_and_wait", {"steps": 3}, meta={"progressToken": 1}, **options)
    last = ""
    for _ in range(after):
        event = await opened.event()
        last = event.id or last
    await served.handler.entered.wait()
    opened.disconnect()
    return opened, last


@each("is_over", [False, True])
@each("revision", ["2025-03-26", "2025-06-18", PRIMED])
@in_loop
async def test_a_stream_can_be_resumed_from_every_position_without_loss_or_repetition(
    revision: str, is_over: bool
) -> None:
    async with serving() as served:
        session = await served.session(revision)
        opened = session.call("report_and_wait", {"steps": 3}, meta={"progressToken": 1})
        primed = revision == PRIMED
        events = [await opened.event() for _ in range(3 + primed)]
        positions = [str(event.id) for event in events]
        opened.disconnect()
        if is_over:
            served.handler.go.set()
            await opened.done()
        resumed = [session.get(last) for last in positions]
        served.handler.go.set()
        rest: list[ServerSentEvent] = []
        for at, each in enumerate(resumed):
            rest = (await each.reply()).events
            *progress, answer = messages(rest)
            assert [each["params"]["progress"] for each in progress] == [*range(at + 1 - primed, 3)]
            assert answer["result"]["content"][0]["text"] == "waited"
            assert ids(rest)[:-1] == positions[at + 1 :]
        after = await session.get(ids(rest)[-1]).reply()
        assert messages(after.events) == []
        assert after.status == 200


@in_loop
async def test_a_stream_can_be_resumed_several_times() -> None:
    async with serving() as served:
        session = await served.session()
        opened, last = await broken(session, served, 1)
        for step in range(3):
            again = session.get(last)
            event = await again.event()
            assert json.loads(event.data)["params"]["progress"] == step  # type: ignore[arg-type]
            last = str(event.id)
            again.disconnect()
            await again.done()
        served.handler.go.set()
        assert (await session.get(last).reply()).text == "waited"
        await opened.done()


@in_loop
async def test_a_resumed_stream_sends_a_comment_at_once() -> None:
    async with serving(keep_alive=0.02) as served:
        session = await served.session()
        _, last = await broken(session, served, 4)
        again = session.get(last)
        assert await again.head() == 200
        await again.until(lambda: len(again.sent) > 3)
        again.disconnect()
        await again.done()
        again = session.get(last)
        served.handler.go.set()
        assert (await again.reply()).text == "waited"


@in_loop
async def test_a_client_that_disconnects_while_resuming_leaves_nothing_behind() -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 4)
        again = session.get(last)
        await run_loop()
        again.disconnect()
        await again.done()


class Paced(ToolHandler):
    async def paced(self, ctx: Any) -> str:
        await self.go.wait()
        for step in range(3):
            ctx.progress(step)
            await asyncio.sleep(0.001)
        return "paced"


@in_loop
async def test_events_for_a_stalled_connection_can_be_fetched_on_another() -> None:
    async with serving(Paced()) as served:
        session = await served.session()
        opened = session.call("paced", meta={"progressToken": 1})
        first = await opened.event()
        opened.hold()
        served.handler.go.set()
        again = session.get(first.id)
        reply = await again.reply()
        assert reply.text == "paced"
        assert len(messages(reply.events)) == 4
        opened.disconnect()


@in_loop
async def test_the_stream_of_a_cancelled_call_ends_when_it_is_resumed() -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 2)
        again = session.get(last)
        await again.head()
        await session.notify("notifications/cancelled", {"requestId": 1})
        received = messages((await again.reply()).events)
        assert [each["params"]["progress"] for each in received] == [1, 2]


UNKNOWN = [
    "x",
    "all.1",
    "all",
    "x.1",
    ".",
    ".1",
    "x.",
    "all-1.x",
    "all-1.",
    "all-1.-1",
    "all-1.1.5",
    "all-1.²",
    "all-1." + "9" * 30,
    "all-1." + "9" * 5000,
    "x.99999999999999999",
    "x." + "9" * 5000,
    "ü",
]


@each("last", UNKNOWN, ids=lambda last: repr(last[:20]))
@in_loop
async def test_an_unknown_event_id_is_rejected(last: str) -> None:
    async with serving() as served:
        session = await served.session()
        assert (await session.get(last).reply()).status == 400


@in_loop
async def test_an_event_id_of_an_earlier_store_gets_every_possible_change() -> None:
    async with serving() as served:
        session = await served.session()
        stream = await session.listening("all-1.999")
        received = {(await stream.next_message())["method"].split("/")[1] for _ in range(3)}
        assert received == {"tools", "prompts", "resources"}


@in_loop
async def test_streams_of_other_sessions_cannot_be_resumed() -> None:
    async with serving() as served:
        one, other = await served.session(), await served.session()
        _, last = await broken(one, served, 2)
        assert (await other.get(last).reply()).status == 400
        name, _, number = last.rpartition(".")
        assert (await one.get(f"{name}.{int(number) + 50}").reply()).status == 400
        twice = [*((k.encode(), v.encode()) for k, v in one.headers.items()), *[(b"last-event-id", last.encode())] * 2]
        assert (await served.request("GET", twice)).status == 400


@in_loop
async def test_a_stream_cannot_be_resumed_after_its_events_were_dropped() -> None:
    async with serving(store=MemoryStore(limits=StoreLimits(events=2))) as served:
        session = await served.session()
        _, last = await broken(session, served, 1)
        await asyncio.sleep(0)
        assert (await session.get(last).reply()).status == 400


@in_loop
async def test_the_server_may_disconnect_and_the_client_resumes() -> None:
    async with serving() as served:
        session = await served.session()
        opened = session.call("hang_up", {"retry": 0.25})
        events = await opened.rest()
        assert messages(events) == []
        assert events[-1].retry == 250
        assert not opened.is_done
        again = session.get(events[0].id)
        served.handler.go.set()
        assert (await again.reply()).text == "waited"
        await opened.done()
        assert (await session.call("hang_up", id=2).reply()).status == 200


@each("revision", LEGACY[1:])
@in_loop
async def test_the_server_does_not_disconnect_a_client_that_cannot_resume(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        opened = session.call("hang_up")
        await served.handler.entered.wait()
        served.handler.go.set()
        assert (await opened.reply()).text == "waited"
        served.handler.go.clear()
        modern = served.call("hang_up")
        await run_loop()
        served.handler.go.set()
        assert (await modern.reply()).text == "waited"


# Changes


@each("revision", LEGACY)
@in_loop
async def test_the_standalone_stream_has_changes_of_lists_and_of_subscribed_resources(revision: str) -> None:
    async with serving() as served:
        session, other = await served.session(revision), await served.session(revision)
        stream, others = await session.listening(), await other.listening()
        assert (await session.ask("resources/subscribe", {"uri": "a://1"}).reply()).json["result"] == {}
        assert (await session.ask("resources/subscribe", {"uri": "a://2"}).reply()).status == 200
        assert (await session.ask("resources/unsubscribe", {"uri": "a://2"}).reply()).status == 200
        changes = served.app.config.changes
        changes.resource_updated("a://1")
        changes.resource_updated("a://2")
        changes.tools_changed()
        last_change = [await stream.next_message(), await stream.next_message()]
        assert [each["method"].split("/", 1)[1] for each in last_change] == ["resources/updated", "tools/list_changed"]
        assert last_change[0]["params"]["uri"] == "a://1"
        assert (await others.next_message())["method"] == "notifications/tools/list_changed"
        assert stream.arrived() == others.arrived() == []


@in_loop
async def test_a_later_subscription_is_served_on_the_open_stream() -> None:
    async with serving() as served:
        session = await served.session()
        stream = await session.listening()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        await served.call("change", {"uri": "a://1"}).reply()
        assert (await stream.next_message())["params"]["uri"] == "a://1"


@in_loop
async def test_a_new_standalone_stream_replaces_the_earlier_one() -> None:
    async with serving() as served:
        session = await served.session()
        first = await session.listening()
        second = await session.listening()
        await first.rest()
        await first.done()
        served.app.config.changes.tools_changed()
        assert (await second.next_message())["method"] == "notifications/tools/list_changed"
        assert messages(first.arrived()) == []
        assert served.streams == 1


@in_loop
async def test_the_ids_of_events_are_unique_in_a_session() -> None:
    """Two standalone streams of a session begin at the same change."""
    async with serving() as served:
        session = await served.session()
        found: list[str] = []
        for _ in range(3):
            stream = await session.listening()
            found.append(str((await stream.event()).id))
            stream.disconnect()
            await stream.done()
        served.app.config.changes.tools_changed()
        await run_loop()
        for last in [*found]:  # each of the streams is resumed
            stream = await session.listening(last)
            event = await stream.event()
            assert json.loads(event.data)["method"] == "notifications/tools/list_changed"  # type: ignore[arg-type]
            found.append(str(event.id))
            stream.disconnect()
            await stream.done()
        assert len({*found}) == 6
        assert [each.rpartition(".")[0] for each in found[:3]] == [each.rpartition(".")[0] for each in found[3:]]


@in_loop
async def test_missed_changes_are_replayed_exactly() -> None:
    async with serving() as served:
        session = await served.session()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        changes = served.app.config.changes
        stream = await session.listening()
        changes.tools_changed()
        last = next(event for event in [await stream.event(), await stream.event()] if event.data).id
        stream.disconnect()
        await stream.done()
        changes.prompts_changed()
        changes.resource_updated("a://1")
        changes.resource_updated("a://2")
        changes.tools_changed()
        await run_loop()
        again = await session.listening(last)
        changes.resources_changed()
        last_change = [await again.event() for _ in range(4)]
        said = messages(last_change)
        assert [each["method"].split("/", 1)[1] for each in said] == [
            "prompts/list_changed",
            "resources/updated",
            "tools/list_changed",
            "resources/list_changed",
        ]
        assert len(set(ids(last_change))) == 4
        again.disconnect()
        await again.done()
        for at, id in enumerate(ids(last_change)):
            once_more = await session.listening(id)
            rest = [await once_more.event() for _ in range(3 - at)]
            assert messages(rest) == said[at + 1 :]
            assert messages(once_more.arrived()) == []
            once_more.disconnect()
            await once_more.done()


@in_loop
async def test_every_possible_change_is_sent_if_the_missed_ones_are_not_known() -> None:
    async with serving(store=MemoryStore(limits=StoreLimits(backlog=2))) as served:
        session = await served.session()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        stream = await session.listening()
        last = (await stream.event()).id
        stream.disconnect()
        await stream.done()
        for _ in range(3):
            served.app.config.changes.tools_changed()
            await run_loop()
        again = await session.listening(last)
        received = [(await again.next_message())["method"].split("/", 1)[1] for _ in range(4)]
        assert sorted(received) == [
            "prompts/list_changed",
            "resources/list_changed",
            "resources/updated",
            "tools/list_changed",
        ]
        assert messages(again.arrived()) == []


@in_loop
async def test_changes_are_merged_while_a_session_does_not_read() -> None:
    async with serving(limits=typedmcp.Limits(http_stream_buffer_bytes=300)) as served:
        session = await served.session()
        uris = [f"a://{number}" for number in range(20)]
        for uri in uris:
            await session.ask("resources/subscribe", {"uri": uri}).reply()
        stream = await session.listening()
        stream.hold()
        for _ in range(50):
            for uri in uris:
                served.app.config.changes.resource_updated(uri)
            await asyncio.sleep(0)
        await run_loop()
        (held,) = served.app.state.streams
        assert held.size < 1000
        stream.release()
        await run_loop()
        last_change = [each["params"]["uri"] for each in messages(stream.arrived())]
        assert set(last_change) == set(uris)
        assert len(last_change) < 30


@in_loop
async def test_the_standalone_stream_counts_toward_the_limit_of_streams() -> None:
    async with serving(limits=typedmcp.Limits(http_streams=1)) as served:
        one, other = await served.session(), await served.session()
        stream = await one.listening()
        reply = await other.get().reply()
        assert reply.status == 503
        assert "retry-after" in reply.headers
        stream.disconnect()
        await stream.done()
        await other.listening()


@in_loop
async def test_a_get_must_accept_event_streams() -> None:
    async with serving() as served:
        session = await served.session()
        headers = {**session.headers, "accept": "application/json"}
        assert (await served.request("GET", headers)).status == 406


@in_loop
async def test_streams_and_calls_end_with_the_application() -> None:
    async with serving(grace=1000) as served:
        session = await served.session()
        stream, call = await session.listening(), session.call("wait")
        await call.event()
        await served.app.close()
        await stream.rest()
        await call.rest()
        await served.app.open()


@each("run_loop", range(6))
@in_loop
async def test_a_stream_that_the_server_ends_at_once_leaves_nothing_behind(run_loop: int) -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 2)
        for stream in (session.get(), session.get(last), session.call("wait", id=2)):
            for _ in range(run_loop):
                await asyncio.sleep(0)
            stream.cancel()
            with suppress(asyncio.CancelledError):
                await stream.done()


@each("raises", [False, True])
@in_loop
async def test_a_client_that_disconnects_before_a_stream_begins_leaves_nothing_behind(raises: bool) -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 2)
        for stream in (session.get(raises=raises), session.get(last, raises=raises)):
            stream.disconnect()
            await stream.done()


# The state of a session


@in_loop
async def test_the_log_level_of_a_session_applies_to_later_requests() -> None:
    async with serving() as served:
        session, other = await served.session(), await served.session()
        assert (await session.call("log", {"level": "info"}).reply()).is_stream
        assert (await session.ask("logging/setLevel", {"level": "error"}).reply()).json["result"] == {}
        assert not (await session.call("log", {"level": "info"}).reply()).is_stream
        received = messages((await session.call("log", {"level": "error"}).reply()).events)
        assert received[0]["params"]["level"] == "error"
        assert (await other.call("log", {"level": "info"}).reply()).is_stream


@in_loop
async def test_a_session_continues_after_it_was_forgotten_here() -> None:
    async with serving() as served:
        session = await served.session("2025-06-18", ASKS)
        await session.ask("logging/setLevel", {"level": "error"}).reply()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        served.app.sessions.forget_all()
        assert not (await session.call("log", {"level": "info"}).reply()).is_stream
        stream = await session.listening()
        served.app.config.changes.resource_updated("a://1")
        assert (await stream.next_message())["params"]["uri"] == "a://1"
        call = session.call("roots")
        asked = await call.next_message()
        await session.answer(asked["id"], result={"roots": [{"uri": "file:///a"}]})
        assert (await call.reply()).text == "file:///a"


@in_loop
async def test_idle_sessions_are_forgotten_although_older_ones_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_CACHED_SESSIONS", 20)
    async with serving() as served:
        busy = [await served.session("2025-06-18") for _ in range(15)]
        streams = [await session.listening() for session in busy]
        kept = served.app.sessions.loaded
        for _ in range(30):
            await served.session("2025-06-18")
        assert len(kept) <= 20
        assert sum(stored.outlet.stream is not None for stored in kept.values()) == len(streams)


@in_loop
async def test_sessions_that_have_been_idle_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        busy = await served.session("2025-06-18")
        await busy.listening()
        for _ in range(5):
            await served.session("2025-06-18")
        kept = served.app.sessions.loaded
        monkeypatch.setattr(session_module, "_IDLE_SECONDS", 0.0)
        last = await served.session("2025-06-18")
        assert {stored.outlet.stream is not None for stored in kept.values()} == {True, False}
        assert len(kept) == 2
        assert (await last.call("echo", {"text": "a"}).reply()).text == "a"


# Requests to the client


ASKED: list[tuple[str, str, dict[str, Any], str]] = [
    ("name", "elicitation/create", FORM, "accept {'name': 'Ann'}"),
    (
        "sample",
        "sampling/createMessage",
        {"role": "assistant", "model": "m", "content": {"type": "text", "text": "!"}},
        "!",
    ),
    ("roots", "roots/list", {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]}, "file:///a file:///b"),
]


@each("name, method, result, text", ASKED, ids=[row[0] for row in ASKED])
@each("revision", LEGACY)
@in_loop
async def test_a_request_to_the_client_comes_on_the_stream_of_the_call(
    revision: str, name: str, method: str, result: Any, text: str
) -> None:
    if name == "name" and revision < "2025-06-18":
        return
    async with serving() as served:
        session = await served.session(revision, ASKS)
        listening = await session.listening()
        call = session.call(name)
        asked = await call.next_message()
        assert asked["method"] == method
        reply = await session.answer(asked["id"], result=result)
        assert (reply.status, reply.body) == (202, b"")
        assert (await call.reply()).text == text
        assert messages(listening.arrived()) == []


@in_loop
async def test_an_error_of_the_client_ends_the_call() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        wrongs: list[dict[str, Any]] = [
            {"error": {"code": -1, "message": "no"}},
            {"result": {"action": "x"}},
            {"result": {}},
        ]
        for wrong in wrongs:
            call = session.call("name")
            asked = await call.next_message()
            assert (await session.answer(asked["id"], **wrong)).status == 202
            assert (await call.reply()).code in (-1, -32603)


@in_loop
async def test_a_response_is_taken_once_and_only_in_its_own_session() -> None:
    async with serving() as served:
        session, other = await served.session(capabilities=ASKS), await served.session(capabilities=ASKS)
        call = session.call("name")
        id = str((await call.next_message())["id"])
        worker, nonce, number = id.split(".")
        for foreign in (
            id,
            f"{worker}.{nonce}.99",
            f"{worker}.x.{number}",
            "x",
            f"x.{nonce}.{number}",
            1,
            "1",
            "..",
            f"{worker}.{nonce}.",
        ):
            if foreign != id:
                await session.answer(foreign, result=FORM)
            await other.answer(foreign, result=FORM)
        assert (await session.answer(f"{worker}.{nonce}.{'9' * 5000}", result=FORM)).status in (202, 400)
        assert not call.is_complete
        assert (await session.answer(id, result=FORM)).status == 202
        assert (await session.answer(id, result={"action": "decline"})).status in (202, 400)
        assert (await call.reply()).text == "accept {'name': 'Ann'}"
        assert set(served.kinds) <= {"unexpected response", "late message"}


@in_loop
async def test_a_missed_request_to_the_client_can_be_answered_after_resuming() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        call = session.call("name")
        first = await call.event()
        call.disconnect()
        again = session.get(first.id)
        asked = await again.next_message()
        await session.answer(asked["id"], result=FORM)
        assert messages(await again.rest())[-1]["result"]["content"][0]["text"] == "accept {'name': 'Ann'}"


@in_loop
async def test_a_request_to_the_client_is_cancelled_with_its_call() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        call = session.call("name", id=7)
        asked = await call.next_message()
        await session.notify("notifications/cancelled", {"requestId": 7})
        await call.done()
        await served.assert_settled()
        assert (await session.answer(asked["id"], result=FORM)).status in (202, 400)


@in_loop
async def test_a_client_without_the_capability_is_not_asked() -> None:
    async with serving() as served:
        session = await served.session()
        reply = await session.call("name").reply()
        assert (reply.status, reply.code) == (200, -32600)


@in_loop
async def test_a_request_to_the_client_fails_at_the_limit_of_streams() -> None:
    async with serving(limits=typedmcp.Limits(http_streams=1)) as served:
        session = await served.session("2025-06-18", ASKS)
        await session.listening()
        assert (await session.call("name").reply()).code == -32603


class Twice(ToolHandler):
    async def twice(self, ctx: Any) -> Any:
        responses: Any = ctx.params.input_responses
        if responses:
            return f"{ctx.params.request_state} {sorted(responses)}"
        schema = structs.from_builtins(
            {"type": "object", "properties": {}}, structs.ElicitRequestFormParamsRequestedSchema
        )
        question = structs.ElicitRequest(params=structs.ElicitRequestFormParams(message="?", requested_schema=schema))
        return structs.InputRequiredResult(
            result_type="input_required",
            input_requests={"a": question, "b": structs.ListRootsRequest()},
            request_state="s",
        )


@in_loop
async def test_all_input_is_requested_before_the_handler_is_called_again() -> None:
    async with serving(Twice()) as served:
        session = await served.session("2025-06-18", ASKS)
        call = session.call("twice")
        for _ in range(2):
            asked = await call.next_message()
            result: Any = FORM if asked["method"] == "elicitation/create" else {"roots": []}
            await session.answer(asked["id"], result=result)
        assert (await call.reply()).text == "s ['a', 'b']"


@in_loop
async def test_a_client_can_disconnect_and_resume_while_it_is_asked() -> None:
    async with serving(Twice()) as served:
        session = await served.session("2025-06-18", ASKS)
        call = session.call("twice")
        first = await call.event()
        call.disconnect()
        again = session.get(first.id)
        second = await again.next_message()
        for asked in (json.loads(first.data), second):  # type: ignore[arg-type]
            result: Any = FORM if asked["method"] == "elicitation/create" else {"roots": []}
            await session.answer(asked["id"], result=result)
        assert messages(await again.rest())[-1]["result"]["content"][0]["text"] == "s ['a', 'b']"
        await call.done()


# Batches


def batch(*parts: bytes) -> bytes:
    return b"[" + b",".join(parts) + b"]"


def calling(id: Any, name: str, **arguments: Any) -> bytes:
    return message(id=id, method="tools/call", params={"name": name, "arguments": arguments})


@in_loop
async def test_a_batch_gets_one_response() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        parts = [
            calling(1, "echo"),
            calling("1", "turn"),
            message(method="notifications/x"),
            message(id=3, method="x/y"),
            b"7",
        ]
        reply = await session.post(batch(*parts)).reply()
        assert reply.status == 200
        found = {each.get("id"): each for each in reply.json}
        assert set(found) == {1, "1", 3, None}
        assert found[1]["result"]["content"][0]["text"] == "echo"
        assert found["1"]["result"]["content"][0]["text"] == "turned"
        assert (found[3]["error"]["code"], found[None]["error"]["code"]) == (-32601, -32600)


@each(
    "parts",
    [
        [message(method="notifications/cancelled", params={"requestId": 9})],
        [message(id="x", result={})],
        [message(method="notifications/roots/list_changed"), message(id=1, error={"code": 1, "message": ""})],
    ],
)
@in_loop
async def test_a_batch_without_requests_is_accepted(parts: list[bytes]) -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        reply = await session.post(batch(*parts)).reply()
        assert (reply.status, reply.body) == (202, b"")


@in_loop
async def test_messages_of_a_batch_come_before_its_responses() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26", ASKS)
        report = message(id=1, method="tools/call", params={"name": "report", "_meta": {"progressToken": 1}})
        opened = session.post(batch(report, calling(2, "roots")))
        while (said := await opened.next_message()).get("method") != "roots/list":
            assert said["method"] == "notifications/progress"
        await session.answer(said["id"], result={"roots": []})
        *_, answers = messages(await opened.rest())
        assert {each["id"] for each in answers} == {1, 2}
        await opened.done()


@in_loop
async def test_requests_in_a_batch_can_be_cancelled() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        opened = session.post(batch(calling(1, "wait"), calling(2, "stubborn"), calling(3, "echo")))
        await served.handler.entered.wait()
        await asyncio.sleep(0)
        await session.notify("notifications/cancelled", {"requestId": 1})
        assert not opened.is_complete
        served.handler.go.set()
        assert {each["id"] for each in (await opened.reply()).json} == {2, 3}
        served.handler.go.clear()
        served.handler.entered.clear()
        opened = session.post(batch(calling(1, "wait")))
        await served.handler.entered.wait()
        await session.notify("notifications/cancelled", {"requestId": 1})
        await opened.done()
        assert messages(opened.arrived()) == []
        await served.assert_settled()


@in_loop
async def test_a_batch_continues_after_the_client_disconnects() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        opened = session.post(batch(calling(1, "wait"), calling(2, "wait")))
        await served.handler.entered.wait()
        opened.disconnect()
        served.handler.go.set()
        await opened.done()
        assert served.handler.ended == ["answered", "answered"]


@each("revision", [each for each in LEGACY if each != "2025-03-26"])
@in_loop
async def test_other_revisions_reject_batches(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        reply = await session.post(batch(calling(1, "echo"))).reply()
        assert (reply.status, reply.code) == (400, -32600)
        assert "id" not in reply.json


@in_loop
async def test_a_batch_beyond_the_limit_is_rejected() -> None:
    async with serving(limits=typedmcp.Limits(batch_messages=3)) as served:
        session = await served.session("2025-03-26")
        assert (await session.post(batch(*[message(id=n, method="ping") for n in range(3)])).reply()).status == 200
        assert (await session.post(batch(*[message(id=n, method="ping") for n in range(4)])).reply()).status == 400


# Without sessions


@each("revision", LEGACY)
@in_loop
async def test_legacy_revisions_can_be_served_without_sessions(revision: str) -> None:
    async with serving(sessions=False) as served:
        reply = await served.post(initialize(revision, capabilities=ASKS))
        assert (reply.status, reply.json["result"]["protocolVersion"]) == (200, revision)
        assert "mcp-session-id" not in reply.headers
        headers = {"mcp-protocol-version": revision}
        assert (await served.post(message(method="notifications/initialized"), headers)).status == 202
        for name in ("echo", "turn"):
            reply = await served.post(calling(1, name), headers)
            assert (reply.status, reply.is_stream) == (200, False)
            assert "resultType" not in reply.json["result"]
        assert (await served.post(message(id=1, method="ping"), headers)).json["result"] == {}
        reply = await served.post(calling(1, "roots"), headers)
        assert (reply.status, reply.code) == (200, -32600)
        progress = {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}}
        reply = await served.post(message(id=1, method="tools/call", params=progress), headers)
        assert [each.get("method") for each in messages(reply.events)][-2:] == ["notifications/progress", None]
        assert all(event.id is None for event in reply.events)
        for method in ("GET", "DELETE"):
            reply = await served.request(method, {**headers, "mcp-session-id": "x"})
            assert (reply.status, reply.headers["allow"]) == (405, "POST")


@each("revision", LEGACY)
@in_loop
async def test_without_sessions_nothing_is_promised_that_cannot_come(revision: str) -> None:
    server = typedmcp.Server("promising")

    @server.resource("test://value")
    def value() -> str:
        return "value"

    @server.tool
    async def ask(ctx: typedmcp.Context) -> str:
        return (await ctx.elicit("Go on?", bool)).action

    async with serving(server, sessions=False) as served:
        reply = await served.post(initialize(revision, capabilities=ASKS))
        declared = reply.json["result"]["capabilities"]
        assert (declared["tools"], declared["resources"]) == ({}, {})
        headers = {"mcp-protocol-version": revision}
        subscribe = message(id=1, method="resources/subscribe", params={"uri": "test://value"})
        assert (await served.post(subscribe, headers)).code == -32601
        error = (await served.post(calling(1, "ask"), headers)).json["error"]
        assert (error["code"], "sessions=False" in error["message"]) == (-32600, True)


@in_loop
async def test_without_sessions_no_client_is_asked_for_input() -> None:
    async with serving(sessions=False) as served:
        meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
        params = {"name": "roots", "arguments": {}, "_meta": meta}
        reply = await served.post(message(id=1, method="tools/call", params=params), {"mcp-protocol-version": PRIMED})
        assert "error" in reply.answer


@in_loop
async def test_without_a_session_and_a_version_header_the_revision_is_2025_03_26() -> None:
    async with serving(sessions=False) as served:
        reply = await served.post(batch(calling(1, "echo"), calling(2, "turn")))
        assert {each["id"] for each in reply.json} == {1, 2}


@each("version", ["1999-01-01", "", "x"])
@in_loop
async def test_without_sessions_unknown_versions_are_rejected(version: str) -> None:
    async with serving(sessions=False) as served:
        reply = await served.post(calling(1, "echo"), {"mcp-protocol-version": version})
        assert reply.status == 400
        assert reply.code in (-32020, -32022)


@in_loop
async def test_without_sessions_calls_are_cancelled_when_the_client_disconnects() -> None:
    async with serving(sessions=False) as served:
        for content in (calling(1, "wait"), batch(calling(1, "wait"))):
            served.handler.entered.clear()
            opened = served.open("POST", {}, content)
            await served.handler.entered.wait()
            opened.disconnect()
            await opened.done()
        assert served.handler.ended == ["cancelled", "cancelled"]


@in_loop
async def test_without_sessions_a_body_must_not_name_a_modern_revision() -> None:
    async with serving(sessions=False) as served:
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        content = message(id=1, method="tools/call", params={"name": "echo", "_meta": meta})
        reply = await served.post(content, {"mcp-protocol-version": PRIMED})
        assert (reply.status, reply.code) == (400, -32020)


# Threads


class Threaded:
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        ctx.progress(1)
        return structs.CallToolResult(content=[structs.TextContent(text=params.name)], result_type="complete")


@each("revision", LEGACY)
@in_loop
async def test_handlers_in_threads_serve_sessions(revision: str) -> None:
    async with serving(Threaded()) as served:
        session = await served.session(revision)
        reply = await session.call("a", meta={"progressToken": 1}).reply()
        assert reply.text == "a"
        assert [each.get("method") for each in messages(reply.events)] == ["notifications/progress", None]


@in_loop
async def test_concurrent_calls_of_many_sessions_get_their_own_responses() -> None:
    async with serving() as served:
        sessions = [await served.session(LEGACY[number % len(LEGACY)]) for number in range(20)]
        calls = [
            session.call("wait", {"text": f"{at} {number}"}, id=number)
            for at, session in enumerate(sessions)
            for number in range(10)
        ]
        await served.handler.entered.wait()
        served.handler.go.set()
        replies = [await call.reply() for call in calls]
        assert [reply.text for reply in replies] == [f"{at} {number}" for at in range(20) for number in range(10)]
        assert [reply.answer["id"] for reply in replies] == [number for _ in range(20) for number in range(10)]


@in_loop
async def test_a_call_ends_without_a_reader_and_without_a_store() -> None:
    now = 0.0
    async with serving(store=MemoryStore(limits=StoreLimits(ttl=10.0), clock=lambda: now)) as served:
        session = await served.session()
        call = session.call("report_and_wait", meta={"progressToken": 1})
        await served.handler.entered.wait()
        call.disconnect()
        now = 11.0
        served.handler.go.set()
        await call.done()


@in_loop
async def test_a_client_description_beyond_the_limit_is_rejected() -> None:
    async with serving() as served:
        client = {"name": "n" * (1 << 17), "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        assert (await served.post(message(id=0, method="initialize", params=params))).status == 413


@in_loop
async def test_a_subscription_to_a_uri_that_is_too_long_is_rejected() -> None:
    async with serving() as served:
        session = await served.session()
        assert (await session.ask("resources/subscribe", {"uri": "a:" + "x" * 9000}).reply()).code == -32602
        listener = served.listen(resourceSubscriptions=["a:" + "x" * 9000, "a:1"])
        assert (await listener.next_message())["params"]["notifications"] == {"resourceSubscriptions": ["a:1"]}


def test_an_application_without_a_lifespan_reopens_in_another_loop() -> None:
    served = make_served()

    async def call() -> str:
        reply = await served.call("echo", {"text": "hello"}).reply()
        await served.app.state.store.close()
        return reply.text

    assert [asyncio.run(call()) for _ in range(2)] == ["hello", "hello"]


# The fast path


@each("revision", [revision for revision in (MODERN_REVISION, *LEGACY) if revision > "2025-03-26"])
@each(
    "method, params",
    [
        ("tools/call", {"name": "echo", "arguments": {"text": "a"}}),
        ("prompts/get", {"name": "greet"}),
        ("resources/read", {"uri": "note://1"}),
        ("tools/list", {}),
    ],
)
@in_loop
async def test_a_request_like_an_earlier_one_takes_the_fast_path(
    method: str, params: dict[str, Any], revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that leaves the fast path is decoded again, and takes half as long again."""
    async with serving() as served:
        await served.call("echo").reply()  # reads the list of tools
        ask = served.ask if revision == MODERN_REVISION else (await served.session(revision)).ask
        await ask(method, params).reply()
        slow: list[bytes] = []

        def dispatch(_: SlowPath, body: bytes, channel: object) -> None:
            slow.append(body)

        monkeypatch.setattr(SlowPath, "dispatch", dispatch)
        reply = await ask(method, params).reply()
        assert "result" in reply.json
        assert not slow


# Damaged sessions


@each(
    "changes",
    [
        {"client": None},
        {"client": "{"},
        {"client": "[]"},
        {"client": "{}"},
        {"client": '{"revision": "1999-01-01", "meta": {}}'},
        {"client": f'{{"revision": "{MODERN_REVISION}", "meta": {{}}}}'},
        {"client": f'{{"revision": "{PRIMED}", "meta": []}}'},
        {"client": f'{{"revision": "{PRIMED}", "meta": {{"io.modelcontextprotocol/clientCapabilities": 7}}}}'},
        {"level": "loud"},
    ],
    ids=str,
)
@each("is_known", [False, True])
@in_loop
async def test_a_damaged_session_is_not_found_and_reported(changes: dict[str, str | None], is_known: bool) -> None:
    async with serving() as served:
        session = await served.session()
        await served.app.state.store.update_session(session.id, changes)
        if not is_known:
            served.app.sessions.forget_all()
        for _ in range(2):
            assert (await session.call("echo").reply()).status == 404
        assert (await session.get().reply()).status == 404
        assert served.kinds == ["invalid data"] * 3
        assert "a stored session is damaged" in served.reports[0].text
        assert (await (await served.session()).call("echo").reply()).text == "echo"


@in_loop
async def test_a_stored_session_without_a_log_level_wants_no_log_messages() -> None:
    async with serving() as served:
        session = await served.session()
        await served.app.state.store.update_session(session.id, {"level": None})
        served.app.sessions.forget_all()
        assert (await session.call("echo").reply()).status == 200
        assert not served.kinds
