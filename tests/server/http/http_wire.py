"""HTTP as bytes over sockets, for requests that no client library sends."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, TypeAlias

from tests import spoken
from tests.generated.backends import is_object
from tests.listening import Listening, listening
from tests.paths import ROOT

__all__ = [
    "LEGACY",
    "META",
    "MODERN",
    "Wire",
    "WireResponse",
    "WireServer",
    "call",
    "opening",
    "post",
    "request",
    "served",
]

LEGACY, MODERN = spoken.LEGACY[0], spoken.MODERN_REVISION
PATIENCE = 20.0
"""Seconds to wait for a response."""

Headers: TypeAlias = Mapping[str, "str | bytes | None"]

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CLIENT = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}


@dataclass(frozen=True)
class WireResponse:
    """A response, without the events of a stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_open: bool
    """True if the connection can be used for another request."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class WireServer:
    """A server under test."""

    running: Listening

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.running.address.removeprefix("http://").partition(":")
        return host, int(port)

    @property
    def complaints(self) -> list[str]:
        """The lines on standard error, without the warnings of uvicorn about wrong requests."""
        return [line for line in self.running.log_text.splitlines() if not line.startswith("WARNING:  ")]

    def session(self) -> str:
        """Open a session, and return its id."""
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
def served(*options: str) -> Generator[WireServer]:
    """Run a server in a process of its own."""
    script = str(ROOT / "tests" / "servers" / "over_http.py")
    with listening([sys.executable, script, *options]) as running:
        yield WireServer(running)


class Wire:
    """A connection that is opened with the first request."""

    def __init__(self, server: WireServer) -> None:
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

    def send(self, data: bytes, *, ends: bool = False) -> WireResponse | None:
        """Send a request, and return the response; None if the connection is closed without one.

        `ends` closes the sending side, even if the request announces more bytes.
        """
        if self._socket is None:
            self._socket = socket.create_connection(self._address, PATIENCE)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # the server may respond and close before all is sent
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


def _read(connection: socket.socket) -> WireResponse:
    with HTTPResponse(connection) as response:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        is_stream = headers.get("content-type", "").startswith("text/event-stream")
        body = b"" if is_stream else response.read()
        return WireResponse(response.status, headers, body, not (is_stream or response.will_close))


def request(method: str, target: str, headers: Headers | None = None, body: bytes | None = None) -> bytes:
    """Return a request with the headers that every request needs; a header of None is left out."""
    given: dict[str, str | bytes | None] = {"Host": "localhost", **(headers or {})}
    if body is not None:
        given.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {target} HTTP/1.1".encode("latin-1")]
    lines += [name.encode("latin-1") + b": " + _bytes(value) for name, value in given.items() if value is not None]
    return b"\r\n".join([*lines, b"", body or b""])


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def post(message: Any, headers: Headers | None = None) -> bytes:
    """Return a POST of a legacy message, or of any bytes instead."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    usual: Headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return request("POST", "/mcp", {**usual, **(headers or {})}, body)


def opening() -> tuple[bytes, Callable[[str], bytes]]:
    """Return the first request of a session, and the function that makes the second one from the session's id."""
    first = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT})
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return first, lambda session: post(done, {"Mcp-Session-Id": session})


def call(message: Any, headers: Headers | None = None) -> bytes:
    """Return a POST of a message of the newest revision, with the headers that it needs."""
    named: dict[str, str | bytes | None] = {"MCP-Protocol-Version": MODERN}
    if is_object(message):
        named["Mcp-Method"] = str(message.get("method"))
        params = message.get("params")
        if is_object(params) and isinstance(params.get("name"), str):
            named["Mcp-Name"] = params["name"].encode()
    return post(message, {**named, **(headers or {})})
