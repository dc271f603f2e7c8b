"""When a later revision becomes the dialect, the older modern revision still works, without a handshake.

The tests compile the newest schema once more under a later date, beside the others. A copy of the runtime gets the
later revision as its dialect, by a change to one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.helpers import NEWEST, codegen, list_in_errata, newest_schema, pin
from tests.interop.peers import COMMAND, SERVER, Peer, printed, scenario
from tests.listening import listening
from tests.paths import ROOT

pytestmark = pytest.mark.long

LATER = "2031-05-01"
LEGACY = "2025-11-25"
"""A legacy revision that both sides may also speak."""
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process in which the later revision is the dialect."""
    folder = tmp_path_factory.mktemp("later")
    schema = shutil.copytree(ROOT / "schema", folder / "schema")
    pin(schema, LATER, json.dumps(newest_schema()).encode())
    list_in_errata(schema, LATER)
    assert codegen(schema, folder / "generated", "generate") == 0
    runtime = folder / "runtime"
    shutil.copytree(ROOT / "runtime", runtime, ignore=shutil.ignore_patterns("__pycache__"))
    _move_dialect(runtime / "typedmcp" / "dialect.py")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder / "generated", runtime, ROOT)))}


def _move_dialect(module: Path) -> None:
    """Change the one line of `dialect.py` that names a revision."""
    before = module.read_text(encoding="utf-8").splitlines()
    after = [line.replace(_package(NEWEST), _package(LATER)) for line in before]
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
    module.write_text("\n".join(after) + "\n", encoding="utf-8")


def _package(version: str) -> str:
    return f"v{version.replace('-', '_')}"


def _call(environment: dict[str, str], transport: str, codec: str, served: list[str], spoken: list[str]) -> Any:
    """Run a client and a server on some revisions each, and return their results and messages."""
    command = [sys.executable, str(HERE / "two_modern_peer.py"), "client", transport]
    done = subprocess.run(
        [*command, ",".join(served), codec, ",".join(spoken)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ALL = [LATER, NEWEST, LEGACY]
CASES = {
    "both on the older one": ([NEWEST], [NEWEST], NEWEST),
    "a client on the older one": (ALL, [NEWEST], NEWEST),
    "a server on the older one": ([NEWEST], ALL, NEWEST),
    "a server on the older and a legacy one": ([NEWEST, LEGACY], ALL, NEWEST),
    "a client on the older and a legacy one": (ALL, [NEWEST, LEGACY], NEWEST),
    "a server on the older one, a client on both modern ones": ([NEWEST], [LATER, NEWEST], NEWEST),
    "both on all": (ALL, ALL, LATER),
    "both on the later one": ([LATER], [LATER], LATER),
}
"""The revisions of server and client, and the one that they agree on."""

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"any": True}}}


@pytest.mark.parametrize("codec", ["msgspec", "pydantic"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_request_works_with_two_modern_revisions(
    environment: dict[str, str], case: str, transport: str, codec: str
) -> None:
    served, spoken, agreed = CASES[case]
    seen = _call(environment, transport, codec, served, spoken)
    messages = seen.pop("messages")
    assert seen == {
        "revision": agreed,
        "tools": [TOOL],
        "echo": [[1], agreed],
        "steps": ["one"],
        "asked": ["accept", {"city": "Oslo"}],
        "changed": "tools",
        "raw": [TOOL],
        "errors": {
            "unknown resource": ["ResourceNotFoundError", -32602, {"uri": "file:///none"}],
            "unknown method": ["MethodNotFoundError", -32601, None],
            "missing capability": ["MissingCapabilityError", -32021, {"requiredCapabilities": {"sampling": {}}}],
        },
    }
    assert not [message for message in messages if "initialize" in message["text"]]
    _check_versions(messages, agreed, spoken[0])


def _check_versions(messages: list[Any], agreed: str, newest: str) -> None:
    """Compare the revision that each request names; a first `server/discover` may name the client's newest."""
    sent = [{**message, "frame": json.loads(message["text"])} for message in messages if message["sender"] == "client"]
    requests = [message for message in sent if "id" in message["frame"]]
    assert len(requests) > 8
    for number, message in enumerate(requests):
        frame = message["frame"]
        allowed = {agreed, newest} if frame["method"] == "server/discover" and number == 0 else {agreed}
        version = frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        assert version in allowed
        if "headers" in message:
            assert message["headers"]["mcp-protocol-version"] == version


def test_a_server_on_the_older_revision_rejects_a_client_on_the_later_one(environment: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match="UnsupportedVersionError"):
        _call(environment, "stdio", "msgspec", [NEWEST], [LATER])


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_gets_the_same_results_before_and_after_the_dialect_moves(
    environment: dict[str, str], transport: str
) -> None:
    peer = Peer("typescript", NEWEST, transport)
    on_later = _steps(peer, ["env", f"PYTHONPATH={environment['PYTHONPATH']}"])
    assert on_later["about"]["protocolVersion"] == NEWEST
    assert on_later == _steps(peer, [])


def _steps(peer: Peer, prefix: list[str]) -> dict[str, Any]:
    """Return the results of the official client with the server of the interop tests, started behind `prefix`."""
    if peer.transport == "stdio":
        seen: dict[str, Any] = json.loads(printed(peer.command(*prefix, *COMMAND)))
        return seen
    with listening([*prefix, *SERVER]) as server:
        return scenario(peer, server.address)
