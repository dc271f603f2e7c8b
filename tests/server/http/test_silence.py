"""Responses that take long: proxies close connections on which nothing is sent, so something is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import (
    OpenRequest,
    Served,
    ToolHandler,
    in_loop,
    message,
    messages,
    serving,
)
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp.revisions.features import FEATURES

KEEP_ALIVE = 0.05
HTTP_REVISIONS = [revision for revision in (*LEGACY, MODERN_REVISION) if FEATURES[revision].has_streamable_http]


async def open_call(served: Served, revision: str, *, sessions: bool, accept: str | None = None) -> OpenRequest:
    """Call a tool that waits, as a client of a revision does."""
    extra = {} if accept is None else {"accept": accept}
    if revision == MODERN_REVISION:
        return served.call("wait", headers=extra)
    if sessions:
        session = await served.session(revision)
        session.headers |= extra
        return session.call("wait")
    body = message(id=1, method="tools/call", params={"name": "wait", "arguments": {}})
    return served.open("POST", {"mcp-protocol-version": revision, **extra}, body)


@each("sessions", [True, False])
@each("revision", HTTP_REVISIONS)
@in_loop
async def test_a_silent_call_has_a_status_and_comments_before_its_result(revision: str, sessions: bool) -> None:
    async with serving(keep_alive=KEEP_ALIVE, sessions=sessions) as served:
        call = await open_call(served, revision, sessions=sessions)
        await served.handler.entered.wait()
        assert await call.head() == 200
        assert call.is_stream
        await call.until(lambda: call.body.count(b":\n\n") >= 3)
        served.handler.go.set()
        reply = await call.reply()
        (answer,) = messages(reply.events)
        assert (answer["id"], reply.text) == (1, "waited")


@in_loop
async def test_a_client_that_accepts_only_json_waits_in_silence() -> None:
    async with serving(keep_alive=KEEP_ALIVE) as served:
        call = await open_call(served, MODERN_REVISION, sessions=False, accept="application/json")
        other = await open_call(served, MODERN_REVISION, sessions=False)
        await other.head()  # by now, the first one would have begun, too
        assert call.sent == []
        served.handler.go.set()
        assert (await call.reply()).json["result"]["content"][0]["text"] == "waited"


@in_loop
async def test_a_call_that_ends_in_time_has_json_and_the_status_of_its_error() -> None:
    async with serving(keep_alive=1000.0) as served:
        asked = served.call("name")  # after this, the client lacks a capability
        reply = await asked.reply()
        assert (reply.status, reply.is_stream, reply.code) == (400, False, -32021)


@in_loop
async def test_an_error_after_a_silence_is_in_the_stream() -> None:
    class Failing(ToolHandler):
        async def wait_and_ask(self, ctx: Any) -> str:
            await self.wait(ctx)
            return await self.name(ctx)

    async with serving(Failing(), keep_alive=KEEP_ALIVE) as served:
        call = served.call("wait_and_ask")
        await call.head()
        served.handler.go.set()
        reply = await call.reply()
        assert (reply.status, reply.is_stream, reply.code) == (200, True, -32021)


@in_loop
async def test_a_batch_has_comments_before_its_responses() -> None:
    async with serving(keep_alive=KEEP_ALIVE) as served:
        session = await served.session("2025-03-26")
        calls: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}}
            for id, name in enumerate(("echo", "wait", "wait"))
        ]
        batch = session.post(json.dumps(calls).encode())
        assert await batch.head() == 200
        assert batch.is_stream
        await batch.until(lambda: batch.body.count(b":\n\n") >= 2)
        served.handler.go.set()
        (answers,) = messages((await batch.reply()).events)
        assert {answer["id"] for answer in answers} == {0, 1, 2}


@in_loop
async def test_a_plain_function_in_a_thread_has_comments() -> None:
    server = typedmcp.Server("plain")

    @server.tool
    def slow() -> str:
        time.sleep(4 * KEEP_ALIVE)
        return "slow"

    async with serving(server, keep_alive=KEEP_ALIVE) as served:
        reply = await served.call("slow").reply()
        assert (reply.is_stream, reply.text) == (True, "slow")
        assert reply.body.startswith(b":\n\n")


@in_loop
async def test_a_notification_has_no_stream() -> None:
    class Slow(ToolHandler):
        async def cancelled(self, params: Any, ctx: Any) -> None:
            await self.wait(ctx)

    async with serving(Slow(), keep_alive=KEEP_ALIVE) as served:
        session = await served.session()
        notified = session.post(message(method="notifications/cancelled", params={"requestId": "none"}))
        call = session.call("wait")
        await call.until(lambda: call.body.count(b":\n\n") >= 2)
        assert notified.sent == []
        served.handler.go.set()
        assert (await notified.reply()).status == 202


@in_loop
async def test_a_silent_call_without_room_for_a_stream_has_json() -> None:
    async with serving(keep_alive=KEEP_ALIVE, limits=typedmcp.Limits(http_streams=1)) as served:
        first = served.call("wait")
        await first.head()
        second = served.call("wait", id=2)
        await first.until(lambda: first.body.count(b":\n\n") >= 4)
        served.handler.go.set()
        assert (await first.reply()).is_stream
        assert (await second.reply()).json["id"] == 2


@in_loop
async def test_a_client_that_disconnects_after_a_silence_cancels_its_call() -> None:
    async with serving(keep_alive=KEEP_ALIVE) as served:
        call = served.call("wait")
        await call.head()
        call.disconnect()
        await call.done()
        assert served.handler.ended == ["cancelled"]


@pytest.mark.parametrize("keep_alive", [0, -1, "15"])
def test_the_pause_has_to_be_positive(keep_alive: Any) -> None:
    with pytest.raises(typedmcp.UsageError, match="keep_alive"):
        typedmcp.asgi(ToolHandler(), keep_alive=keep_alive)
