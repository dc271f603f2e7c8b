"""Attack a server with its default limits in every way at once: `python -m tests.attacks`.

Each attack makes the server keep, or do, as much as one client can: sessions, subscriptions, listeners, calls whose
client has left, responses and streams that are not read, bodies that are costly to decode, functions that block. First
one client attacks, which is one address, then eight. Meanwhile another client calls, in a process of its own. The peak
memory of the server and the times of that client must stay below bounds, and one attacker must not get any of its calls
refused. Eight attackers can fill the budgets that all clients share.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.listening import listening
from tests.paths import ROOT
from tests.server.http.http_wire import CLIENT, LEGACY, META, MODERN, call, post, request

__all__ = ["ATTACKS", "MAX_PEAK_BYTES", "Figures", "attacked", "judge"]

KIB, MIB = 1 << 10, 1 << 20
MAX_PEAK_BYTES: Final = {1: 1 << 30, 8: 3 << 30}
"""The most memory that the server may take, by the number of clients that attack."""
MAX_MEDIAN_MS: Final = 250.0
MAX_WORST_MS: Final = 15_000.0
"""Attackers and the server share the processors of a small machine, so the worst time varies much."""
_SECOND: Final = "127.0.0.2"
_ATTACKERS: Final = "127.0.1.{}"
_PATIENCE: Final = 30.0
"""Seconds that the other client waits for a response."""


class Target(NamedTuple):
    """The server, and the address that attacks it."""

    port: int
    address: str


class Figures(NamedTuple):
    """What the attacks have cost."""

    peak: int
    """The most memory of the server, in bytes."""
    times: list[float]
    """The times of the other client's calls in milliseconds."""
    refused: int
    """The number of those calls that got status 503."""


