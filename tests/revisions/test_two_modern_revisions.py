"""When a later revision becomes the dialect, the older modern revision still works, without a handshake.

The later revision is that of `tests/revisions/later.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.helpers import NEWEST
from tests.revisions.later import LATER

pytestmark = pytest.mark.long

LEGACY = "2025-11-25"
"""A legacy revision that both sides may also speak."""
HERE = Path(__file__).parent


def _call(environment: dict[str, str], transport: str, codec: str, served: list[str], spoken: list[str]) -> Any:
    """Run a client and a server on some revisions each, and return their results and messages."""
    command = [sys.executable, str(HERE / "two_modern_peer.py"), "client", transport]
    done = subprocess.run(
        [*command, ",".join(served), codec, ",".join(spoken)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
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
