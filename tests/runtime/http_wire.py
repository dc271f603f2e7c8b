"""HTTP by hand, for what no client would send: whole requests as bytes over sockets that are kept open."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, TypeAlias

from tests.generated.backends import is_object
from tests.listening import Listening, listening

__all__ = ["LEGACY", "META", "MODERN", "Answer", "Server", "Wire", "call", "opening", "post", "request", "served"]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PATIENCE = 20.0
"""Seconds after which an answer is given up."""

Headers: TypeAlias = Mapping[str, "str | bytes | None"]

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CLIENT = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}


@dataclass(frozen=True)
class Answer:
    """A response, as far as it was read: not the events of a stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_open: bool
    """Whether the connection can be used for another request."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    """A server under test."""

    running: Listening

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.running.address.removeprefix("http://").partition(":")
        return host, int(port)

    @property
    def complaints(self) -> list[str]:
        """What it has written to standard error, but for the warnings of uvicorn, which are about its own clients."""
        return [line for line in self.running.said.splitlines() if not line.startswith("WARNING:  ")]

    def session(self) -> str:
        """Open a session."""
        first, second = opening()
        with Wire(self) as wire:
            answer = wire.send(first)
            assert answer is not None
            session = answer.headers["mcp-session-id"]
            answer = wire.send(second(session))
            assert answer is not None
            assert answer.status == 202
            return session


@contextmanager
def served(*options: str) -> Generator[Server]:
    """A server in a process of its own."""
    script = str(Path(__file__).parent / "servers" / "over_http.py")
    with listening([sys.executable, script, *options]) as running:
        yield Server(running)


class Wire:
    """A connection that is opened when it is needed."""

    def __init__(self, server: Server) -> None:
        self._address = server.address
        self._socket: socket.socket | None = None

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, data: bytes, *, ends: bool = False) -> Answer | None:
        """Send a request, and read what is answered; None where the connection is closed without a word.

        `ends` says that nothing more will be sent, whatever the request seems to promise.
        """
        if self._socket is None:
            self._socket = socket.create_connection(self._address, PATIENCE)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # an answer may come, and the end of the connection, before all is sent
            self._socket.sendall(data)
            if ends:
                self._socket.shutdown(socket.SHUT_WR)
        try:
            answer = _read(self._socket)
        except ConnectionError:
            answer = None
        if answer is None or not answer.is_open or ends:
            self.close()
        return answer


def _read(connection: socket.socket) -> Answer:
    with HTTPResponse(connection) as response:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        is_stream = headers.get("content-type", "").startswith("text/event-stream")
        body = b"" if is_stream else response.read()
        return Answer(response.status, headers, body, not (is_stream or response.will_close))


def request(method: str, target: str, headers: Headers | None = None, body: bytes | None = None) -> bytes:
    """A request, with what every one needs unless the headers say otherwise: None leaves one out."""
    given: dict[str, str | bytes | None] = {"Host": "localhost", **(headers or {})}
    if body is not None:
        given.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {target} HTTP/1.1".encode("latin-1")]
    lines += [name.encode("latin-1") + b": " + _bytes(value) for name, value in given.items() if value is not None]
    return b"\r\n".join([*lines, b"", body or b""])


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def post(message: Any, headers: Headers | None = None) -> bytes:
    """A message of an older revision, or whatever bytes stand for one."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    usual: Headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return request("POST", "/mcp", {**usual, **(headers or {})}, body)


def opening() -> tuple[bytes, Callable[[str], bytes]]:
    """What opens a session: a first request, and a second one once that has answered with the session's id."""
    first = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT})
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return first, lambda session: post(done, {"Mcp-Session-Id": session})


def call(message: Any, headers: Headers | None = None) -> bytes:
    """A message of the newest revision, with the headers that it needs."""
    named: dict[str, str | bytes | None] = {"MCP-Protocol-Version": MODERN}
    if is_object(message):
        named["Mcp-Method"] = str(message.get("method"))
        params = message.get("params")
        if is_object(params) and isinstance(params.get("name"), str):
            named["Mcp-Name"] = params["name"].encode()
    return post(message, {**named, **(headers or {})})