class Connection:
    """A connection of an attacker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader: asyncio.StreamReader = reader
        self.writer: asyncio.StreamWriter = writer

    async def send(self, data: bytes) -> dict[str, str]:
        """Send a request, and return the headers of the response; its body is not read."""
        self.writer.write(data)
        await self.writer.drain()
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}

    async def ask(self, data: bytes) -> dict[str, str]:
        """Send a request, read the whole response, and return its headers."""
        headers = await self.send(data)
        await self.reader.readexactly(int(headers.get("content-length", 0)))
        return headers


@asynccontextmanager
async def connected(target: Target) -> AsyncGenerator[Connection]:
    """Open a connection from the address of an attacker."""
    # A small buffer, so that the server has to keep what is not read.
    opening = asyncio.open_connection("127.0.0.1", target.port, local_addr=(target.address, 0), limit=64 * KIB)
    reader, writer = await opening
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


def legacy_call(session: str, method: str, params: Any, number: int = 1) -> bytes:
    """Return a POST of a request in a session."""
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    return post({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, headers)


def tool_call(name: str, **arguments: Any) -> bytes:
    """Return a POST of a call on the newest revision."""
    params = {"name": name, "arguments": arguments, "_meta": {**META, "progressToken": 1}}
    return call({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


async def begin_session(connection: Connection, title: str = "") -> str:
    """Send `initialize`, and return the id of the session."""
    info = {"name": "attacker", "version": "1", "title": title}
    params = {**CLIENT, "protocolVersion": "2025-11-25", "clientInfo": info}
    headers = await connection.ask(post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
    return headers.get("mcp-session-id", "")


async def begin_sessions(target: Target) -> None:
    """Begin sessions that are never used."""
    async with connected(target) as connection:
        while True:
            await begin_session(connection)


async def describe_itself_at_length(target: Target) -> None:
    """Begin sessions with as much description of the client as they can have."""
    async with connected(target) as connection:
        while True:
            await begin_session(connection, "x" * 60_000)


async def subscribe(target: Target) -> None:
    """Subscribe sessions to resources with long URIs."""
    async with connected(target) as connection:
        while True:
            session = await begin_session(connection)
            for number in range(1000):
                uri = f"data://{number}-{'x' * 8000}"
                await connection.ask(legacy_call(session, "resources/subscribe", {"uri": uri}))


async def listen(target: Target) -> None:
    """Listen to many resources, and keep the stream open."""
    uris = [f"data://{number}-{'x' * 4000}" for number in range(1000)]
    params = {"notifications": {"resourceSubscriptions": uris}, "_meta": META}
    body = call({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
    async with connected(target) as connection:
        await connection.send(body)
        await asyncio.sleep(60)


async def leave_calls(target: Target) -> None:
    """Begin calls with large arguments in a session, and leave; such calls go on."""
    async with connected(target) as connection:
        session = await begin_session(connection)
    params = {"name": "wait", "arguments": {"text": "x" * 4_000_000}}
    for number in itertools.count():
        async with connected(target) as connection:
            connection.writer.write(legacy_call(session, "tools/call", params, number))
            await connection.writer.drain()
            await asyncio.sleep(0.05)


async def post_to_an_unread_stream(target: Target) -> None:
    """Open an event stream of 2024-11-05, post messages to it, and do not read it."""
    async with connected(target) as stream:
        await stream.send(request("GET", "/sse", {"Accept": "text/event-stream"}))
        path = (await stream.reader.readuntil(b"\n\n")).decode().partition("data: ")[2].strip()
        start = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {**CLIENT, "protocolVersion": LEGACY}}
        async with connected(target) as connection:
            await connection.ask(post(start).replace(b"/mcp", path.encode(), 1))
            large = {"name": "large", "arguments": {"size": MIB}}
            for number in itertools.count(1):
                body = post({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": large})
                await connection.ask(body.replace(b"/mcp", path.encode(), 1))


async def read_no_results(target: Target) -> None:
    """Call for large results, and do not read them."""
    async with connected(target) as connection:
        await connection.send(tool_call("large", size=20 * MIB))
        await asyncio.sleep(20)


async def read_no_streamed_results(target: Target) -> None:
    """Call for large results in sessions, where they are kept for clients that come back, and do not read them."""
    async with connected(target) as connection:
        session = await begin_session(connection)
        arguments = {"name": "large", "arguments": {"size": 20 * MIB}}
        await connection.send(legacy_call(session, "tools/call", arguments))
        await asyncio.sleep(20)


async def read_results(target: Target) -> None:
    """Call for large results of handlers that wait, and read them."""
    async with connected(target) as connection:
        while True:
            await connection.ask(tool_call("large", size=16 * MIB))


async def read_no_progress(target: Target) -> None:
    """Call for messages without end, and do not read them."""
    async with connected(target) as connection:
        await connection.send(tool_call("chat"))
        await asyncio.sleep(20)


async def block_threads(target: Target) -> None:
    """Call a function that blocks."""
    async with connected(target) as connection:
        while True:
            await connection.ask(tool_call("block"))


async def send_costly_bodies(target: Target) -> None:
    """Send bodies of many small arrays."""
    arrays = f"[{'[],' * 1_300_000}[]]"
    body = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{arrays}}}}}'.encode()
    async with connected(target) as connection:
        while True:
            await connection.ask(post(body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "ping"}))


async def send_bodies_slowly(target: Target) -> None:
    """Send most of a large body, and wait."""
    async with connected(target) as connection:
        connection.writer.write(tool_call("quick", text="x" * 4_000_000)[:-1])
        await connection.writer.drain()
        await asyncio.sleep(20)


async def send_batches(target: Target) -> None:
    """Send batches of calls for large results."""
    params = {**CLIENT, "protocolVersion": "2025-03-26"}
    start = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    item = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "large", "arguments": {"size": MIB}}}
    async with connected(target) as connection:
        session = (await connection.ask(start)).get("mcp-session-id", "")
        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-03-26"}
        while True:
            await connection.ask(post([{**item, "id": number} for number in range(1000)], headers))


Attack = Callable[[Target], Awaitable[None]]

ATTACKS: Final[dict[Attack, int]] = {
    begin_sessions: 4,
    describe_itself_at_length: 4,
    subscribe: 4,
    listen: 40,
    leave_calls: 4,
    read_no_streamed_results: 20,
    post_to_an_unread_stream: 8,
    read_no_results: 40,
    read_results: 2,
    read_no_progress: 20,
    block_threads: 40,
    send_costly_bodies: 4,
    send_bodies_slowly: 40,
    send_batches: 2,
}
"""The attacks, and on how many connections at a time all addresses together try each."""


def attack(port: int, addresses: int) -> None:
    """Attack a server from some addresses until this process is killed."""
    asyncio.run(_attack(port, addresses))


async def _attack(port: int, addresses: int) -> None:
    turns = itertools.cycle([Target(port, _ATTACKERS.format(number + 1)) for number in range(addresses)])
    await asyncio.gather(*[_repeat(each, next(turns)) for each, count in ATTACKS.items() for _ in range(count)])


async def _repeat(attack: Attack, target: Target) -> None:
    while True:
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            await attack(target)
        await asyncio.sleep(0.02)


def _measure(port: int, seconds: float) -> tuple[list[float], int]:
    """Call two tools in turns from another address. Return the times in milliseconds, and how many were refused."""
    calls = itertools.cycle([tool_call("quick"), tool_call("plain")])
    times: list[float] = []
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + seconds
    with socket.create_connection(("127.0.0.1", port), _PATIENCE, source_address=(_SECOND, 0)) as connection:
        while time.perf_counter() < end:
            began = time.perf_counter()
            connection.sendall(next(calls))
            with HTTPResponse(connection) as response:
                response.begin()
                response.read()
                statuses[response.status] += 1
            times.append((time.perf_counter() - began) * 1000)
            time.sleep(0.01)
    if unexpected := {*statuses} - {200, 503}:
        raise RuntimeError(f"unexpected statuses: {unexpected}")
    return times, statuses[503]


def attacked(seconds: float, addresses: int) -> Figures:
    """Attack a new server for some seconds, from some addresses, and return what that cost."""
    context = multiprocessing.get_context("spawn")
    with listening([sys.executable, str(ROOT / "tests" / "servers" / "under_attack.py")]) as server:
        port = int(server.address.rpartition(":")[2])
        attacker = context.Process(target=attack, args=(port, addresses))
        attacker.start()
        try:
            times, refused = _measure(port, seconds)
            if not attacker.is_alive():
                raise RuntimeError("the attacks have ended by themselves")
            return Figures(_peak(server.process.pid), times, refused)
        finally:
            attacker.kill()
            attacker.join()


def _peak(pid: int) -> int:
    """Return the most memory in bytes that a process has had, on Linux."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) << 10


def judge(addresses: int, figures: Figures) -> list[str]:
    """Print the figures, and return those that are above their bounds."""
    median, worst = statistics.median(figures.times), max(figures.times)
    print(
        f"{addresses} attacking: peak memory of the server {figures.peak / MIB:.0f} MiB; calls of another client: "
        f"{len(figures.times)}, of which {figures.refused} refused, median {median:.0f} ms, worst {worst:.0f} ms"
    )
    faults = {
        "peak memory": figures.peak > MAX_PEAK_BYTES[addresses],
        "refused calls": addresses == 1 and figures.refused > 0,
        "median time": median > MAX_MEDIAN_MS,
        "worst time": worst > MAX_WORST_MS,
    }
    return [name for name, is_above in faults.items() if is_above]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    faults = [fault for addresses in MAX_PEAK_BYTES for fault in judge(addresses, attacked(options.seconds, addresses))]
    if faults:
        print(f"above the bounds: {', '.join(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
