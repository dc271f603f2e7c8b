"""HTTP with sessions, as the revisions up to 2025-11-25 have it, and those revisions without sessions."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

import typedmcp
from tests.runtime.asgi_driver import (
    Open,
    Served,
    Session,
    Workshop,
    in_loop,
    message,
    messages,
    served_app,
    serving,
    turns,
    verify,
)
from typedmcp import Auth, MemoryStore
from typedmcp.dialect import structs
from typedmcp.edge.revisions import DIALECT, LEGACY
from typedmcp.http.exchange import Exchange
from typedmcp.http.sse import Event

CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
PRIMED = "2025-11-25"
ASKS: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
FORM = {"action": "accept", "content": {"name": "Ann"}}


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def initialize(revision: str, **members: Any) -> bytes:
    return message(id=0, method="initialize", params={**CLIENT, "protocolVersion": revision, **members})


def ids(events: list[Event]) -> list[str]:
    """The ids of events that say something."""
    return [str(event.id) for event in events if event.data]


def auth() -> Auth:
    return Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])


# Beginning and ending


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_a_session_begins_with_initialize_and_is_named(revision: str) -> None:
    async with serving() as served:
        reply = await served.post(initialize(revision))
        assert reply.status == 200
        assert reply.json["id"] == 0
        assert reply.json["result"]["protocolVersion"] == revision
        id = reply.headers["mcp-session-id"]
        assert all(0x21 <= ord(character) <= 0x7E for character in id)
        assert len(id) >= 32
        session = Session(served, revision, id, None)
        assert (await session.tell("notifications/initialized")).status == 202
        reply = await session.call("echo", {"text": "a"}, id="x").reply()
        assert (reply.status, reply.text, reply.json["id"]) == (200, "a", "x")
        assert "resultType" not in reply.json["result"]
        assert "mcp-session-id" not in reply.headers


@in_loop
async def test_no_two_sessions_have_one_name() -> None:
    async with serving() as served:
        assert len({(await served.session()).id for _ in range(50)}) == 50


@in_loop
async def test_an_unknown_revision_is_answered_with_the_newest_that_has_sessions() -> None:
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


@pytest.mark.parametrize(("content", "status"), [row[1:] for row in BEFORE], ids=[row[0] for row in BEFORE])
@in_loop
async def test_nothing_but_initialize_begins_a_session(content: bytes, status: int) -> None:
    async with serving() as served:
        reply = await served.post(content)
        assert reply.status == status
        assert "error" in reply.json
        assert "mcp-session-id" not in reply.headers


@in_loop
async def test_requests_wait_for_initialized() -> None:
    async with serving() as served:
        session = await served.session(ready=False)
        reply = await session.call("echo").reply()
        assert (reply.status, reply.code, reply.json["id"]) == (400, -32600, 1)
        assert (await session.ask("ping").reply()).json["result"] == {}
        assert (await session.get().reply()).status == 400
        reply = await session.post(initialize(PRIMED)).reply()
        assert reply.code == -32600
        assert "mcp-session-id" not in reply.headers
        assert (await session.tell("notifications/initialized")).status == 202
        assert (await session.call("echo").reply()).text == "echo"
        assert (await session.post(initialize(PRIMED)).reply()).code == -32600


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@in_loop
async def test_only_those_who_name_the_session_are_in_it(method: str) -> None:
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


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("token", ["bob", "Ann", "ann2"])
@in_loop
async def test_a_session_is_its_principals_alone(method: str, token: str) -> None:
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
async def test_a_session_that_was_deleted_is_gone() -> None:
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
        await served.settled()
        for again in (session.call("echo"), session.get(), session.get("all.0")):
            assert (await again.reply()).status == 404
        assert (await session.delete()).status == 404
        assert (await served.session()).id != session.id


@in_loop
async def test_a_session_that_was_deleted_leaves_no_call_without_a_stream_behind() -> None:
    async with serving() as served:
        session = await served.session("2025-06-18")
        call = session.call("wait")
        await served.handler.entered.wait()
        assert (await session.delete()).status == 204
        await call.reply()
        assert served.handler.ended == ["cancelled"]


@in_loop
async def test_a_session_that_nobody_uses_ends() -> None:
    clock = Clock()
    async with serving(store=MemoryStore(ttl=100, clock=clock)) as served:
        one, other = await served.session(), await served.session()
        clock.now = 99
        assert (await one.call("echo").reply()).status == 200
        clock.now = 101
        assert (await one.call("echo").reply()).status == 200
        assert (await other.call("echo").reply()).status == 404
        clock.now = 300
        assert (await one.get().reply()).status == 404


@in_loop
async def test_an_open_stream_keeps_its_session() -> None:
    clock = Clock()
    async with serving(store=MemoryStore(ttl=100, clock=clock), keep_alive=0.01) as served:
        session = await served.session()
        stream = await session.listening()
        for _ in range(4):
            clock.now += 60
            seen = len(stream.sent)
            await stream.until(lambda seen=seen: len(stream.sent) > seen + 2)  # type: ignore[misc]
        assert (await session.call("echo").reply()).status == 200


@in_loop
async def test_as_many_sessions_begin_as_there_may_be() -> None:
    clock = Clock()
    async with serving(store=MemoryStore(sessions=2, ttl=100, clock=clock)) as served:
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


@pytest.mark.parametrize(("version", "status"), VERSIONS)
@in_loop
async def test_the_version_of_a_request_in_a_session_must_be_one_that_has_them(version: Any, status: int) -> None:
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
async def test_a_body_must_not_say_it_is_of_another_revision() -> None:
    async with serving() as served:
        session = await served.session()
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": DIALECT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        reply = await session.call("echo", meta=meta).reply()
        assert (reply.status, reply.code) == (400, -32020)


@in_loop
async def test_methods_that_nobody_needs_are_refused() -> None:
    async with serving() as served:
        session = await served.session()
        for method in ("PUT", "PATCH", "OPTIONS", "HEAD", "get"):
            reply = await served.request(method, session.headers)
            assert (reply.status, reply.headers["allow"]) == (405, "GET, POST, DELETE")


# Errors and answers


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_errors_of_handlers_are_answers_like_others(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        reply = await session.call("fail").reply()
        assert (reply.status, reply.code) == (200, -32603)
        assert b"secret" not in reply.body
        reply = await session.ask("x/y").reply()
        assert reply.code == -32601
        reply = await session.ask("tools/call", {"name": 3}).reply()
        assert reply.code == -32602


@pytest.mark.parametrize(
    "content",
    [b"", b"  ", b"{", b"3", message(id=None, method="tools/list"), b"[]", b"[" + message(id=1, method="ping") + b"]"],
)
@in_loop
async def test_what_is_no_message_is_refused(content: bytes) -> None:
    async with serving() as served:
        reply = await (await served.session()).post(content).reply()
        assert reply.status == 400
        assert "id" not in reply.json


@in_loop
async def test_an_id_that_is_in_flight_is_not_answered_twice() -> None:
    async with serving() as served:
        session = await served.session()
        first = session.call("wait", id=1)
        await served.handler.entered.wait()
        reply = await session.call("echo", id=1).reply()
        assert reply.status == 400
        assert "id" not in reply.json
        assert served.kinds == ["duplicate"]
        other = await served.session()
        assert (await other.call("echo", id=1).reply()).text == "echo"
        assert (await session.call("echo", id="1").reply()).text == "echo"
        served.handler.go.set()
        assert (await first.reply()).text == "waited"
        assert (await session.call("echo", id=1).reply()).text == "echo"


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_a_call_that_waits_has_a_stream_where_the_revision_can_begin_one(revision: str) -> None:
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


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_what_a_call_tells_comes_on_its_stream_with_ids(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        listening = await session.listening()
        reply = await session.call("report", meta={"progressToken": "t"}).reply()
        said = [event for event in reply.events if event.data]
        assert [json.loads(event.data).get("method") for event in said] == [*["notifications/progress"] * 2, None]  # type: ignore[arg-type]
        assert len({event.id for event in said}) == 3
        assert None not in {event.id for event in said}
        assert messages(listening.arrived()) == []


# Cancelling, leaving


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_a_call_ends_when_it_is_cancelled(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        for name in ("wait", "stubborn"):
            served.handler.entered.clear()
            opened = session.call(name, id=name)
            await served.handler.entered.wait()
            assert (await session.tell("notifications/cancelled", {"requestId": name})).status == 202
            await opened.done()
            assert opened.is_complete
            assert messages(opened.arrived()) == []
        assert served.handler.ended == ["cancelled", "kept on"]
        await served.settled()
        assert (await session.tell("notifications/cancelled", {"requestId": "wait"})).status == 202
        assert served.kinds == ["unknown"]


@in_loop
async def test_who_cancels_cancels_nothing_of_others() -> None:
    async with serving() as served:
        one, other = await served.session(), await served.session()
        opened = one.call("wait", id=1)
        await served.handler.entered.wait()
        assert (await other.tell("notifications/cancelled", {"requestId": 1})).status == 202
        served.handler.go.set()
        assert (await opened.reply()).text == "waited"


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_a_connection_that_breaks_cancels_nothing(revision: str, raises: bool) -> None:
    async with serving() as served:
        session = await served.session(revision)
        opened = session.call("report_and_wait", meta={"progressToken": 1}, raises=raises)
        await served.handler.entered.wait()
        opened.disconnect()
        await asyncio.sleep(0)
        served.handler.go.set()
        await opened.done()
        assert served.handler.ended == ["answered"]
        await served.settled()


# Going on


async def broken(session: Session, served: Served, after: int, **options: Any) -> tuple[Open, str]:
    """A call whose connection breaks after so many events, and the id of the last of them."""
    opened = session.call("report_and_wait", {"steps": 3}, meta={"progressToken": 1}, **options)
    last = ""
    for _ in range(after):
        event = await opened.event()
        last = event.id or last
    await served.handler.entered.wait()
    opened.disconnect()
    return opened, last


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", PRIMED])
@in_loop
async def test_from_every_position_the_rest_of_a_stream_comes_exactly_once(revision: str, is_over: bool) -> None:
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
        rest: list[Event] = []
        for at, each in enumerate(resumed):
            rest = (await each.reply()).events
            *told, answer = messages(rest)
            assert [said["params"]["progress"] for said in told] == [*range(at + 1 - primed, 3)]
            assert answer["result"]["content"][0]["text"] == "waited"
            assert ids(rest)[:-1] == positions[at + 1 :]
        after = await session.get(ids(rest)[-1]).reply()
        assert messages(after.events) == []
        assert after.status == 200


@in_loop
async def test_a_stream_may_break_again_and_again() -> None:
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
async def test_a_stream_that_goes_on_shows_it_before_anything_happens() -> None:
    async with serving(keep_alive=0.02) as served:
        session = await served.session()
        _, last = await broken(session, served, 4)
        again = session.get(last)
        async with asyncio.timeout(4):
            assert await again.head() == 200
            await again.until(lambda: len(again.sent) > 3)
        again.disconnect()
        await again.done()
        again = session.get(last)
        served.handler.go.set()
        assert (await again.reply()).text == "waited"


@in_loop
async def test_who_leaves_while_going_on_is_forgotten() -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 4)
        again = session.get(last)
        await turns()
        again.disconnect()
        async with asyncio.timeout(4):
            await again.done()


class Paced(Workshop):
    async def paced(self, ctx: Any) -> str:
        await self.go.wait()
        for step in range(3):
            ctx.progress(step)
            await asyncio.sleep(0.001)
        return "paced"


@in_loop
async def test_what_a_stuck_connection_does_not_take_comes_on_another() -> None:
    async with serving(Paced()) as served:
        session = await served.session()
        opened = session.call("paced", meta={"progressToken": 1})
        first = await opened.event()
        opened.hold()
        served.handler.go.set()
        again = session.get(first.id)
        async with asyncio.timeout(4):
            reply = await again.reply()
        assert reply.text == "paced"
        assert len(messages(reply.events)) == 4
        opened.disconnect()


@in_loop
async def test_a_call_that_was_cancelled_ends_for_those_who_come_back() -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 2)
        again = session.get(last)
        await again.head()
        await session.tell("notifications/cancelled", {"requestId": 1})
        told = messages((await again.reply()).events)
        assert [each["params"]["progress"] for each in told] == [1, 2]


UNKNOWN = [
    "x",
    "x.1",
    ".",
    ".1",
    "x.",
    "all.x",
    "all.",
    "all.-1",
    "all.1.5",
    "all.²",
    "all." + "9" * 30,
    "all." + "9" * 5000,
    "x.99999999999999999",
    "x." + "9" * 5000,
    "ü",
]


@pytest.mark.parametrize("last", UNKNOWN, ids=lambda last: repr(last[:20]))
@in_loop
async def test_an_event_that_never_was_is_no_place_to_go_on_from(last: str) -> None:
    async with serving() as served:
        session = await served.session()
        reply = session.get(last)
        if last.startswith("all.9"):  # perhaps of another time: everything may have changed
            assert await reply.head() in (200, 400)
            return
        assert await reply.head() == 400


@in_loop
async def test_streams_of_others_are_no_place_to_go_on_from() -> None:
    async with serving() as served:
        one, other = await served.session(), await served.session()
        _, last = await broken(one, served, 2)
        assert (await other.get(last).reply()).status == 400
        name, _, number = last.rpartition(".")
        assert (await one.get(f"{name}.{int(number) + 50}").reply()).status == 400
        twice = [*((k.encode(), v.encode()) for k, v in one.headers.items()), *[(b"last-event-id", last.encode())] * 2]
        assert (await served.request("GET", twice)).status == 400


@in_loop
async def test_a_stream_of_which_too_little_is_kept_cannot_go_on() -> None:
    async with serving(store=MemoryStore(events=2)) as served:
        session = await served.session()
        _, last = await broken(session, served, 1)
        await asyncio.sleep(0)
        assert (await session.get(last).reply()).status == 400


@in_loop
async def test_the_server_may_hang_up_and_the_client_comes_back() -> None:
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


@pytest.mark.parametrize("revision", LEGACY[1:])
@in_loop
async def test_where_nobody_could_come_back_the_server_does_not_hang_up(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        opened = session.call("hang_up")
        await served.handler.entered.wait()
        served.handler.go.set()
        assert (await opened.reply()).text == "waited"
        served.handler.go.clear()
        modern = served.call("hang_up")
        await turns()
        served.handler.go.set()
        assert (await modern.reply()).text == "waited"


# Changes


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_the_stream_for_changes_tells_of_lists_and_of_what_was_subscribed_to(revision: str) -> None:
    async with serving() as served:
        session, other = await served.session(revision), await served.session(revision)
        stream, others = await session.listening(), await other.listening()
        assert (await session.ask("resources/subscribe", {"uri": "a://1"}).reply()).json["result"] == {}
        assert (await session.ask("resources/subscribe", {"uri": "a://2"}).reply()).status == 200
        assert (await session.ask("resources/unsubscribe", {"uri": "a://2"}).reply()).status == 200
        changes = served.app.service.changes
        changes.resource_updated("a://1")
        changes.resource_updated("a://2")
        changes.tools_changed()
        heard = [await stream.said(), await stream.said()]
        assert [each["method"].split("/", 1)[1] for each in heard] == ["resources/updated", "tools/list_changed"]
        assert heard[0]["params"]["uri"] == "a://1"
        assert (await others.said())["method"] == "notifications/tools/list_changed"
        assert stream.arrived() == others.arrived() == []


@in_loop
async def test_who_subscribes_later_hears_on_the_stream_that_is_open() -> None:
    async with serving() as served:
        session = await served.session()
        stream = await session.listening()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        await served.call("change", {"uri": "a://1"}).reply()
        assert (await stream.said())["params"]["uri"] == "a://1"


@in_loop
async def test_a_newer_stream_takes_the_place_of_the_older() -> None:
    async with serving() as served:
        session = await served.session()
        first = await session.listening()
        second = await session.listening()
        await first.rest()
        await first.done()
        served.app.service.changes.tools_changed()
        assert (await second.said())["method"] == "notifications/tools/list_changed"
        assert messages(first.arrived()) == []
        assert served.streams == 1


@in_loop
async def test_what_was_missed_is_told_exactly() -> None:
    async with serving() as served:
        session = await served.session()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        changes = served.app.service.changes
        stream = await session.listening()
        changes.tools_changed()
        last = next(event for event in [await stream.event(), await stream.event()] if event.data).id
        stream.disconnect()
        await stream.done()
        changes.prompts_changed()
        changes.resource_updated("a://1")
        changes.resource_updated("a://2")
        changes.tools_changed()
        await turns()
        again = await session.listening(last)
        changes.resources_changed()
        heard = [await again.event() for _ in range(5)]
        said = messages(heard)
        assert [each["method"].split("/", 1)[1] for each in said] == [
            "prompts/list_changed",
            "resources/updated",
            "tools/list_changed",
            "resources/list_changed",
        ]
        assert len(set(ids(heard))) == 4
        again.disconnect()
        await again.done()
        for at, id in enumerate(ids(heard)):
            once_more = await session.listening(id)
            rest = [await once_more.event() for _ in range(4 - at)]
            assert messages(rest) == said[at + 1 :]
            assert messages(once_more.arrived()) == []
            once_more.disconnect()
            await once_more.done()


@in_loop
async def test_where_it_is_not_known_any_more_what_was_missed_all_may_have_changed() -> None:
    async with serving(store=MemoryStore(backlog=2)) as served:
        session = await served.session()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        stream = await session.listening()
        last = (await stream.event()).id
        stream.disconnect()
        await stream.done()
        for _ in range(3):
            served.app.service.changes.tools_changed()
        await turns()
        again = await session.listening(last)
        told = [(await again.said())["method"].split("/", 1)[1] for _ in range(4)]
        assert sorted(told) == [
            "prompts/list_changed",
            "resources/list_changed",
            "resources/updated",
            "tools/list_changed",
        ]
        assert messages(again.arrived()) == []


@in_loop
async def test_a_session_that_does_not_read_hears_of_each_change_once() -> None:
    async with serving(high_water=300) as served:
        session = await served.session()
        uris = [f"a://{number}" for number in range(20)]
        for uri in uris:
            await session.ask("resources/subscribe", {"uri": uri}).reply()
        stream = await session.listening()
        stream.hold()
        for _ in range(50):
            for uri in uris:
                served.app.service.changes.resource_updated(uri)
        await turns()
        (held,) = served.app._streams  # pyright: ignore[reportPrivateUsage]
        assert held.size < 1000
        stream.release()
        await turns()
        heard = [each["params"]["uri"] for each in messages(stream.arrived())]
        assert set(heard) == set(uris)
        assert len(heard) < 30


@in_loop
async def test_the_stream_for_changes_is_one_of_the_streams_that_there_may_be() -> None:
    async with serving(streams=1) as served:
        one, other = await served.session(), await served.session()
        stream = await one.listening()
        reply = await other.get().reply()
        assert reply.status == 503
        assert "retry-after" in reply.headers
        stream.disconnect()
        await stream.done()
        await other.listening()


@in_loop
async def test_a_stream_has_to_be_wanted() -> None:
    async with serving() as served:
        session = await served.session()
        headers = {**session.headers, "accept": "application/json"}
        assert (await served.request("GET", headers)).status == 406


@in_loop
async def test_streams_and_calls_end_with_the_application() -> None:
    async with serving(grace=10) as served:
        session = await served.session()
        stream, call = await session.listening(), session.call("wait")
        await call.event()
        async with asyncio.timeout(4):
            await served.app.close()
            await stream.rest()
            await call.rest()
        await served.app.open()


@pytest.mark.parametrize("turns", range(6))
@in_loop
async def test_a_stream_that_the_server_ends_at_once_leaves_nothing(turns: int) -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 2)
        for stream in (session.get(), session.get(last), session.call("wait", id=2)):
            for _ in range(turns):
                await asyncio.sleep(0)
            stream.cancel()
            with suppress(asyncio.CancelledError):
                await stream.done()


@pytest.mark.parametrize("raises", [False, True])
@in_loop
async def test_who_has_left_before_a_stream_begins_leaves_nothing(raises: bool) -> None:
    async with serving() as served:
        session = await served.session()
        _, last = await broken(session, served, 2)
        for stream in (session.get(raises=raises), session.get(last, raises=raises)):
            stream.disconnect()
            await stream.done()


# What is known of a session


@in_loop
async def test_later_requests_log_from_the_level_that_was_set() -> None:
    async with serving() as served:
        session, other = await served.session(), await served.session()
        assert (await session.call("log", {"level": "info"}).reply()).is_stream
        assert (await session.ask("logging/setLevel", {"level": "error"}).reply()).json["result"] == {}
        assert not (await session.call("log", {"level": "info"}).reply()).is_stream
        told = messages((await session.call("log", {"level": "error"}).reply()).events)
        assert told[0]["params"]["level"] == "error"
        assert (await other.call("log", {"level": "info"}).reply()).is_stream


@in_loop
async def test_sessions_are_known_where_their_objects_were_forgotten() -> None:
    async with serving() as served:
        session = await served.session("2025-06-18", ASKS)
        await session.ask("logging/setLevel", {"level": "error"}).reply()
        await session.ask("resources/subscribe", {"uri": "a://1"}).reply()
        served.app.sessions.engines.clear()  # pyright: ignore[reportPrivateUsage]
        assert not (await session.call("log", {"level": "info"}).reply()).is_stream
        stream = await session.listening()
        served.app.service.changes.resource_updated("a://1")
        assert (await stream.said())["params"]["uri"] == "a://1"
        call = session.call("roots")
        asked = await call.said()
        await session.answer(asked["id"], result={"roots": [{"uri": "file:///a"}]})
        assert (await call.reply()).text == "file:///a"


# Asking the client


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


@pytest.mark.parametrize(("name", "method", "result", "text"), ASKED, ids=[row[0] for row in ASKED])
@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_the_client_is_asked_on_the_stream_of_the_call(
    revision: str, name: str, method: str, result: Any, text: str
) -> None:
    if name == "name" and revision < "2025-06-18":
        return
    async with serving() as served:
        session = await served.session(revision, ASKS)
        listening = await session.listening()
        call = session.call(name)
        asked = await call.said()
        assert asked["method"] == method
        reply = await session.answer(asked["id"], result=result)
        assert (reply.status, reply.body) == (202, b"")
        assert (await call.reply()).text == text
        assert messages(listening.arrived()) == []


@in_loop
async def test_a_refusal_ends_the_call() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        wrongs: list[dict[str, Any]] = [
            {"error": {"code": -1, "message": "no"}},
            {"result": {"action": "x"}},
            {"result": {}},
        ]
        for wrong in wrongs:
            call = session.call("name")
            asked = await call.said()
            assert (await session.answer(asked["id"], **wrong)).status == 202
            assert (await call.reply()).code in (-1, -32603)


@in_loop
async def test_an_answer_counts_once_and_only_from_whom_was_asked() -> None:
    async with serving() as served:
        session, other = await served.session(capabilities=ASKS), await served.session(capabilities=ASKS)
        call = session.call("name")
        id = str((await call.said())["id"])
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
        assert set(served.kinds) <= {"stray", "late"}


@in_loop
async def test_a_question_that_was_missed_can_be_answered_after_coming_back() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        call = session.call("name")
        first = await call.event()
        call.disconnect()
        again = session.get(first.id)
        asked = await again.said()
        await session.answer(asked["id"], result=FORM)
        assert messages(await again.rest())[-1]["result"]["content"][0]["text"] == "accept {'name': 'Ann'}"


@in_loop
async def test_a_question_is_withdrawn_with_the_call() -> None:
    async with serving() as served:
        session = await served.session(capabilities=ASKS)
        call = session.call("name", id=7)
        asked = await call.said()
        await session.tell("notifications/cancelled", {"requestId": 7})
        await call.done()
        await served.settled()
        assert (await session.answer(asked["id"], result=FORM)).status in (202, 400)


@in_loop
async def test_who_cannot_be_asked_is_not() -> None:
    async with serving() as served:
        session = await served.session()
        reply = await session.call("name").reply()
        assert (reply.status, reply.code) == (200, -32600)


@in_loop
async def test_a_question_for_which_there_is_no_stream_is_an_error_and_not_endless() -> None:
    async with serving(streams=1) as served:
        session = await served.session("2025-06-18", ASKS)
        await session.listening()
        async with asyncio.timeout(4):
            assert (await session.call("name").reply()).code == -32603


class Twice(Workshop):
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
async def test_what_a_handler_wants_to_know_is_asked_before_it_is_entered_again() -> None:
    async with serving(Twice()) as served:
        session = await served.session("2025-06-18", ASKS)
        call = session.call("twice")
        for _ in range(2):
            asked = await call.said()
            result: Any = FORM if asked["method"] == "elicitation/create" else {"roots": []}
            await session.answer(asked["id"], result=result)
        assert (await call.reply()).text == "s ['a', 'b']"


@in_loop
async def test_who_leaves_while_being_asked_can_come_back() -> None:
    async with serving(Twice()) as served:
        session = await served.session("2025-06-18", ASKS)
        call = session.call("twice")
        first = await call.event()
        call.disconnect()
        again = session.get(first.id)
        second = await again.said()
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
async def test_a_batch_is_answered_in_one() -> None:
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


@pytest.mark.parametrize(
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
async def test_what_a_batch_tells_comes_before_its_answers() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26", ASKS)
        report = message(id=1, method="tools/call", params={"name": "report", "_meta": {"progressToken": 1}})
        opened = session.post(batch(report, calling(2, "roots")))
        while (said := await opened.said()).get("method") != "roots/list":
            assert said["method"] == "notifications/progress"
        await session.answer(said["id"], result={"roots": []})
        *_, answers = messages(await opened.rest())
        assert {each["id"] for each in answers} == {1, 2}
        await opened.done()


@in_loop
async def test_parts_of_a_batch_can_be_cancelled() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        opened = session.post(batch(calling(1, "wait"), calling(2, "stubborn"), calling(3, "echo")))
        await served.handler.entered.wait()
        await asyncio.sleep(0)
        await session.tell("notifications/cancelled", {"requestId": 1})
        assert not opened.is_complete
        served.handler.go.set()
        assert {each["id"] for each in (await opened.reply()).json} == {2, 3}
        served.handler.go.clear()
        served.handler.entered.clear()
        opened = session.post(batch(calling(1, "wait")))
        await served.handler.entered.wait()
        await session.tell("notifications/cancelled", {"requestId": 1})
        await opened.done()
        assert messages(opened.arrived()) == []
        await served.settled()


@in_loop
async def test_a_batch_goes_on_without_its_client() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        opened = session.post(batch(calling(1, "wait"), calling(2, "wait")))
        await served.handler.entered.wait()
        opened.disconnect()
        served.handler.go.set()
        await opened.done()
        assert served.handler.ended == ["answered", "answered"]


@pytest.mark.parametrize("revision", [each for each in LEGACY if each != "2025-03-26"])
@in_loop
async def test_other_revisions_have_no_batches(revision: str) -> None:
    async with serving() as served:
        session = await served.session(revision)
        reply = await session.post(batch(calling(1, "echo"))).reply()
        assert (reply.status, reply.code) == (400, -32600)
        assert "id" not in reply.json


@in_loop
async def test_a_batch_may_be_too_long() -> None:
    async with serving(batch=3) as served:
        session = await served.session("2025-03-26")
        assert (await session.post(batch(*[message(id=n, method="ping") for n in range(3)])).reply()).status == 200
        assert (await session.post(batch(*[message(id=n, method="ping") for n in range(4)])).reply()).status == 400


# Without sessions


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_older_revisions_can_do_without_sessions(revision: str) -> None:
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


@in_loop
async def test_without_sessions_nobody_is_asked_whatever_a_request_says() -> None:
    async with serving(sessions=False) as served:
        meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
        params = {"name": "roots", "arguments": {}, "_meta": meta}
        async with asyncio.timeout(4):
            reply = await served.post(
                message(id=1, method="tools/call", params=params), {"mcp-protocol-version": PRIMED}
            )
        assert "error" in reply.answer


@in_loop
async def test_without_a_session_and_a_version_it_is_2025_03_26() -> None:
    async with serving(sessions=False) as served:
        reply = await served.post(batch(calling(1, "echo"), calling(2, "turn")))
        assert {each["id"] for each in reply.json} == {1, 2}


@pytest.mark.parametrize("version", ["1999-01-01", "", "x"])
@in_loop
async def test_without_sessions_unknown_versions_are_refused_too(version: str) -> None:
    async with serving(sessions=False) as served:
        reply = await served.post(calling(1, "echo"), {"mcp-protocol-version": version})
        assert reply.status == 400
        assert reply.code in (-32020, -32022)


@in_loop
async def test_without_sessions_who_leaves_a_call_or_a_batch_leaves_nothing_behind() -> None:
    async with serving(sessions=False) as served:
        for content in (calling(1, "wait"), batch(calling(1, "wait"))):
            served.handler.entered.clear()
            opened = served.open("POST", {}, content)
            await served.handler.entered.wait()
            opened.disconnect()
            async with asyncio.timeout(4):
                await opened.done()
        assert served.handler.ended == ["cancelled", "cancelled"]


@in_loop
async def test_without_sessions_bodies_must_be_of_their_revision_too() -> None:
    async with serving(sessions=False) as served:
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": DIALECT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        content = message(id=1, method="tools/call", params={"name": "echo", "_meta": meta})
        reply = await served.post(content, {"mcp-protocol-version": PRIMED})
        assert (reply.status, reply.code) == (400, -32020)


# Threads, other codecs


class Threaded:
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        ctx.progress(1)
        return structs.CallToolResult(content=[structs.TextContent(text=params.name)], result_type="complete")


@pytest.mark.parametrize("revision", LEGACY)
@in_loop
async def test_handlers_in_threads_serve_sessions(revision: str) -> None:
    async with serving(Threaded()) as served:
        session = await served.session(revision)
        reply = await session.call("a", meta={"progressToken": 1}).reply()
        assert reply.text == "a"
        assert [each.get("method") for each in messages(reply.events)] == ["notifications/progress", None]


@in_loop
async def test_many_calls_of_many_sessions_at_a_time_each_have_their_answer() -> None:
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
async def test_a_call_ends_even_if_nobody_reads_it_and_nothing_can_be_kept() -> None:
    now = 0.0
    async with serving(store=MemoryStore(ttl=10.0, clock=lambda: now)) as served:
        session = await served.session()
        call = session.call("report_and_wait", meta={"progressToken": 1})
        await served.handler.entered.wait()
        call.disconnect()
        now = 11.0
        served.handler.go.set()
        await call.done()


@in_loop
async def test_a_client_may_not_say_too_much_of_itself() -> None:
    async with serving() as served:
        client = {"name": "n" * (1 << 17), "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        assert (await served.post(message(id=0, method="initialize", params=params))).status == 413


@in_loop
async def test_a_uri_that_is_subscribed_to_may_not_be_too_long() -> None:
    async with serving() as served:
        session = await served.session()
        assert (await session.ask("resources/subscribe", {"uri": "a:" + "x" * 9000}).reply()).code == -32602
        listener = served.listen(resourceSubscriptions=["a:" + "x" * 9000, "a:1"])
        assert (await listener.said())["params"]["notifications"] == {"resourceSubscriptions": ["a:1"]}


def test_an_application_without_a_lifespan_begins_anew_in_another_loop() -> None:
    served = served_app()

    async def call() -> str:
        reply = await served.call("echo", {"text": "hello"}).reply()
        await served.app.store.close()
        return reply.text

    assert [asyncio.run(call()) for _ in range(2)] == ["hello", "hello"]


# What is cheap


@pytest.mark.parametrize("revision", [revision for revision in (DIALECT, *LEGACY) if revision > "2025-03-26"])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "echo", "arguments": {"text": "a"}}),
        ("prompts/get", {"name": "greet"}),
        ("resources/read", {"uri": "note://1"}),
        ("tools/list", {}),
    ],
)
@in_loop
async def test_a_request_like_one_before_is_read_once(
    method: str, params: dict[str, Any], revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the hot path leaves is read again, and takes half as long again."""
    async with serving() as served:
        await served.call("echo").reply()  # from which it learns of tools
        ask = served.ask if revision == DIALECT else (await served.session(revision)).ask
        await ask(method, params).reply()
        left: list[bytes] = []

        def leave(_: Exchange, body: bytes) -> None:
            left.append(body)

        monkeypatch.setattr(Exchange, "_take", leave)
        reply = await ask(method, params).reply()
        assert "result" in reply.json
        assert not left
