"""Clients and servers that are in use, beside the newest ones: fastmcp 2 to 4, older SDKs, a bridge, a browser.

docs/peers.md has their versions, and what is known of each.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.interop import install
from tests.listening import listening
from tests.paths import ROOT
from tests.ports import reserved_port
from tests.redis_server import RedisServer, shared_redis

__all__ = ["shared_redis"]

HERE = ROOT / "tests" / "interop"
OURS = [sys.executable, str(HERE / "servers" / "decorated.py"), "ours"]
FASTMCP = ("fastmcp-2", "fastmcp-3", "fastmcp-4")
SDKS = ("mcp-1.9", "py1")
CROWD = 40
TIMEOUT = 120

SEEN = {"add": "3", "failed": True, "notes": "Buy milk.", "item": "item 7", "review": "Please review the code."}
"""The observations of every client of `decorated.py` and `on_fastmcp.py`, beside the names of tools."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not install.python("fastmcp-2").exists(), reason="needs `python -m tests.interop.install`"),
]


def run_client(environment: str, script: str, *arguments: str) -> list[Any]:
    """Run a client of others, and return the lines of JSON that it prints."""
    command = [str(install.python(environment)), str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# Their clients, our server


@pytest.mark.parametrize("environment", FASTMCP)
def test_fastmcp_uses_one_process_of_our_server_twice(environment: str) -> None:
    first, second = run_client(environment, "fastmcp_client.py", "stdio", *OURS)
    assert first == second
    assert {key: first[key] for key in SEEN} == SEEN
    assert {"add", "broken"} <= {*first["tools"]}


@pytest.mark.parametrize("environment", FASTMCP)
def test_fastmcp_uses_our_server_over_http_twice(environment: str) -> None:
    with listening([*OURS, "http"]) as server:
        first, second = run_client(environment, "fastmcp_client.py", "http", server.address)
    assert first == second
    assert {key: first[key] for key in SEEN} == SEEN


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


@contextmanager
def counted(*command: str, folder: Path, redis: RedisServer | None = None) -> Generator[tuple[str, Path]]:
    """Run `counted.py` under a server of others. Yield the URL, and the file with the statuses."""
    log = folder / "statuses"
    log.touch()
    environment = {**os.environ, "COUNTED_LOG": str(log), "PYTHONPATH": str(ROOT)}
    environment |= {"COUNTED_REDIS": redis.url} if redis else {}
    with reserved_port() as port:
        process = subprocess.Popen([sys.executable, "-m", *command, "--port", str(port)], cwd=ROOT, env=environment)
        try:
            wait_until_it_listens(process, port)
            yield f"http://127.0.0.1:{port}/mcp", log
        finally:
            process.terminate()
            process.wait(TIMEOUT)


APP = "tests.interop.servers.counted:counted"


def assert_all_served(environment: str, url: str, log: Path) -> None:
    """Let a crowd visit the server. No request may be refused."""
    assert run_client(environment, "sdk_crowd.py", url, str(CROWD), str(log)) == [CROWD]
    statuses = Counter(log.read_text(encoding="utf-8").splitlines())
    assert statuses["GET 200"] == CROWD, statuses
    assert not [status for status in statuses if int(status.split()[1]) >= 400], statuses


@pytest.mark.parametrize("environment", SDKS)
def test_clients_that_open_their_stream_early_are_served_under_granian(environment: str, tmp_path: Path) -> None:
    with counted("granian", "--interface", "asgi", "--factory", APP, folder=tmp_path) as (url, log):
        assert_all_served(environment, url, log)


@pytest.mark.parametrize("environment", SDKS)
def test_clients_that_open_their_stream_early_are_served_by_two_workers(
    environment: str, tmp_path: Path, shared_redis: RedisServer
) -> None:
    command = ("uvicorn", "--workers", "2", "--factory", APP, "--log-level", "warning")
    with counted(*command, folder=tmp_path, redis=shared_redis) as (url, log):
        assert_all_served(environment, url, log)


# Our client, their servers


async def use(target: Any, **options: Any) -> dict[str, Any]:
    """Use everything that a server offers with our client."""
    async with typedmcp.connect(target, **options) as client:
        resource = await client.read_resource("test://notes")
        item = await client.read_resource("test://item/7")
        prompt = await client.get_prompt("review", {"topic": "code"})
        failed = await client.call_tool("broken", raise_on_error=False)
        return {
            "add": typedmcp.text_of(await client.call_tool("add", {"a": 1, "b": 2})),
            "failed": failed.is_error,
            "notes": getattr(resource.contents[0], "text", None),
            "item": getattr(item.contents[0], "text", None),
            "review": getattr(prompt.messages[0].content, "text", None),
        }


@pytest.mark.parametrize("environment", FASTMCP)
def test_our_client_uses_a_server_on_fastmcp_over_stdio(environment: str) -> None:
    command = [str(install.python(environment)), str(HERE / "servers" / "on_fastmcp.py")]
    parameters = typedmcp.StdioServerParameters(command[0], command[1:], stderr="capture")
    assert asyncio.run(use(parameters)) == SEEN


@pytest.mark.parametrize("environment", FASTMCP)
def test_our_client_uses_a_server_on_fastmcp_over_http(environment: str) -> None:
    command = [str(install.python(environment)), str(HERE / "servers" / "on_fastmcp.py"), "http"]
    with listening(command) as server:
        assert asyncio.run(use(server.address)) == SEEN


# A bridge


def test_two_clients_use_our_server_behind_supergateway() -> None:
    """It turns a server over stdio into one over HTTP with SSE, and passes each client's handshake to one process."""
    node = install.node() / "bin" / "node"
    script = install.INTEROP / "bridge" / "node_modules" / "supergateway" / "dist" / "index.js"
    with reserved_port() as port:
        command = [str(node), str(script), "--stdio", " ".join(OURS), "--port", str(port), "--logLevel", "none"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_it_listens(process, port)
            for _ in range(2):
                assert asyncio.run(use(f"http://127.0.0.1:{port}/sse")) == SEEN
        finally:
            process.terminate()
            process.wait(TIMEOUT)


# A browser

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PAGE = """<!doctype html><title>waiting</title><pre id=result></pre><script>
const headers = {"content-type": "application/json", accept: "application/json, text/event-stream"};
const post = (body, more = {}) => fetch(TARGET, {method: "POST", headers: {...headers, ...more}, body: JSON.stringify(
  {jsonrpc: "2.0", ...body})});
(async () => {
  const params = {protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: "page", version: "1"}};
  const first = await post({id: 0, method: "initialize", params});
  const session = {"mcp-session-id": first.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-11-25"};
  await post({method: "notifications/initialized"}, session);
  const call = {name: "add", arguments: {a: 1, b: 2}};
  const answer = await post({id: 1, method: "tools/call", params: call}, session);
  return (await answer.text()).includes('"text":"3"') ? "three" : "wrong";
})().catch(error => "failed: " + error).then(text => { result.textContent = "the page saw: " + text; });
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path")
def test_a_page_of_an_allowed_origin_uses_our_server(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    with listening([sys.executable, "-m", "tests.interop.servers.for_pages"]) as server:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"]
        options = [f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", server.address]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert "the page saw: three" in done.stdout
