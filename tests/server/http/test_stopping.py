"""The end of an application: what it ends at once, what gets time, and what clients are told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import OpenRequest, ToolHandler, in_loop, message, messages, serving
from typedmcp.server.http.signals import on_end_signal

LOST = -31503


def error_of(opened: OpenRequest) -> Any:
    return messages(opened.arrived())[-1]["error"]


@in_loop
async def test_calls_that_outlast_the_grace_are_cancelled_and_answered() -> None:
    async with serving(grace=0.05) as served:
        call = served.call("wait")
        session = await served.session()
        kept = session.call("wait")
        streamed = served.call("report_and_wait", id=2, meta={"progressToken": 1})
        batch = await _batch_of_one(await served.session("2025-03-26"))
        await kept.head()
        await streamed.head()
        served.app.stop()
        (answer,) = (await batch.reply()).json
        reply = await call.reply()
        assert (reply.status, reply.code) == (200, LOST)
        for opened in (kept, streamed):
            await opened.done()
            assert error_of(opened)["code"] == LOST
        assert answer["error"]["code"] == LOST
        assert served.handler.ended == ["cancelled"] * 4
        assert served.kinds == []


async def _batch_of_one(session: Any) -> OpenRequest:
    call = message(id=9, method="tools/call", params={"name": "wait", "arguments": {}})
    opened: OpenRequest = session.post(b"[%b]" % call)
    return opened


@in_loop
async def test_calls_that_end_within_the_grace_have_their_results() -> None:
    async with serving(grace=60) as served:
        call = served.call("wait")
        await served.handler.entered.wait()
        served.app.stop()
        served.handler.go.set()
        assert (await call.reply()).text == "waited"


@in_loop
async def test_questions_end_at_once_since_their_answers_cannot_arrive() -> None:
    """So does the question to a client that has died: nothing else would end the call before its timeout."""
    async with serving(grace=60) as served:
        for leaves in (False, True):
            session = await served.session(capabilities={"elicitation": {}})
            asked = session.call("name")
            while (await asked.next_message())["method"] != "elicitation/create":
                pass
            if leaves:
                asked.disconnect()
            served.app.stop()
            await asked.done()
            if not leaves:
                error = error_of(asked)
                assert (error["code"], error["message"].partition(";")[0]) == (LOST, "the server is stopping")
            await served.app.close()
            await served.app.open()
        assert served.kinds == []


@in_loop
async def test_a_handler_may_do_without_the_answer_to_a_question() -> None:
    class Forgiving(ToolHandler):
        async def name(self, ctx: Any) -> str:
            try:
                return await super().name(ctx)
            except typedmcp.ConnectionLostError:
                return "nobody"

    async with serving(Forgiving(), grace=60) as served:
        session = await served.session(capabilities={"elicitation": {}})
        asked = session.call("name")
        await asked.next_message()
        served.app.stop()
        await asked.done()
        assert messages(asked.arrived())[-1]["result"]["content"][0]["text"] == "nobody"


@in_loop
async def test_a_cancellation_that_the_handler_has_made_itself_is_still_its_failure() -> None:
    class Confused(ToolHandler):
        async def wait(self, ctx: Any, text: str = "") -> str:
            await asyncio.sleep(0.03)
            raise asyncio.CancelledError

    async with serving(Confused()) as served:
        assert (await served.call("wait").reply()).code == -32603
        assert served.kinds == ["internal error"]


# Signals


@contextmanager
def handled(number: int, handler: Any) -> Generator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself these signals there")
@each("number", [signal.SIGINT, signal.SIGTERM])
@in_loop
async def test_an_application_stops_when_a_server_handles_a_signal(number: int) -> None:
    seen: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        seen.append(number)

    with handled(number, on_signal):
        async with serving() as served:
            listener = served.listen(toolsListChanged=True)
            await listener.next_message()
            os.kill(os.getpid(), number)
            assert messages(await listener.rest())[-1]["result"]["resultType"] == "complete"
            assert seen == [number]
        os.kill(os.getpid(), number)
        assert seen == [number] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="event loops on Windows handle no signals")
@in_loop
async def test_an_application_stops_when_a_server_handles_a_signal_in_the_loop() -> None:
    loop, seen = asyncio.get_running_loop(), list[str]()
    loop.add_signal_handler(signal.SIGTERM, seen.append, "server")
    try:
        async with serving() as served:
            listener = served.listen(toolsListChanged=True)
            await listener.next_message()
            os.kill(os.getpid(), signal.SIGTERM)
            await listener.rest()
            while not seen:
                await asyncio.sleep(0.001)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


@each("handler", [signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler])
def test_a_signal_that_no_server_handles_keeps_its_effect(handler: Any) -> None:
    with handled(signal.SIGINT, handler):
        undo = on_end_signal(lambda: None)
        assert signal.getsignal(signal.SIGINT) is handler
        undo()
        assert signal.getsignal(signal.SIGINT) is handler


def test_a_handler_that_is_set_later_stays() -> None:
    def first(*_: object) -> None: ...

    def later(*_: object) -> None: ...

    with handled(signal.SIGINT, first):
        undo = on_end_signal(lambda: None)
        signal.signal(signal.SIGINT, later)
        undo()
        assert signal.getsignal(signal.SIGINT) is later


def test_several_applications_hear_of_a_signal() -> None:
    heard: list[str] = []

    def on_signal(*_: object) -> None:
        heard.append("server")

    with handled(signal.SIGINT, on_signal):
        undo_one = on_end_signal(lambda: heard.append("one"))
        undo_two = on_end_signal(lambda: heard.append("two"))
        signal.raise_signal(signal.SIGINT)
        assert heard == ["two", "one", "server"]
        undo_one()  # another one is before it: its handler stays, and does no harm
        undo_two()
        signal.raise_signal(signal.SIGINT)
        assert heard[3:] == ["one", "server"]


def test_threads_leave_signals_alone() -> None:
    def handler(*_: object) -> None: ...

    with handled(signal.SIGINT, handler):
        undo: list[Any] = []
        thread = threading.Thread(target=lambda: undo.append(on_end_signal(lambda: None)))
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is handler
        undo[0]()
