"""The access log: a line for each request, and a line with the reason for each rejected request."""

from __future__ import annotations

import logging
import re
import subprocess
import sys

import pytest

from tests.server.http.asgi_driver import Served, in_loop, message, serving
from typedmcp import Principal, StaticTokens

INITIALIZE = message(
    id=1,
    method="initialize",
    params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "typedmcp.access")
    return caplog


def texts(records: list[logging.LogRecord]) -> list[str]:
    found = [record.getMessage() for record in records if record.name == "typedmcp.access"]
    return [re.sub(r" \d+\.\d ms", " 0.0 ms", text) for text in found]


async def use(served: Served) -> None:
    """Make requests of both kinds of revisions, and one that is rejected."""
    await served.ask("tools/list").reply()
    await served.ask("tools/list").reply()  # takes the hot path
    await served.post(INITIALIZE)
    await served.post(message(method="notifications/initialized"))
    await served.request("PUT")


def test_each_request_has_a_line_with_its_mcp_method(lines: pytest.LogCaptureFixture) -> None:
    @in_loop
    async def main() -> None:
        async with serving(sessions=False) as served:
            await use(served)

    main()
    got = [re.sub(r"^\S+ ", "", text) for text in texts(lines.records)]
    assert got == [
        "POST /mcp 200 0.0 ms tools/list",
        "POST /mcp 200 0.0 ms tools/list",
        "POST /mcp 200 0.0 ms initialize",
        "POST /mcp 202 0.0 ms notifications/initialized",
        "PUT /mcp rejected with 405: PUT is not allowed; allowed: POST",
        "PUT /mcp 405 0.0 ms -",
    ]


def test_a_rejected_request_is_a_warning_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "typedmcp.access")

    @in_loop
    async def main() -> None:
        async with serving() as served:
            await served.ask("tools/list").reply()
            await served.request("POST", [(b"host", b"evil.test")], b"{}", bare=True)

    main()
    (text,) = texts(caplog.records)
    assert "rejected with 421: the host 'evil.test' is not served here" in text


def test_a_body_that_is_too_deep_is_logged_with_the_reason(lines: pytest.LogCaptureFixture) -> None:
    @in_loop
    async def main() -> None:
        async with serving() as served:
            await served.post(b'{"id":7,"method":"ping","params":' + b"[" * 5000)

    main()
    rejected, text = texts(lines.records)
    assert rejected.endswith(
        "rejected with 400: nested too deeply: more than 200 levels of arrays and objects (message_depth)"
    )
    assert text.endswith("POST /mcp 400 0.0 ms -")


def test_text_of_clients_is_escaped_and_shortened(lines: pytest.LogCaptureFixture) -> None:
    @in_loop
    async def main() -> None:
        async with serving() as served:
            await served.post(b"{}", path="/a\nINFO: forged\x1b[2J" + "x" * 1000)
            await served.post(message(id=1, method="a\nb" + "y" * 1000))

    main()
    got = texts(lines.records)
    assert r"/a\x0aINFO: forged\x1b[2Jxxx" in got[0]
    assert r"a\x0abyyy" in got[-1]
    assert all("\n" not in text and "\x1b" not in text and len(text) < 700 for text in got)


def test_tokens_and_queries_are_not_logged(lines: pytest.LogCaptureFixture) -> None:
    @in_loop
    async def main() -> None:
        async with serving(auth=StaticTokens({"secret-token": Principal("ada")})) as served:
            await served.ask("tools/list", headers={"authorization": "Bearer secret-token"}).reply()
            await served.ask("tools/list", headers={"authorization": "Bearer wrong-token"}).reply()

    main()
    assert [" 200 " in text for text in texts(lines.records)] == [True, False, False]
    assert not any("token" in text.replace("the token is not valid", "") for text in texts(lines.records))


def test_without_a_configuration_of_logging_nothing_is_printed() -> None:
    code = """
import asyncio, typedmcp
app = typedmcp.asgi(typedmcp.Server("quiet"))
async def main():
    async def receive(): return {"type": "http.request", "body": b"{}"}
    async def send(message): pass
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"evil.test")]}
    await app(scope, receive, send)
    await app.close()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
