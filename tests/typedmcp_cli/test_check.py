"""`typedmcp check`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.typedmcp_cli.command import typedmcp

GOOD = '''
import typedmcp

server = typedmcp.Server("good")


@server.tool
def now() -> str:
    """Return the time."""
    return "noon"
'''
WARNED = GOOD.replace('    """Return the time."""\n', "")
BAD = GOOD.replace("@server.tool", '@server.tool("' + "a" * 65 + '")')


def write(folder: Path, source: str) -> str:
    file = folder / "server.py"
    file.write_text(source)
    return str(file)


def test_a_good_server_passes(tmp_path: Path) -> None:
    done = typedmcp("check", write(tmp_path, GOOD))
    assert (done.status, done.out) == (0, "0 errors, 0 warnings\n")


def test_warnings_fail_only_when_strict(tmp_path: Path) -> None:
    file = write(tmp_path, WARNED)
    done = typedmcp("check", file)
    assert done.status == 0
    assert "tool now: warning: it has no description; write a docstring [description]" in done.out
    assert typedmcp("check", file, "--strict").status == 1


def test_errors_fail_and_are_json_on_request(tmp_path: Path) -> None:
    done = typedmcp("check", write(tmp_path, BAD), "--json")
    assert done.status == 1
    (finding,) = json.loads(done.out)["findings"]
    assert finding == {
        "rule": "host-name", "severity": "error", "item": f"tool {'a' * 65}",
        "text": "the name has 65 characters; APIs allow 64", "hosts": ["openai", "anthropic", "gemini"],
    }  # fmt: skip


def test_a_file_without_a_server_cannot_be_checked(tmp_path: Path) -> None:
    done = typedmcp("check", write(tmp_path, "x = 1"))
    assert done.status == 2
    assert "has no typedmcp.Server to check" in done.err
