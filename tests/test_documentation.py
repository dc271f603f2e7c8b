"""What the documentation says is run as it stands."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from typing import Any

import pytest

from tests.paths import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _python_blocks() -> list[str]:
    return _BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def _is_a_file(block: str) -> bool:
    """Whether an example starts itself again."""
    return "__file__" in block


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
    runnable = (block for block in _python_blocks() if not _is_a_file(block))
    first, logged, answered, *others = _output("\n".join(runnable)).splitlines()
    assert first == "TextContent(text='12 degrees, light rain')"
    assert json.loads(logged)["params"]["data"] == "greeting a client that speaks 2026-07-28"
    assert json.loads(answered)["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    assert others == ["0.5", "name: expected string, got 3"]


@pytest.mark.parametrize("name", ["server", "client"])
def test_the_server_and_the_client_in_the_readme_are_the_examples(name: str) -> None:
    example = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert any(block in example for block in _python_blocks())


def test_the_example_over_http_serves_and_calls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        environment = {**os.environ, "PORT": str(probe.getsockname()[1])}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "over_http.py")]
    with subprocess.Popen([*command, "serve"], env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert any("Uvicorn running" in line for line in server.stderr)
            called = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=60)
            assert called.stdout.splitlines() == ["progress 1", "TextContent(text='Hello!')"]
        finally:
            server.terminate()


@pytest.mark.parametrize("name", ["client", "first_decode", "handler", "server"])
def test_the_examples_that_pages_quote_run(name: str) -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")]
    asked = json.dumps(_CALL)
    assert subprocess.run(command, check=True, input=asked, capture_output=True, text=True, timeout=60).stdout


def test_the_client_in_the_readme_prints_what_it_was_told() -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "client.py")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    assert printed[0] == "['greet'] on 2026-07-28"
    assert printed[1] == "TextContent(text='Hello, Ada!')"
    assert "the client has not declared: elicitation (-32021)" in printed[2]


def test_the_readme_names_only_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert named
    assert named <= targets
