"""The real clients, and what each of them saw of the server under test."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.interop import install

__all__ = ["COMMAND", "PEERS", "Peer", "node", "printed"]

JSON: TypeAlias = Any

HERE = Path(__file__).parent
COMMAND = [sys.executable, str(HERE.parent / "conformance" / "server.py"), "stdio"]
"""What starts the server under test."""

PATIENCE = 120
"""Seconds after which a client is given up: it takes three or so."""


@dataclass(frozen=True)
class Peer:
    """A client on one revision."""

    client: str
    revision: str

    def __str__(self) -> str:
        return f"{self.client} on {self.revision}"

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

    @property
    def command(self) -> list[str]:
        if self.client == "typescript":
            modules = install.INTEROP / "node" / "node_modules"
            return [node(), str(HERE / "typescript_client.mjs"), str(modules), self.revision, *COMMAND]
        interpreter = str(install.python("py1" if self.client == "python 1" else "py2"))
        mode = "modern" if self.is_modern else "legacy"
        return [interpreter, str(HERE / "python_client.py"), mode, *COMMAND]


PEERS = [
    Peer("python 1", "2025-11-25"),
    Peer("python 2", "2025-11-25"),
    Peer("python 2", "2026-07-28"),
    Peer("typescript", "2024-11-05"),
    Peer("typescript", "2025-03-26"),
    Peer("typescript", "2025-06-18"),
    Peer("typescript", "2025-11-25"),
    Peer("typescript", "2026-07-28"),
]


def node() -> str:
    return str(install.node() / "bin" / "node")


@cache
def _seen(peer: Peer) -> dict[str, JSON]:
    """Run the scenario: once for all tests, since they look at different parts of it."""
    seen: dict[str, JSON] = json.loads(printed(peer.command))
    return seen


def printed(command: list[str], env: dict[str, str] | None = None) -> str:
    """What a command prints. Skips the test where the clients are not installed."""
    if not Path(command[0]).exists():
        pytest.skip("the clients are not installed: run tests/interop/install.py")
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, env=env).stdout
