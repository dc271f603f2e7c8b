"""Each message of a connection is checked against the revision that it belongs to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import typedmcp
from tests.cases import each
from tests.helpers import run
from tests.spoken import SUPPORTED
from typedmcp.dialect.structs import ElicitRequestFormParams
from typedmcp_cli.dev.events import EventLog
from typedmcp_cli.dev.frames import FrameChecker

server = typedmcp.Server("checked")


@server.tool
async def climb(ctx: typedmcp.Context) -> str:
    await ctx.progress(1, total=2)
    await ctx.log("info", "up")
    answer = await ctx.elicit("Really?", {"type": "object", "properties": {"yes": {"type": "boolean"}}})
    return answer.action


def frame(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


@each("revisions", [SUPPORTED, *([one] for one in SUPPORTED[:3])], ids=str)
def test_a_correct_connection_has_no_faults_on_any_revision(revisions: list[str]) -> None:
    async def main() -> None:
        checker, found = FrameChecker(SUPPORTED[0]), list[tuple[str, list[str]]]()

        def on_frame(sender: Literal["client", "server"], data: bytes) -> None:
            found.append(checker.check(sender, data))

        def elicit(params: ElicitRequestFormParams) -> dict[str, bool]:
            return {"yes": True}

        async with typedmcp.connect(server, revisions=revisions, on_frame=on_frame, elicit=elicit) as client:
            await client.call_tool("climb", on_progress=lambda _: None)
        assert [faults for _, faults in found if faults] == []
        assert found[-1][0] == revisions[0]

    run(main())


def test_messages_follow_the_revision_of_the_handshake() -> None:
    checker = FrameChecker("2026-07-28")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    assert checker.check("client", frame(id=1, method="initialize", params=params)) == ("2025-11-25", [])
    result = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "b", "version": "1"}}
    assert checker.check("server", frame(id=1, result=result)) == ("2025-03-26", [])
    assert checker.check("client", frame(method="notifications/initialized")) == ("2025-03-26", [])
    assert checker.check("client", frame(id=2, method="tools/list")) == ("2025-03-26", [])
    tool = {"name": 3, "inputSchema": {"type": "object"}}
    revision, faults = checker.check("server", frame(id=2, result={"tools": [tool]}))
    assert revision == "2025-03-26"
    assert faults == ["result.tools[0].name: expected string, got 3"]


def test_a_probe_is_checked_against_the_revision_that_it_names() -> None:
    checker = FrameChecker("2025-06-18")
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    revision, faults = checker.check("client", frame(id=1, method="server/discover", params={"_meta": meta}))
    assert (revision, faults) == ("2026-07-28", [])
    error = {"code": -32601, "message": "not found"}
    assert checker.check("server", frame(id=1, error=error)) == ("2026-07-28", [])
    assert checker.check("client", frame(id=2, method="ping")) == ("2025-06-18", [])


@each(
    "data, fault",
    [
        (b"{", "not JSON"),
        (b"\xff", "not"),
        (b"3", "not a message"),
        (b"[" * 100_000, "nested too deeply"),
        (frame(id=9, result={}), "id: no earlier request has the id 9"),
        (frame(method="no/such"), "method: unknown in 2025-11-25"),
        (frame(id={}, method="ping"), "id: "),
        (frame(id=1, method=7), "method: expected string, got 7"),
    ],
)
def test_a_message_that_is_not_valid_has_faults(data: bytes, fault: str) -> None:
    _, (found, *_) = FrameChecker("2025-11-25").check("server", data)
    assert fault in found


def test_past_events_are_kept_up_to_a_number_of_bytes() -> None:
    async def main() -> None:
        log = EventLog(2000)
        log.set("a", "status", {"state": "old"})
        log.set("a", "status", {"state": "new"})
        for number in range(1000):
            log.add("frame", {"number": number, "text": "x" * 50})
            assert log.size <= 2000
        kept = [event async for event in _until_ready(log)]
        assert b'"dropped":' in kept[0]
        assert kept[1] == b'event: status\ndata: {"state":"new"}\n\n'
        assert b'"number":999' in kept[-1]
        assert 5 < len(kept) < 40

    async def _until_ready(log: EventLog) -> AsyncIterator[bytes]:
        async for event in log.stream():
            if event.startswith(b"event: ready"):
                return
            yield event

    run(main())


def test_a_stream_goes_on_with_new_events_and_ends_with_the_log() -> None:
    async def main() -> None:
        log = EventLog(2000)
        events: list[bytes] = []

        async def read() -> None:
            events.extend([event async for event in log.stream()])

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        log.add("log", {"text": "later"})
        log.set("q", "question", {"id": "1"})
        log.unset("q", "answered", {"id": "1"})
        log.close()
        await reading
        kinds = [event.split(b"\n")[0].removeprefix(b"event: ").decode() for event in events]
        assert kinds == ["begin", "ready", "log", "question", "answered"]

    run(main())
