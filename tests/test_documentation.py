"""What the documentation says is run as it stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _python_blocks() -> list[str]:
    return _BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/logLevel": "info",
}
_CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "greet", "arguments": {"name": "Ada"}, "_meta": _META},
}


def _output(code: str) -> str:
    """What a program prints, which may be a server that is called once."""
    command = [sys.executable, "-W", "error", "-c", code]
    asked = json.dumps(_CALL)
    return subprocess.run(command, check=True, input=asked, capture_output=True, text=True, timeout=60).stdout


def test_every_python_block_of_the_readme_runs() -> None:
    first, logged, answered, *others = _output("\n".join(_python_blocks())).splitlines()
    assert first == "TextContent(text='12 degrees, light rain')"
    assert json.loads(logged)["params"]["data"] == "greeting a client that speaks 2026-07-28"
    assert json.loads(answered)["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    assert others == ["0.5", "name: expected string, got 3"]


def test_the_server_in_the_readme_is_the_example() -> None:
    example = (ROOT / "examples" / "server.py").read_text(encoding="utf-8")
    assert any(block in example for block in _python_blocks())


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_every_example_runs(path: Path) -> None:
    assert _output(path.read_text(encoding="utf-8"))


def test_the_readme_names_only_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert named
    assert named <= targets
