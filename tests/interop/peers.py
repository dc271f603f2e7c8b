"""The real clients, and what each of them saw of the server under test."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.interop import install
from tests.listening import listening

__all__ = ["COMMAND", "HTTP", "PATHS", "PEERS", "SERVER", "SSE", "Peer", "node", "printed", "scenario"]

JSON: TypeAlias = Any

HERE = Path(__file__).parent
COMMAND = [sys.executable, str(HERE.parent / "conformance" / "server.py"), "stdio"]
"""What starts the server under test."""

SERVER = [*COMMAND[:-1], "http"]
"""What starts it over HTTP."""

PATIENCE = 120
"""Seconds after which a client is given up: it takes three or so."""


@dataclass(frozen=True)
class Peer:
    """A client on one revision and one transport."""

    client: str
    revision: str
    transport: str = "stdio"

    def __str__(self) -> str:
        return f"{self.client} on {self.revision} over {self.transport}"

    @property
    def is_modern(self) -> bool:
        return self.revision == "2026-07-28"

    @property
    def has_forms(self) -> bool:
        """Whether the revision lets a server ask the user."""
        return self.revision >= "2025-06-18"

    def saw(self, step: str) -> JSON:
        """What the client saw in a step of the scenario."""
        seen = _seen(self)[step]
        assert "failed" not in (seen or {}), seen["failed"]
        return seen

    def over(self, transport: str) -> Peer:
        return replace(self, transport=transport)

    def command(self, *target: str) -> list[str]:
        """What runs the client: against a command that starts the server, or its URL."""
        if self.client == "typescript":
            modules = install.INTEROP / "node" / "node_modules"
            return [node(), str(HERE / "typescript_client.mjs"), str(modules), self.revision, self.transport, *target]
        interpreter = str(install.python("py1" if self.client == "python 1" else "py2"))
        mode = "modern" if self.is_modern else "legacy"
        return [interpreter, str(HERE / "python_client.py"), mode, self.transport, *target]


STDIO = [
    Peer("python 1", "2025-11-25"),
    Peer("python 2", "2025-11-25"),
    Peer("python 2", "2026-07-28"),
    Peer("typescript", "2024-11-05"),
    Peer("typescript", "2025-03-26"),
    Peer("typescript", "2025-06-18"),
    Peer("typescript", "2025-11-25"),
    Peer("typescript", "2026-07-28"),
]
HTTP = [peer.over("http") for peer in STDIO]
SSE = [peer.over("sse") for peer in STDIO if not peer.is_modern]
PEERS = STDIO + HTTP + SSE
PATHS = {"http": "/mcp", "sse": "/sse"}


def node() -> str:
    return str(install.node() / "bin" / "node")


@cache
def _seen(peer: Peer) -> dict[str, JSON]:
    """Run the scenario: once for all tests, since they look at different parts of it."""
    if peer.transport == "stdio":
        return _read(printed(peer.command(*COMMAND)))
    with listening(SERVER) as server:
        return scenario(peer, server.address)


def scenario(peer: Peer, address: str) -> dict[str, JSON]:
    """What a client saw in every step, of a server that listens already."""
    return _read(printed(peer.command(address + PATHS[peer.transport])))


def _read(output: str) -> dict[str, JSON]:
    seen: dict[str, JSON] = json.loads(output)
    return seen


def printed(command: list[str], env: dict[str, str] | None = None) -> str:
    """What a command prints. Skips the test where the clients are not installed."""
    if not Path(command[0]).exists():
        pytest.skip("the clients are not installed: run tests/interop/install.py")
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, env=env).stdout
