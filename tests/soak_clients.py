"""Clients of the soak over plain sockets: some count their answers, others read slowly, vanish, or are killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.paths import ROOT
from tests.server.http.http_wire import LEGACY, META, WireServer, call, opening, post, request

__all__ = ["Tally", "count_answers", "fill_known_heads", "generate_load", "kill_a_client", "read_slowly", "vanish"]

LARGE: Final = 4 << 20
TIMEOUT: Final = 60.0
"""Seconds to wait for an answer, on a machine that is busy with other work."""
HEADS: Final = 3000
CONNECTIONS: Final = 32
"""Connections of the load generator."""


@dataclass
class Tally:
    """The calls of all clients that count, which end when `stopping` is set."""

    sent: int = 0
    answered: int = 0
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(100_000))
    stopping: bool = False


_session: Final[dict[WireServer, str]] = {}
"""The session of the clients that vanish."""


class Connection:
    """A connection with HTTP/1.1 as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def write(self, data: bytes, rng: random.Random) -> None:
        """Write at once, or in two or three pieces."""
        places = sorted(rng.randrange(len(data)) for _ in range(rng.choice([0, 0, 1, 2])))
        for start, end in itertools.pairwise([0, *places, len(data)]):
            self.writer.write(data[start:end])
            await asyncio.sleep(0)

    async def read_head(self) -> bytes:
        """Read the head of a response that accepts a request."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 202 ", b"HTTP/1.1 204 ")), head
        return head

    async def read_body(self, head: bytes) -> bytes:
        """Read the body that belongs to a head."""
        if length := re.search(rb"(?i)\r\ncontent-length: (\d+)", head):
            return await self.reader.readexactly(int(length[1]))
        parts = list[bytes]()
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            parts.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readexactly(2)
        return b"".join(parts)

    async def read_message(self) -> Any:
        """Read the last message of a response with JSON or with events."""
        head = await self.read_head()
        body = await self.read_body(head)
        if b"\r\ncontent-type: text/event-stream" in head.lower():
            body = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and len(line) > 6][-1]
        return json.loads(body)


@asynccontextmanager
async def connected(server: WireServer) -> AsyncGenerator[Connection]:
    """Open a connection, and abort it at the end."""
    reader, writer = await asyncio.open_connection(*server.address)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def fill_known_heads(server: WireServer) -> None:
    """Send so many different heads that the server keeps no more of them."""
    message = json.loads(_make_message("echo", 1, META))
    async with connected(server) as connection:
        for number in range(HEADS):
            connection.writer.write(call(message, {"X-Number": str(number)}))
            await connection.read_message()


async def count_answers(server: WireServer, rng: random.Random, tally: Tally) -> None:
    """Send calls that the server counts, a few at a time, with and without a session, until they are to stop.

    Raises `AssertionError` for an answer that is not the one to the next call.
    """
    while not tally.stopping:
        async with connected(server) as connection:
            session = await _open_session(connection) if rng.random() < 0.5 else None
            make = _make_modern if session is None else partial(_make_legacy, session)
            for _ in range(rng.randrange(100)):
                ids = [next(tally.ids) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
                tally.sent += len(ids)
                async with asyncio.timeout(TIMEOUT):
                    calls = b"".join(make("count", id, reports=rng.random() < 0.3) for id in ids)
                    await connection.write(calls, rng)
                    for id in ids:
                        message = await connection.read_message()
                        assert message["id"] == id, (message, id)
                        assert message["result"]["content"][0]["text"] == f"counted {id}", message
                        tally.answered += 1
                if tally.stopping:
                    break
            if session is not None:
                connection.writer.write(request("DELETE", "/mcp", {"Mcp-Session-Id": session}))
                await connection.read_head()


async def read_slowly(server: WireServer, rng: random.Random) -> None:
    """Read a large answer in small pieces, and all of it or only a part."""
    async with connected(server) as connection:
        connection.writer.write(_make_modern("large", 1, n=LARGE))
        await connection.read_head()
        left, until = LARGE, LARGE if rng.random() < 0.2 else rng.randrange(LARGE)
        while left > LARGE - until:
            piece = await connection.reader.read(1 << 16)
            assert piece
            left -= len(piece)
            await asyncio.sleep(0.01)


async def vanish(server: WireServer, rng: random.Random) -> None:
    """Reset the connection in the middle of a request, a stream, or a session."""
    async with connected(server) as connection:
        if rng.random() < 0.3:
            if server not in _session:
                _session[server] = await _open_session(connection)
            data = _make_legacy(_session[server], "many", 1, n=1000, reports=True)
        else:
            data = _make_modern(rng.choice(["echo", "large", "many"]), 1, n=1000, reports=True)
        connection.writer.write(data[: rng.choice([len(data), rng.randrange(1, len(data))])])
        await asyncio.sleep(rng.random() / 50)


_KILLED: Final = """
import socket, sys, time
sockets = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(8)]
for one in sockets:
    one.sendall(bytes.fromhex(sys.argv[3]))
print(flush=True)
time.sleep(600)
"""


async def kill_a_client(server: WireServer, rng: random.Random) -> None:
    """Kill a process that has eight streams open and reads none."""
    host, port = server.address
    data = _make_modern("many", 1, n=100_000, reports=True).hex()
    command = [sys.executable, "-S", "-c", _KILLED, host, str(port), data]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        await asyncio.sleep(rng.random())
    finally:
        process.kill()
        await process.wait()
    await asyncio.sleep(1)


async def generate_load(server: WireServer, seconds: float) -> None:
    """Let wrk call a tool as often as the server can, if it is installed. Raises if a response is not the right one."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("wrk is not installed: no full load")
        return
    body = _make_message("echo", 0, META).replace('"id": 0', '"id": 000000000')
    head = call(json.loads(_make_message("echo", 0, META))).partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    headers = [part for line in head if not line.startswith(("Host", "Content-Length")) for part in ("-H", line)]
    host, port = server.address
    target = ["-s", str(ROOT / "bench" / "contenders" / "http" / "calls.lua"), f"http://{host}:{port}/mcp"]
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{max(1, int(seconds))}s", "--timeout", f"{TIMEOUT:.0f}s"]
    process = await asyncio.create_subprocess_exec(
        *[wrk, *options, *headers, *target, "--", body, '"I am echo"', "100000000", "0"],
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    counts = json.loads(output.splitlines()[-1])
    print(f"the load generator: {counts['requests'] / counts['seconds']:,.0f} calls a second")
    assert counts["requests"], counts
    assert not counts["wrong"] + counts["not_2xx"] + counts["broken"], counts


def _make_message(tool: str, id: int, meta: dict[str, Any], **arguments: object) -> str:
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


def _make_modern(tool: str, id: int, *, n: int | None = None, reports: bool = False) -> bytes:
    meta = {**META, "progressToken": id} if reports else META
    return call(json.loads(_make_message(tool, id, meta, n=id if n is None else n)))


def _make_legacy(session: str, tool: str, id: int, *, n: int | None = None, reports: bool = False) -> bytes:
    message = _make_message(tool, id, {"progressToken": id} if reports else {}, n=id if n is None else n)
    return post(json.loads(message), {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY})


async def _open_session(connection: Connection) -> str:
    """Open a session, and return its id."""
    first, make_second = opening()
    connection.writer.write(first)
    head = await connection.read_head()
    await connection.read_body(head)
    found = re.search(rb"(?i)\r\nmcp-session-id: (\S+)", head)
    assert found is not None
    session = found[1].decode()
    connection.writer.write(make_second(session))
    await connection.read_body(await connection.read_head())
    return session
