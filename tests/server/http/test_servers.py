"""The application under real servers and in frameworks, each in a process and on a port of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest

import typedmcp
from tests import spoken
from tests.cases import each
from tests.paths import ROOT
from tests.ports import reserved_port
from tests.server.http.asgi_driver import in_loop, message
from tests.server.http.streaming import begin_session, calling, connections, entered, handler_endings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="servers are ended by signals")


HERE = "tests.server.http.applications"
PATIENCE = 60.0

UVICORN = ["-m", "uvicorn", "--port", "{port}", "--timeout-graceful-shutdown", "0", "--factory"]
GRANIAN = ["-m", "granian", "--interface", "asgi", "--port", "{port}", "--factory", "--workers-kill-timeout", "1"]
COMMANDS: dict[str, list[str]] = {
    "uvicorn h11": [*UVICORN, "--http", "h11", f"{HERE}:plain"],
    "uvicorn httptools": [*UVICORN, "--http", "httptools", f"{HERE}:plain"],
    "granian": [*GRANIAN, f"{HERE}:plain"],
    "hypercorn": [
        "-m",
        "hypercorn",
        "--bind",
        "127.0.0.1:{port}",
        "--graceful-timeout",
        "0",
        f"{HERE}:plain()",
    ],
    "serve": ["-c", f"from {HERE} import serve; serve({{port}})"],
}
NO_LIFESPAN = "uvicorn below a path, without a lifespan"
MOUNTED: dict[str, tuple[list[str], list[str]]] = {
    "Starlette": ([*UVICORN, f"{HERE}:in_starlette"], ["/mcp", "/below/mcp", "/below/mcp/"]),
    "FastAPI below a path": ([*UVICORN, "--root-path", "/api", f"{HERE}:in_fastapi"], ["/mcp", "/below/mcp"]),
    NO_LIFESPAN: ([*UVICORN, "--lifespan", "off", "--root-path", "/api", f"{HERE}:plain"], ["/mcp"]),
}


# Servers


class RunningServer:
    """A running server."""

    def __init__(self, name: str, arguments: list[str], log: Path) -> None:
        self.name = name
        self._reservation = ExitStack()
        self.port = self._reservation.enter_context(reserved_port())
        self.log = log
        self._log_before = 0
        self._is_ending = False
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
        environment.pop("WEB_CONCURRENCY", None)
        command = [sys.executable, *(argument.replace("{port}", str(self.port)) for argument in arguments)]
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            assert self.process.poll() is None, self.log_text
            assert time.monotonic() < deadline, self.log_text
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)

    @property
    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        """Ask the server to shut down."""
        self._log_before = len(self.log_text)
        self._is_ending = True
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Shut the server down within a time. Its log must have no errors or warnings."""
        try:
            if self.process.poll() is None and not self._is_ending:
                self.stop()
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self._reservation.close()
        before, after = self.log_text[: self._log_before], self.log_text[self._log_before :]
        assert not any(word in before for word in ("Traceback", "ERROR", "Warning", "Exception")), self.log_text
        # Servers that cancel open requests log a traceback for them.
        assert not any(word in after for word in ("never retrieved", "never awaited", "destroyed", "Warning")), (
            self.log_text
        )


@pytest.fixture(scope="module", params=COMMANDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningServer]:
    """Run one server of each kind."""
    running = RunningServer(request.param, COMMANDS[request.param], tmp_path_factory.mktemp("server") / "log")
    yield running
    running.end()


# Requests


@in_loop
async def _requests(port: int, path: str) -> None:
    async with connections(port, 1) as (connection,):
        for _ in range(3):
            await connection.call("echo", path=path, text="ü")
            assert (connection.status, await connection.text()) == (200, "ü")
        await connection.call("report", path=path, meta={"progressToken": 1})
        assert connection.headers["content-type"] == "text/event-stream"
        assert connection.headers["x-accel-buffering"] == "no"
        assert [each.get("method") for each in await connection.rest()] == [*["notifications/progress"] * 2, None]
        await connection.call("turn", path=path)
        assert await connection.text() == "turned"


