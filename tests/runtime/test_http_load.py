"""Ten thousand sessions and five thousand listeners in one server process, and clients that do not read."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.http_wire import LEGACY, META, MODERN, Server, call, opening, post, request, served
from tests.runtime.scripted import run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory as Linux tells it"),
]

SESSIONS, STREAMS = 10_000, 5_000
KIB, MIB = 1 << 10, 1 << 20
WORKERS = 16
DEADLINE = 60.0

LISTEN = {"notifications": {"toolsListChanged": True}, "_meta": META}


class Connection:
    """A connection on which requests go one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader: asyncio.StreamReader = reader
        self.writer: asyncio.StreamWriter = writer

    async def send(self, data: bytes) -> tuple[dict[str, str], bytes]:
        """Send a request; the headers and the body of the answer."""
        headers = await self.begin(data)
        return headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def begin(self, data: bytes) -> dict[str, str]:
        """Send a request; the headers of the answer."""
        self.writer.write(data)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        assert head[0].split()[1] in ("200", "202", "204"), (head, await self.reader.read(300))
        return headers

    async def event(self) -> Any:
        """The next message of a stream of events."""
        while True:
            line = await self.reader.readuntil(b"\n")
            if line.startswith(b"data: {"):
                return json.loads(line[6:])

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[Connection]:
    connection = Connection(*await asyncio.open_connection(*server.address, limit=4 * MIB))
    try:
        yield connection
    finally:
        await connection.close()


async def among_workers(server: Server, work: Callable[[Connection, int], Awaitable[None]], numbers: int) -> None:
    """Do something so many times, over a few connections."""
    waiting = iter(range(numbers))

    async def worker() -> None:
        async with connected(server) as connection:
            for number in waiting:
                await work(connection, number)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))


async def open_sessions(server: Server) -> list[str]:
    sessions: list[str] = []

    async def begin(connection: Connection, _number: int) -> None:
        first, second = opening()
        headers, _ = await connection.send(first)
        sessions.append(headers["mcp-session-id"])
        await connection.send(second(sessions[-1]))

    await among_workers(server, begin, SESSIONS)
    return sessions


async def end_sessions(server: Server, sessions: list[str]) -> None:
    async def end(connection: Connection, number: int) -> None:
        await connection.send(request("DELETE", "/mcp", {"Mcp-Session-Id": sessions[number]}))

    await among_workers(server, end, len(sessions))


