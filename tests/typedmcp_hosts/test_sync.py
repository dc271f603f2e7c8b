"""Blocking groups of clients, used from plain code."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_client import text
from tests.conformance import server
from typedmcp_hosts import ClientGroup, sync

BLOCKING = [
    name
    for name in dir(sync.SyncClientGroup)
    if not name.startswith("_") and name != "run" and callable(getattr(sync.SyncClientGroup, name, None))
]


@each("name", BLOCKING)
def test_a_blocking_method_has_the_parameters_of_the_async_method(name: str) -> None:
    blocking, awaited = (inspect.signature(getattr(each, name)) for each in (sync.SyncClientGroup, ClientGroup))
    assert blocking.parameters == awaited.parameters


@each("name", [each for each in BLOCKING if each not in ("open", "close")])
def test_a_blocking_method_has_the_documentation_of_the_async_method(name: str) -> None:
    assert getattr(sync.SyncClientGroup, name).__doc__ == getattr(ClientGroup, name).__doc__


def test_every_method_of_the_async_group_has_a_blocking_one() -> None:
    assert {name for name in vars(ClientGroup) if not name.startswith("_")} == {*BLOCKING}


def test_a_blocking_group_calls_its_servers_and_has_the_failures() -> None:
    failed: list[str] = []
    config: dict[str, Any] = {"all": server.Everything(), "gone": ["no-such-command"]}
    with sync.connect_all(config, on_failure=lambda name, error: failed.append(name), separator="-") as group:
        assert [*group.servers] == ["all"]
        assert [*group.failures] == failed == ["gone"]
        assert "all-test_x_mcp_header" in [tool.name for tool in group.tools()]
        assert text(group.call_tool("all-test_x_mcp_header", {"region": "north"})) == "Region: north"
        assert group.call_tool("all-test_x_mcp_header", {"region": "south"}, result_type=str) == "Region: south"
    with pytest.raises(typedmcp.UsageError, match="closed"):
        group.open()
