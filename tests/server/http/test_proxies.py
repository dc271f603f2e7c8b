"""Silent calls behind nginx with its default settings, except that its timeout of 60 s is 2 s. The calls take 6 s.

Before a release, calls of three minutes run with the defaults of nginx and of the server.
"""

from __future__ import annotations

import http.client
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.listening import running_on
from tests.nginx import nginx
from tests.pairs import FULL_PRODUCTS
from tests.ports import reserved_port
from tests.server.http.asgi_driver import ACCEPT, MODERN
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp.revisions.features import FEATURES

SILENCE, TIMEOUT, KEEP_ALIVE = 6.0, 2, 0.5
SERVER = """
import asyncio, sys
import typedmcp

server = typedmcp.Server("slow")

@server.tool
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"

server.run("http", port=0, keep_alive=float(sys.argv[1]), sessions=sys.argv[2] == "sessions")
"""
PROXY = """
server {{
    listen 127.0.0.1:{front};
    location / {{
        proxy_pass http://127.0.0.1:{back};
        proxy_read_timeout {timeout}s;
    }}
}}
"""
HTTP_REVISIONS = [revision for revision in (*LEGACY, MODERN_REVISION) if FEATURES[revision].has_streamable_http]


def call_slow(port: int, revision: str, sessions: bool, seconds: float) -> str:
    """Call the slow tool as a client of a revision, and return the status and the end of the response."""
    headers = {"content-type": "application/json", "accept": ACCEPT}
    params: dict[str, Any] = {"name": "slow", "arguments": {"seconds": seconds}}
    if revision == MODERN_REVISION:
        params["_meta"] = MODERN
        headers |= {"mcp-method": "tools/call", "mcp-name": "slow"}
    elif sessions:
        client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        _, opened, _ = _post(port, headers, {"id": 0, "method": "initialize", "params": client}, 60)
        headers["mcp-session-id"] = str(opened["mcp-session-id"])
    headers["mcp-protocol-version"] = revision
    status, _, body = _post(port, headers, {"id": 1, "method": "tools/call", "params": params}, seconds + 60)
    end = "done" if '"done"' in body else body
    return f"{status}: {end}"


def _post(port: int, headers: dict[str, str], message: dict[str, Any], timeout: float) -> tuple[int, Any, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
        with connection.getresponse() as response:
            try:
                return response.status, response.headers, response.read().decode()
            except http.client.IncompleteRead:
                return response.status, response.headers, "cut"
    finally:
        connection.close()


def calls_behind_nginx(silence: float, timeout: int, keep_alive: float) -> dict[tuple[str, str], str]:
    """Return what clients of all revisions got, each with and without sessions, from silent calls behind nginx."""
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(partial(_calls, silence, timeout, keep_alive), ("sessions", "no sessions"))
        return {key: end for each in found for key, end in each.items()}


def _calls(silence: float, timeout: int, keep_alive: float, sessions: str) -> dict[tuple[str, str], str]:
    command = [sys.executable, "-c", SERVER, str(keep_alive), sessions]
    with running_on(command) as address, reserved_port() as front, ThreadPoolExecutor(8) as pool:
        back = address.rpartition(":")[2].partition("/")[0]
        with nginx(PROXY.format(front=front, back=back, timeout=timeout), front):
            calls = {
                revision: pool.submit(call_slow, front, revision, sessions == "sessions", silence)
                for revision in HTTP_REVISIONS
            }
            return {(sessions, revision): call.result() for revision, call in calls.items()}


def test_a_silent_call_behind_nginx_ends_with_its_result_on_every_revision() -> None:
    found = calls_behind_nginx(SILENCE, TIMEOUT, KEEP_ALIVE)
    assert found == dict.fromkeys(found, "200: done")
    assert len(found) == 2 * len(HTTP_REVISIONS)


@pytest.mark.long
def test_without_comments_nginx_cuts_the_call() -> None:
    found = _calls(SILENCE, TIMEOUT, 600, "no sessions")
    assert not any("done" in end for end in found.values())


@pytest.mark.long
@pytest.mark.skipif(not FULL_PRODUCTS, reason="it takes three minutes; a release sets FULL_PRODUCTS")
def test_three_silent_minutes_behind_nginx_as_it_is_installed_end_with_the_result() -> None:
    found = calls_behind_nginx(180, 60, 15)
    assert found == dict.fromkeys(found, "200: done")
