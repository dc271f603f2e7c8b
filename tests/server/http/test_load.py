"""Ten thousand sessions and five thousand listeners in one server process, and clients that do not read."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server.http.http_wire import LEGACY, META, MODERN, WireServer, call, opening, post, request, served
from tests.server.scripted import run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory as Linux tells it"),
]

SESSIONS, STREAMS = 10_000, 5_000
KIB, MIB = 1 << 10, 1 << 20
WORKERS = 16
DEADLINE = 60.0

LISTEN = {"notifications": {"toolsListChanged": True}, "_meta": META}


class KeepAliveConnection:
    """A connection for requests one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader: asyncio.StreamReader = reader
        self.writer: asyncio.StreamWriter = writer
        self._stream = b""
        """The part of an event stream that has no line end yet, or is not read."""

    async def send(self, data: bytes) -> tuple[dict[str, str], bytes]:
        """Send a request, and return headers and body of the response."""
        headers = await self.begin(data)
        return headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def begin(self, data: bytes) -> dict[str, str]:
        """Send a request, and return the headers of the response."""
        self.writer.write(data)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        assert head[0].split()[1] in ("200", "202", "204"), (head, await self.reader.read(300))
        return headers

    async def event(self) -> Any:
        """Return the next message of an event stream, which may be spread over several chunks."""
        while True:
            line, separator, rest = self._stream.partition(b"\n")
            if not separator:
                self._stream += await self._chunk()
                continue
            self._stream = rest
            if line.startswith(b"data: {"):
                return json.loads(line[6:])

    async def _chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def connections(server: WireServer, buffer: int | None = None) -> AsyncGenerator[KeepAliveConnection]:
    """Connect. With a buffer of a stated size, neither the kernel nor the reader takes in more than that unread."""
    plain = socket.socket()
    if buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, server.address)
    connection = KeepAliveConnection(*await asyncio.open_connection(sock=plain, limit=buffer or 4 * MIB))
    try:
        yield connection
    finally:
        await connection.close()


async def run_concurrently(
    server: WireServer, work: Callable[[KeepAliveConnection, int], Awaitable[None]], numbers: int
) -> None:
    """Run a coroutine function this many times, over a few connections."""
    waiting = iter(range(numbers))

    async def worker() -> None:
        async with connections(server) as connection:
            for number in waiting:
                await work(connection, number)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))


async def open_sessions(server: WireServer) -> list[str]:
    sessions: list[str] = []

    async def begin(connection: KeepAliveConnection, _number: int) -> None:
        first, second = opening()
        headers, _ = await connection.send(first)
        sessions.append(headers["mcp-session-id"])
        await connection.send(second(sessions[-1]))

    await run_concurrently(server, begin, SESSIONS)
    return sessions


async def end_sessions(server: WireServer, sessions: list[str]) -> None:
    async def end(connection: KeepAliveConnection, number: int) -> None:
        await connection.send(request("DELETE", "/mcp", {"Mcp-Session-Id": sessions[number]}))

    await run_concurrently(server, end, len(sessions))


