"""Traces go on between our telemetry and the official Python SDK, in both directions."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.interop.install import INTEROP
from tests.listening import listening
from tests.paths import ROOT
from tests.typedmcp_otel.exported import Exported, trace_id

pytestmark = pytest.mark.long

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
PEER = str(ROOT / "tests" / "interop" / "traced_peer.py")
SERVER = [sys.executable, str(ROOT / "tests" / "servers" / "traced.py")]


@pytest.fixture(scope="module")
def python() -> str:
    """Return the interpreter with the official SDK 2.x, or skip the test."""
    found = INTEROP / "py2" / "bin" / "python"
    if not found.exists():
        pytest.skip("the official SDK is not installed: run tests/interop/install.py")
    return str(found)


def call_from_official_client(python: str, mode: str, target: list[str]) -> str:
    command = [python, PEER, "client", mode, f"00-{TRACE}-{PARENT}-01", *target]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "modern"), ("http", "legacy")])
def test_a_trace_of_the_official_client_is_continued(python: str, transport: str, mode: str, tmp_path: Path) -> None:
    file = tmp_path / "spans"
    if transport == "stdio":
        answer = call_from_official_client(python, mode, [*SERVER, str(file)])
    else:
        with listening([*SERVER, str(file), "http"]) as server:
            answer = call_from_official_client(python, mode, [f"{server.address}/mcp"])
    assert answer == "done"
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    (received,) = [span for span in spans if span["name"] == "tools/call work"]
    assert (received["context"]["trace_id"], received["parent_id"]) == (f"0x{TRACE}", f"0x{PARENT}")


def test_the_official_server_continues_our_trace(python: str) -> None:
    exported = Exported()

    async def main() -> Any:
        async with typedmcp.connect([python, PEER, "server"], telemetry=exported.telemetry) as client:
            return typedmcp.text_of(await client.call_tool("trace"))

    seen = asyncio.run(main())
    (sent,) = exported.spans("tools/call trace")
    assert seen == f"{trace_id(sent):032x}"
