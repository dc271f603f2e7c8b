"""The checks and warnings of `serve` before it serves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.server.http.asgi_driver import ToolHandler
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
