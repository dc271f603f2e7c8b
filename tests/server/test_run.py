"""The checks and warnings of `serve` before it serves, and the transports of `serve_async`."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.cases import each
from tests.server.http.asgi_driver import ToolHandler
from typedmcp import sync
from typedmcp.server.run import _http_server  # pyright: ignore[reportPrivateUsage]


@each(
    "host, options, is_warned",
    [
        ("0.0.0.0", {}, True),  # noqa: S104  # nothing is bound
        ("::", {}, True),
        ("", {}, True),
        ("2001:db8::1", {}, False),
        ("0.0.0.0", {"hosts": ["mcp.example.com"]}, False),  # noqa: S104
        ("127.0.0.1", {}, False),
        ("192.0.2.1", {}, False),
        (None, {}, False),
    ],
    ids=str,
)
def test_serving_other_machines_without_their_names_is_warned_of(
    host: str | None, options: Any, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    _http_server(ToolHandler(), host, None, options)
    texts = [record.getMessage() for record in caplog.records if record.name == "typedmcp"]
    assert len(texts) == is_warned
    assert all("hosts=" in text and "421" in text for text in texts)


IN_A_LOOP = """
import asyncio, typedmcp

server = typedmcp.Server("s")
served = []

@server.tool
async def count() -> int:
    served.append(1)
    return len(served)

async def main() -> None:
    await typedmcp.serve_async(server)
    raise SystemExit(0 if served == [1] else 1)

asyncio.run(main())
"""


def test_a_server_serves_standard_input_and_output_inside_a_running_loop() -> None:
    with sync.connect([sys.executable, "-W", "error", "-c", IN_A_LOOP]) as client:
        assert client.call_tool("count").structured_content == {"result": 1}