def test_requests_are_answered_in_order_on_one_connection(server: RunningServer) -> None:
    _requests(server.port, "/mcp")


REFUSED: list[tuple[str, dict[str, str], bytes, str, int]] = [
    ("POST", {}, b"{", "/mcp", 400),
    ("POST", {"mcp-session-id": "x"}, message(id=1, method="ping"), "/mcp", 404),
    ("POST", {"content-type": "text/plain"}, b"{}", "/mcp", 415),
    ("POST", {"accept": "text/html"}, b"{}", "/mcp", 406),
    ("POST", {"origin": "http://evil.test"}, b"{}", "/mcp", 403),
    ("POST", {"host": "evil.test"}, b"{}", "/mcp", 421),
    ("PUT", {}, b"{}", "/mcp", 405),
    ("HEAD", {}, b"", "/mcp", 405),
    ("OPTIONS", {}, b"", "/mcp", 405),
    ("GET", {}, b"", "/x", 404),
    ("DELETE", {}, b"", "/mcp", 400),
]


@each("method, headers, body, path, status", REFUSED)
def test_a_rejected_request_does_not_close_the_connection(
    method: str, headers: dict[str, str], body: bytes, path: str, status: int, server: RunningServer
) -> None:
    @in_loop
    async def main() -> None:
        async with connections(server.port, 1) as (connection,):
            await connection.send(method, headers, body, path)
            assert connection.status == status
            await connection.body()
            await connection.call("echo")
            assert await connection.text() == "echo"

    main()


def test_a_body_that_is_too_long_is_rejected_before_it_is_sent(server: RunningServer) -> None:
    @in_loop
    async def main() -> None:
        async with connections(server.port) as (one, other):
            await one.send("POST", {"content-length": "99999999"}, b"{")
            assert one.status == 413
            await other.call("echo", text="x" * 1_000_000)
            assert await other.text() == "x" * 1_000_000

    main()


def test_a_client_that_sends_a_body_that_is_too_long_gets_the_response(server: RunningServer) -> None:
    """A connection that is closed while bytes are unread loses what was sent before."""
    if server.name == "granian":
        pytest.skip("Granian itself closes the connection with the response")
    body = b"a" * 16_000_000
    for _ in range(3):
        connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
        try:
            connection.request("POST", "/mcp", body, {"content-type": "application/json", "accept": "*/*"})
            response = connection.getresponse()
            assert response.status == 413
            assert b"the body is too long" in response.read()
        finally:
            connection.close()

    @in_loop
    async def main() -> None:
        for revision in (spoken.LEGACY[0], spoken.MODERN_REVISION):
            async with typedmcp.connect(f"http://127.0.0.1:{server.port}/mcp", revisions=[revision]) as client:
                with pytest.raises(typedmcp.RemoteError, match="the body is too long"):
                    await client.call_tool("echo", {"text": "a" * len(body)})
                await client.list_tools()

    main()


def test_a_call_is_cancelled_when_the_client_disconnects(server: RunningServer) -> None:
    @in_loop
    async def main() -> None:
        async with connections(server.port) as (one, other):
            before = await handler_endings(other)
            waiting = asyncio.ensure_future(one.call("wait"))
            await entered(other)
            one.close()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await waiting
            while (after := await handler_endings(other)) == before:
                await asyncio.sleep(0.01)
            assert after == [*before, "cancelled"]

    main()


