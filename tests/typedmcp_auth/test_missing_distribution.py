"""What needs the distribution says how to install it, where it is not installed."""

from __future__ import annotations

import sys

import pytest

import typedmcp
import typedmcp_hosts
from typedmcp_cli.options import ConnectionOptions
from typedmcp_cli.status import CommandExit
from typedmcp_cli.targets import make_connect_options

URL = "http://127.0.0.1:1/mcp"


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typedmcp_auth", None)


def test_an_entry_of_a_configuration_that_signs_in_names_the_extra() -> None:
    entries = typedmcp_hosts.load_config({"mcpServers": {"a": {"url": URL, "auth": "oauth"}}})
    with pytest.raises(typedmcp.UsageError, match=r'"auth": "oauth" needs the extra auth: .*typedmcp\[auth\]'):
        entries["a"].connect()


def test_the_option_of_commands_that_signs_in_names_the_extra() -> None:
    with pytest.raises(CommandExit, match=r"--oauth needs the extra auth: .*typedmcp\[auth\]"):
        make_connect_options(ConnectionOptions(oauth=True))