async def open_stream(server: Server) -> Connection:
    """A listener who knows that it is one."""
    connection = Connection(*await asyncio.open_connection(*server.address))
    headers = await connection.begin(
        call({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": LISTEN})
    )
    assert headers["content-type"].startswith("text/event-stream")
    assert (await connection.event())["method"] == "notifications/subscriptions/acknowledged"
    return connection


async def open_streams(server: Server) -> list[Connection]:
    streams: list[Connection] = []

    async def begin() -> None:
        streams.append(await open_stream(server))

    for _ in range(STREAMS // 100):
        await asyncio.gather(*(begin() for _ in range(100)))
    return streams


async def held(server: Server) -> dict[str, int]:
    async with connected(server) as connection:
        found: dict[str, int] = json.loads((await connection.send(request("GET", "/held")))[1])
        return found


async def until(server: Server, is_so: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """What the server holds, once that is as it should be, or at last."""
    end = time.monotonic() + DEADLINE
    while True:
        found = await held(server)
        if is_so(found) or time.monotonic() > end:
            return found


async def wave(server: Server) -> tuple[int, int]:
    """Open everything, use it, and close it; the bytes that a session and a stream took."""
    before = await held(server)
    sessions = await open_sessions(server)
    with_sessions = await held(server)
    streams = await open_streams(server)
    with_streams = await held(server)
    async with connected(server) as connection:
        await connection.send(request("GET", "/changed"))
    for stream in streams:
        assert (await stream.event())["method"] == "notifications/tools/list_changed"
    await asyncio.gather(*(stream.close() for stream in streams))
    await end_sessions(server, sessions)
    after = await until(server, lambda found: found["objects"] <= before["objects"] + 500)
    assert after["objects"] <= before["objects"] + 500
    of_sessions = (with_sessions["memory"] - before["memory"]) // SESSIONS
    return of_sessions, (with_streams["memory"] - with_sessions["memory"]) // STREAMS


@pytest.fixture
def server() -> Generator[Server]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < STREAMS + 500:
        pytest.skip(f"only {hard} files may be open at once")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, STREAMS + 500), hard))
    try:
        with served() as found:
            yield found
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Those who do not read

MANY = 20_000
"""How often a call reports progress, with a thousand bytes each time."""


def request_for(tool: str, n: int, wire: str, session: str) -> bytes:
    meta = {**(META if wire == MODERN else {}), "progressToken": 1}
    params = {"name": tool, "arguments": {"n": n}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return call(body) if wire == MODERN else post(body, {"Mcp-Session-Id": session, "MCP-Protocol-Version": wire})


async def settled(server: Server) -> dict[str, int]:
    """What the server holds, once it tells no more."""
    last, same = await held(server), 0
    while same < 3:
        now = await held(server)
        same = same + 1 if now["told"] == last["told"] else 0
        last = now
    return last


@pytest.mark.parametrize("wire", [MODERN, LEGACY])
def test_a_client_that_does_not_read_has_the_handler_wait(server: Server, wire: str) -> None:
    async def main() -> None:
        session = server.session()
        before = await held(server)
        async with connected(server) as connection:
            await connection.begin(request_for("many", MANY, wire, session))
            waiting = await settled(server)
            assert 0 < waiting["told"] - before["told"] < MANY
            assert waiting["memory"] - before["memory"] < 10 * MIB
            for number in range(1, MANY + 1):
                assert (await connection.event())["params"]["progress"] == number
            assert (await connection.event())["result"]["content"][0]["text"] == "I am many"
        assert (await held(server))["memory"] - before["memory"] < 10 * MIB

    run(main)


every_wire = pytest.mark.parametrize("wire", [MODERN, LEGACY])


@every_wire
def test_a_client_that_reads_gets_a_great_many_messages_on_one_connection(server: Server, wire: str) -> None:
    async def main() -> None:
        async with connected(server) as connection:
            await connection.begin(request_for("many", MANY, wire, server.session()))
            for number in range(1, MANY + 1):
                assert (await connection.event())["params"]["progress"] == number
            assert (await connection.event())["result"]["content"][0]["text"] == "I am many"

    run(main)


@every_wire
def test_a_client_that_reads_gets_a_large_result_on_one_connection(server: Server, wire: str) -> None:
    async def main() -> None:
        async with connected(server) as connection:
            headers = await connection.begin(request_for("large", MIB, wire, server.session()))
            if headers["content-type"] == "text/event-stream":
                answer = await connection.event()
            else:
                answer = json.loads(await connection.reader.readexactly(int(headers["content-length"])))
            assert len(answer["result"]["content"][0]["text"]) == MIB

    run(main)


def test_changes_wait_for_a_listener_that_does_not_read_once_each(server: Server) -> None:
    async def main() -> None:
        stream = await open_stream(server)
        before = await held(server)
        async with connected(server) as connection:
            for _ in range(20_000):
                await connection.send(request("GET", "/changed"))
        assert (await held(server))["memory"] - before["memory"] < 5 * MIB
        await stream.close()

    run(main)


# Many


def test_sessions_and_listeners_are_small_and_leave_nothing_behind(server: Server) -> None:
    async def main() -> None:
        await (await open_stream(server)).close()  # what is made once is made now
        await end_sessions(server, [server.session()])
        of_session, of_stream = await wave(server)
        first = await held(server)
        print(f"\n{of_session} bytes a session, {of_stream} bytes a stream")
        assert of_session <= 6 * KIB
        assert of_stream <= 25 * KIB
        await wave(server)
        second = await held(server)
        assert second["most"] <= 1.1 * first["most"]
        assert server.complaints == []

    run(main)