def test_a_listener_gets_changes_until_it_disconnects(server: RunningServer) -> None:
    @in_loop
    async def main() -> None:
        async with connections(server.port, 3) as (one, two, other):
            for each in (one, two):
                await each.listen()
                assert (await each.next_message())["method"] == "notifications/subscriptions/acknowledged"
            await other.call("change")
            assert await other.text() == "changed"
            for each in (one, two):
                assert (await each.next_message())["method"] == "notifications/tools/list_changed"
            one.close()
            await other.call("change")
            await other.text()
            assert (await two.next_message())["method"] == "notifications/tools/list_changed"

    main()


def test_a_session_continues_on_other_connections(server: RunningServer) -> None:
    @in_loop
    async def main() -> None:
        async with connections(server.port, 4) as (one, two, three, other):
            headers = await begin_session(one)
            await two.send("GET", {**headers, "accept": "text/event-stream"})
            assert two.status == 200
            first = await two.event()
            assert first.id
            await other.call("change")
            await other.text()
            assert (await two.next_message())["method"] == "notifications/tools/list_changed"
            await one.send("POST", headers, calling("wait"))
            primed = await one.event()
            one.close()
            await three.send("GET", {**headers, "accept": "text/event-stream", "last-event-id": str(primed.id)})
            assert three.status == 200
            await other.call("release")
            await other.text()
            assert (await three.next_message())["result"]["content"][0]["text"] == "waited"
            assert await three.rest() == []
            await other.send("DELETE", headers)
            assert (other.status, await other.body()) == (204, b"")
            assert await two.rest() == []
            await other.send("POST", headers, calling("echo"))
            assert other.status == 404

    main()


def test_the_two_endpoints_of_2024_11_05_are_served(server: RunningServer) -> None:
    @in_loop
    async def main() -> None:
        async with connections(server.port) as (one, other):
            await one.send("GET", {"accept": "text/event-stream"}, path="/sse")
            endpoint = await one.event()
            assert isinstance(endpoint.data, bytes)
            await other.send("POST", {}, message(id=1, method="ping"), endpoint.data.decode())
            assert (other.status, await other.body()) == (202, b"")
            assert await one.next_message() == {"jsonrpc": "2.0", "id": 1, "result": {}}

    main()


def test_a_server_that_shuts_down_ends_its_streams(server: RunningServer) -> None:
    """This is the last test of each server, since it shuts the server down."""
    if server.name == "hypercorn" and sys.version_info >= (3, 12):
        pytest.skip("from Python 3.12 on, hypercorn waits for all that is open before it tells the application")

    @in_loop
    async def main() -> None:
        async with connections(server.port, 4) as (one, two, session, sse):
            for each in (one, two):
                await each.listen()
                await each.next_message()
            headers = await begin_session(session)
            await session.send("GET", {**headers, "accept": "text/event-stream"})
            await session.event()
            await sse.send("GET", {"accept": "text/event-stream"}, path="/sse")
            await sse.event()
            server.stop()
            for each in (one, two):
                cancelled, answer = await each.rest()
                assert cancelled["method"] == "notifications/cancelled"
                assert (answer["id"], answer["result"]["resultType"]) == ("l", "complete")
            await session.read_to_close()
            while server.process.poll() is None:
                await asyncio.sleep(0.01)

    main()


@each("name", MOUNTED)
def test_a_mounted_application_is_served(name: str, tmp_path: Path) -> None:
    arguments, paths = MOUNTED[name]
    running = RunningServer(name, arguments, tmp_path / "log")
    try:
        for path in paths:
            _requests(running.port, path)

        @in_loop
        async def main() -> None:
            async with connections(running.port) as (one, other):
                await one.listen(paths[-1])
                assert (await one.next_message())["method"] == "notifications/subscriptions/acknowledged"
                await other.call("change", path=paths[0])
                await other.text()
                assert (await one.next_message())["method"] == "notifications/tools/list_changed"
                running.stop()
                if name == NO_LIFESPAN:  # then the server does not wait for the last messages
                    await one.read_to_close()
                    return
                assert (await one.rest())[-1]["result"]["resultType"] == "complete"

        main()
    finally:
        running.end()