async def open_stream(server: WireServer) -> KeepAliveConnection:
    """Open a listener, and wait for its acknowledgement."""
    connection = KeepAliveConnection(*await asyncio.open_connection(*server.address))
    headers = await connection.begin(
        call({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": LISTEN})
    )
    assert headers["content-type"].startswith("text/event-stream")
    assert (await connection.event())["method"] == "notifications/subscriptions/acknowledged"
    return connection


async def open_streams(server: WireServer) -> list[KeepAliveConnection]:
    streams: list[KeepAliveConnection] = []

    async def begin() -> None:
        streams.append(await open_stream(server))

    for _ in range(STREAMS // 100):
        await asyncio.gather(*(begin() for _ in range(100)))
    return streams


async def server_state(server: WireServer) -> dict[str, int]:
    async with connections(server) as connection:
        found: dict[str, int] = json.loads((await connection.send(request("GET", "/held")))[1])
        return found


async def wait_for_state(server: WireServer, is_so: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """Return the state of the server, once it is as expected or after a timeout."""
    end = time.monotonic() + DEADLINE
    while True:
        found = await server_state(server)
        if is_so(found) or time.monotonic() > end:
            return found


async def measure_memory(server: WireServer) -> tuple[int, int]:
    """Open sessions and streams, use and close them. Return the bytes that a session and a stream took."""
    before = await server_state(server)
    sessions = await open_sessions(server)
    with_sessions = await server_state(server)
    streams = await open_streams(server)
    with_streams = await server_state(server)
    async with connections(server) as connection:
        await connection.send(request("GET", "/changed"))
    for stream in streams:
        assert (await stream.event())["method"] == "notifications/tools/list_changed"
    await asyncio.gather(*(stream.close() for stream in streams))
    await end_sessions(server, sessions)
    after = await wait_for_state(server, lambda found: found["objects"] <= before["objects"] + 500)
    assert after["objects"] <= before["objects"] + 500
    of_sessions = (with_sessions["memory"] - before["memory"]) // SESSIONS
    return of_sessions, (with_streams["memory"] - with_sessions["memory"]) // STREAMS


@pytest.fixture
def server() -> Generator[WireServer]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < STREAMS + 500:
        pytest.skip(f"only {hard} files may be open at once")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, STREAMS + 500), hard))
    try:
        with served() as found:
            yield found
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Clients that do not read

MANY = 20_000
"""Progress notifications of a call, of a thousand bytes each."""


def request_for(tool: str, n: int, wire: str, session: str) -> bytes:
    meta = {**(META if wire == MODERN else {}), "progressToken": 1}
    params = {"name": tool, "arguments": {"n": n}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return call(body) if wire == MODERN else post(body, {"Mcp-Session-Id": session, "MCP-Protocol-Version": wire})


async def wait_until_stable(server: WireServer) -> dict[str, int]:
    """Return the state of the server, once it does not change any more."""
    last, same = await server_state(server), 0
    while same < 3:
        now = await server_state(server)
        same = same + 1 if now["progress"] == last["progress"] else 0
        last = now
    return last


@pytest.mark.parametrize("wire", [MODERN, LEGACY])
def test_a_handler_waits_for_a_client_that_does_not_read(server: WireServer, wire: str) -> None:
    async def main() -> None:
        session = server.session()
        before = await server_state(server)
        async with connections(server, buffer=64 * KIB) as connection:
            await connection.begin(request_for("many", MANY, wire, session))
            waiting = await wait_until_stable(server)
            assert 0 < waiting["progress"] - before["progress"] < MANY
            assert waiting["memory"] - before["memory"] < 10 * MIB
            for number in range(1, MANY + 1):
                assert (await connection.event())["params"]["progress"] == number
            assert (await connection.event())["result"]["content"][0]["text"] == "I am many"
        assert (await server_state(server))["memory"] - before["memory"] < 10 * MIB

    run(main)


every_wire = pytest.mark.parametrize("wire", [MODERN, LEGACY])


@every_wire
def test_a_client_that_reads_gets_thousands_of_messages_on_one_connection(server: WireServer, wire: str) -> None:
    async def main() -> None:
        async with connections(server) as connection:
            await connection.begin(request_for("many", MANY, wire, server.session()))
            for number in range(1, MANY + 1):
                assert (await connection.event())["params"]["progress"] == number
            assert (await connection.event())["result"]["content"][0]["text"] == "I am many"

    run(main)


@every_wire
def test_a_client_that_reads_gets_a_large_result_on_one_connection(server: WireServer, wire: str) -> None:
    async def main() -> None:
        async with connections(server) as connection:
            headers = await connection.begin(request_for("large", MIB, wire, server.session()))
            if headers["content-type"] == "text/event-stream":
                answer = await connection.event()
            else:
                answer = json.loads(await connection.reader.readexactly(int(headers["content-length"])))
            assert len(answer["result"]["content"][0]["text"]) == MIB

    run(main)


def test_changes_are_merged_while_a_listener_does_not_read(server: WireServer) -> None:
    async def main() -> None:
        stream = await open_stream(server)
        before = await server_state(server)
        async with connections(server) as connection:
            for _ in range(20_000):
                await connection.send(request("GET", "/changed"))
        assert (await server_state(server))["memory"] - before["memory"] < 5 * MIB
        await stream.close()

    run(main)


# Many clients


def test_sessions_and_listeners_take_little_memory_and_release_it(server: WireServer) -> None:
    async def main() -> None:
        await (await open_stream(server)).close()  # creates what is created only once
        await end_sessions(server, [server.session()])
        of_session, of_stream = await measure_memory(server)
        first = await server_state(server)
        print(f"\n{of_session} bytes a session, {of_stream} bytes a stream")
        assert of_session <= 6 * KIB
        assert of_stream <= 25 * KIB
        await measure_memory(server)
        second = await server_state(server)
        assert second["most"] <= 1.1 * first["most"]
        assert server.complaints == []

    run(main)
