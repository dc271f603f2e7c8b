"""Clients of others, and their observations of the server under test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.interop import install
from tests.listening import listening
from tests.pairs import pairs

__all__ = [
    "COMMAND", "HTTP", "PATHS", "PEERS", "SERVER", "SSE", "STDIO", "Peer", "node", "observe", "printed", "scenario",
]  # fmt: skip

JSON: TypeAlias = Any

HERE = Path(__file__).parent
COMMAND = [sys.executable, str(HERE.parent / "conformance" / "server.py"), "stdio"]
"""The command that starts the server under test over stdio."""

SERVER = [*COMMAND[:-1], "http"]
"""The command that starts it over HTTP."""

PATIENCE = 300
"""Seconds until a client is terminated. It takes about three, and many more on a machine with much else to do."""


@dataclass(frozen=True)
class Peer:
    """A client on one revision and one transport."""

    client: str
    revision: str
    transport: str = "stdio"
    has_our_types: bool = False
    """True if the official Python client uses the types of `mcpspec.compat`."""

    def __str__(self) -> str:
        return f"{self.client} on {self.revision} over {self.transport}"

    @property
    def is_modern(self) -> bool:
        return self.revision == "2026-07-28"

    @property
    def has_forms(self) -> bool:
        """True if a server of the revision may request input of the user."""
        return self.revision >= "2025-06-18"

    @property
    def has_empty_lists(self) -> bool:
        """False if the types of the client have no difference between an empty list and none."""
        return self.client != "go"

    @property
    def keeps_order(self) -> bool:
        """False if the client sorts the members of objects."""
        return self.client not in ("go", "rust")

    @property
    def can_cancel(self) -> bool:
        """False if the SDK does not tell the server that a call is abandoned."""
        return self.client != "java"

    @property
    def logs_objects(self) -> bool:
        """False if the client loses log messages whose data is not a text."""
        return self.client != "java"

    @property
    def answers_for_roots(self) -> bool:
        """True if the SDK answers requests for roots, and no code of its user runs."""
        return self.client == "java" or (self.client == "go" and self.is_modern)

    def order(self, names: Iterable[str]) -> list[str]:
        """Return names of members in the order in which the client has them."""
        return list(names) if self.keeps_order else sorted(names)

    def saw(self, step: str) -> JSON:
        """Return the client's observations in a step of the scenario."""
        seen = _seen(self)[step]
        assert "failed" not in (seen or {}), seen["failed"]
        return seen

    def over(self, transport: str) -> Peer:
        return replace(self, transport=transport)

    def with_our_types(self) -> Peer:
        return replace(self, has_our_types=True)

    def saw_everything(self) -> dict[str, JSON]:
        """Return the client's observations by step."""
        return _seen(self)

    def command(self, *target: str, script: str = "client") -> list[str]:
        """Return the command that runs a script of the client.

        `target` is the command that starts the server, or its URL. `script` is the end of the name of the script.
        """
        if self.client == "typescript":
            modules = install.INTEROP / "node" / "node_modules"
            client = [node(), str(HERE / f"typescript_{script}.mjs"), str(modules)]
            return [*client, self.revision, self.transport, *target]
        if self.client in install.PROGRAMS:
            return [str(install.program(self.client)), "scenario", self.revision, self.transport, *target]
        interpreter = str(install.python("py1" if self.client == "python 1" else "py2"))
        mode = "modern" if self.is_modern else "legacy"
        launcher = [str(HERE / "installed.py")] if self.has_our_types else []
        return [interpreter, *launcher, str(HERE / f"python_{script}.py"), mode, self.transport, *target]


STDIO = [
    Peer("python 1", "2025-11-25"),
    Peer("python 2", "2025-11-25"),
    Peer("python 2", "2026-07-28"),
    Peer("typescript", "2024-11-05"),
    Peer("typescript", "2025-03-26"),
    Peer("typescript", "2025-06-18"),
    Peer("typescript", "2025-11-25"),
    Peer("typescript", "2026-07-28"),
    *(Peer(language, revision) for language, built in install.PROGRAMS.items() for revision in built.revisions),
]
HTTP = [peer.over("http") for peer in STDIO]
SSE = [
    *(peer.over("sse") for peer in STDIO if not peer.is_modern and peer.client not in install.PROGRAMS),
    Peer("java", "2024-11-05", "sse"),
]
PEERS = pairs(STDIO + HTTP + SSE, lambda peer: (peer.client, peer.revision, peer.transport))
"""Every client, revision and transport with every other one that it occurs with."""
PATHS = {"http": "/mcp", "sse": "/sse"}


def node() -> str:
    return str(install.node() / "bin" / "node")


shared: Path | None = None
"""The folder with the observations that all workers of a run of the tests share."""


@cache
def _seen(peer: Peer) -> dict[str, JSON]:
    """Run the scenario once for all tests, which check different steps, and for all workers."""
    _require_installed(peer.command())
    if shared is None or sys.platform == "win32":
        return _play(peer)
    import fcntl

    with (shared / f"{peer}{' with our types' * peer.has_our_types}.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another worker may play it just now
        file.seek(0)
        if not (known := file.read()):
            known = json.dumps(_play(peer))
            file.write(known)
    return _read(known)


def observe(peers: Iterable[Peer]) -> None:
    """Run the scenario of several clients, as many at a time as there are processors. Tests report what fails."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        wait([threads.submit(_seen, peer) for peer in peers])


def _play(peer: Peer) -> dict[str, JSON]:
    if peer.transport == "stdio":
        return _read(printed(peer.command(*COMMAND)))
    with listening(SERVER) as server:
        return scenario(peer, server.address)


def scenario(peer: Peer, address: str) -> dict[str, JSON]:
    """Run the scenario with a running server, and return the client's observations by step."""
    return _read(printed(peer.command(address + PATHS[peer.transport])))


def _read(output: str) -> dict[str, JSON]:
    seen: dict[str, JSON] = json.loads(output)
    return seen


def printed(command: list[str], env: dict[str, str] | None = None) -> str:
    """Return the output of a command, or skip the test if the clients are not installed."""
    _require_installed(command)
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, env=env).stdout


def _require_installed(command: list[str]) -> None:
    """Skip the test if the program of a command is not installed."""
    if not Path(command[0]).exists():
        pytest.skip("the clients are not installed: run tests/interop/install.py")
