"""Measure how long a client waits while another client attacks the same server over HTTP.

    python -m tools.second_client [SECONDS]

The server, the attack and the client are processes of their own; attack and client have different addresses of the
loopback interface. The client calls a coroutine function and a plain function, which needs a thread, in turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any

import typedmcp
from typedmcp.server.run import serve_async

SECOND, ATTACKER = "127.0.0.2", "127.0.0.3"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
server = typedmcp.Server("second-client")


@server.tool
async def quick(text: str = "") -> int:
    """Return at once."""
    return len(text)


@server.tool
def plain() -> str:
    """Return at once, in a thread."""
    return "plain"


@server.tool
def block() -> str:
    """Keep a thread for half a second."""
    time.sleep(0.5)
    return "blocked"


@server.tool
async def huge(size: int) -> str:
    """Return a large result."""
    return "x" * size


class RawClient:
    """A connection from one address."""

    def __init__(self, port: int, address: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))

    def post(self, body: bytes, **headers: str) -> int:
        """Send a message, read the response, and return its status."""
        fixed = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        self._http.request("POST", "/mcp", body, {**fixed, **headers})
        response = self._http.getresponse()
        response.read()
        return response.status

    def call(self, name: str, **arguments: Any) -> int:
        """Call a tool on the newest revision, and return the status."""
        params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        return self.post(body, **headers)

    def initialize(self, **client: str) -> int:
        """Begin a session, and return the status."""
        info = {"name": "client", "version": "1", **client}
        params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        return self.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode())


def _send_deep_bodies(connection: RawClient) -> None:
    arrays = "[" + "[]," * 1_300_000 + "[]]"
    body = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{arrays}}}}}'
    while True:
        connection.post(body.encode(), **{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"})


def _repeat(send: Callable[[RawClient], object]) -> Callable[[RawClient], None]:
    def attack(connection: RawClient) -> None:
        while True:
            send(connection)

    return attack


ATTACKS: dict[str, tuple[int, Callable[[RawClient], None]]] = {
    "none": (0, _send_deep_bodies),
    "small calls on 32 connections": (32, _repeat(lambda it: it.call("quick"))),
    "40 blocking calls": (40, _repeat(lambda it: it.call("block"))),
    "bodies of 4 MB with many arrays on 16 connections": (16, _send_deep_bodies),
    "results of 16 MB on 4 connections": (4, _repeat(lambda it: it.call("huge", size=16 << 20))),
    "sessions with 60 kB of description on 8 connections": (8, _repeat(lambda it: it.initialize(title="x" * 60_000))),
}


def _serve(port: int) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_async(server, "http", port=port))


def _attack(name: str, port: int) -> None:
    count, attack = ATTACKS[name]

    def run() -> None:
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                attack(RawClient(port, ATTACKER))

    for _ in range(count):
        threading.Thread(target=run, daemon=True).start()
    time.sleep(3600)


def _measure(port: int, seconds: float) -> dict[str, list[float]]:
    """Return the times of calls in milliseconds, by tool."""
    connection, times = RawClient(port, SECOND), dict[str, list[float]](quick=[], plain=[])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, found in times.items():
            began = time.perf_counter()
            status = connection.call(name)
            found.append((time.perf_counter() - began) * 1000)
            if status != 200:
                raise SystemExit(f"{name}: status {status}")
        time.sleep(0.002)
    return times


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    context = multiprocessing.get_context("spawn")
    print("| attack | async: median | async: worst in 100 | thread: median | thread: worst in 100 |")
    print("|---|---|---|---|---|")
    for name in ATTACKS:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        processes = [context.Process(target=_serve, args=(port,)), context.Process(target=_attack, args=(name, port))]
        processes[0].start()
        time.sleep(2)
        processes[1].start()
        time.sleep(2)
        found = _measure(port, seconds)
        figures = " | ".join(f"{q:.1f} ms" for each in found.values() for q in (quantiles(each, n=100)[49::49]))
        print(f"| {name} | {figures} |", flush=True)
        for process in processes:
            process.kill()
            process.join()


if __name__ == "__main__":
    main()
