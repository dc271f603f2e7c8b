"""The defaults of serving with one call."""

from __future__ import annotations

import ipaddress

import pytest

from tests.helpers import Handler
from typedmcp.server.run import _http_server  # pyright: ignore[reportPrivateUsage]


def test_by_default_only_the_loopback_address_is_bound() -> None:
    pytest.importorskip("uvicorn")
    server, _ = _http_server(Handler(), None, None, {})
    assert ipaddress.ip_address(server.config.host).is_loopback
