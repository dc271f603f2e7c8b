"""A host that does not read standard error, or output, cannot hang a server over standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.cases import each

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes on Windows cannot be asked whether they block")

SERVER = """
import logging
import sys
import typedmcp

logging.basicConfig(stream=sys.stderr)
server = typedmcp.Server("noisy")

@server.tool
async def fail() -> str:
    raise ValueError("x" * 2000)

@server.tool
async def log() -> str:
    logging.error("x" * 2000)
    return "logged"

@server.tool
async def write() -> str:
    print("x" * 2000)
    return "printed"

@server.tool
async def write_to_stderr() -> str:
    print("x" * 2000, file=sys.stderr)
    return "printed"

server.run()
print("after the end", file=sys.stderr)
"""
CALLS = 150
"""Calls with 2,000 bytes each: several times what a pipe holds."""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def start(*options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, *options, "-c", SERVER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def request(child: subprocess.Popen[bytes], id: int, method: str, params: dict[str, Any]) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    child.stdin.write(json.dumps(message).encode() + b"\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())


@each("options", [[], ["-u"]])
@each("tool", ["fail", "log", "write", "write_to_stderr"])
def test_a_server_serves_on_and_counts_what_it_drops(tool: str, options: list[str]) -> None:
    with start(*options) as child:
        request(child, 0, "initialize", HELLO)
        for id in range(1, CALLS + 1):
            assert request(child, id, "tools/call", {"name": tool, "arguments": {}})["id"] == id
        assert child.stderr is not None
        first = os.read(child.stderr.fileno(), 1 << 20)
        assert request(child, 0, "tools/call", {"name": tool, "arguments": {}})["id"] == 0
        rest = child.communicate(timeout=60)[1]  # which closes the input
    assert child.returncode == 0
    assert b"bytes of logs and prints were dropped" in first + rest
    assert b"after the end" in rest


def test_a_host_that_reads_loses_nothing() -> None:
    with start() as child:
        request(child, 0, "initialize", HELLO)
        for id in range(1, 6):
            request(child, id, "tools/call", {"name": "write", "arguments": {}})
        rest = child.communicate(timeout=60)[1]
    assert rest.count(b"x" * 2000) == 5
    assert b"dropped" not in rest


def test_a_server_ends_once_its_client_has_closed_the_end_that_it_reads() -> None:
    with start() as child:
        request(child, 0, "initialize", HELLO)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.close()
        child.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        child.stdin.flush()
        assert child.wait(60) == 0  # though its input is open
