"""Negotiation with servers of a modern revision that is older than the dialect.

No such revision exists yet. The tests add one, with the types of the dialect.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

import mcpspec
import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import Request, Wire, connected
from tests.client.http.scripted_http import Script as HttpScript
from tests.client.test_misbehaviour import COMPLETE, DISCOVERED, Script
from tests.helpers import run
from typedmcp import UnsupportedVersionError
from typedmcp.revisions.features import DIALECT, FEATURES, SUPPORTED

OLDER_MODERN = "2026-01-01"
VERSION = "io.modelcontextprotocol/protocolVersion"


@pytest.fixture(autouse=True)
def older_modern_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    (features,) = gc.get_referents(FEATURES)  # the dictionary behind the read-only view
    monkeypatch.setitem(features, OLDER_MODERN, FEATURES[DIALECT]._replace(version=OLDER_MODERN))
    find_revision: Callable[[str], Any] = mcpspec.revision

    def revision(name: str) -> Any:
        return find_revision(DIALECT if name == OLDER_MODERN else name)

    monkeypatch.setattr(mcpspec, "revision", revision)
    supported = (DIALECT, OLDER_MODERN, *SUPPORTED[1:])
    for module in ("client", "options"):
        monkeypatch.setattr(f"typedmcp.client.{module}.SUPPORTED", supported)


def reject(script: Script, request: Any) -> None:
    error = UnsupportedVersionError(DIALECT, [OLDER_MODERN])
    script.send(id=request["id"], error={"code": error.code, "message": error.message, "data": error.data})


def describe(script: Script, request: Any) -> None:
    script.send(id=request["id"], result={**DISCOVERED, "supportedVersions": [OLDER_MODERN, "2025-11-25"]})


@each("answers", [[reject, describe], [describe]], ids=["an error", "a description"])
def test_a_server_of_an_older_modern_revision_never_gets_a_handshake(answers: list[Any]) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            client = typedmcp.connect(near)
            opening = tasks.create_task(client.open())
            versions: list[str] = []
            for answer in answers:
                request = await script.receive()
                assert request["method"] == "server/discover"
                versions.append(request["params"]["_meta"][VERSION])
                answer(script, request)
            await opening
            assert versions == [DIALECT, OLDER_MODERN][: len(answers)]
            assert client.revision == OLDER_MODERN
            assert client.server.supported == [OLDER_MODERN, "2025-11-25"]

            calling = tasks.create_task(client.call_tool("x", {"a": 1}))
            request = await script.receive()
            assert request["method"] == "tools/call"
            assert request["params"]["_meta"][VERSION] == OLDER_MODERN
            script.send(id=request["id"], result=COMPLETE)
            assert typedmcp.text_of(await calling) == "good"
            await client.close()

    run(main())


def test_requests_over_http_name_the_negotiated_revision() -> None:
    def discover(request: Request, wire: Wire) -> None:
        if request.headers["mcp-protocol-version"] == DIALECT:
            error = UnsupportedVersionError(DIALECT, [OLDER_MODERN])
            wire.error(request, error.code, data=error.data, status=400)
        else:
            wire.result(request, {**DISCOVERED, "supportedVersions": [OLDER_MODERN]})

    async def main() -> None:
        script = HttpScript(server__discover=discover)
        async with connected(script) as client:
            assert client.revision == OLDER_MODERN
            await client.call_tool("x")
        versions = [request.headers["mcp-protocol-version"] for request in script.requests]
        assert versions == [DIALECT, OLDER_MODERN, OLDER_MODERN]
        for request in script.requests:
            assert request.json["params"]["_meta"][VERSION] == request.headers["mcp-protocol-version"]

    run(main())


def test_results_of_an_older_modern_revision_are_cached() -> None:
    async def main() -> None:
        script = HttpScript(
            server__discover=lambda request, wire: wire.result(
                request, {**DISCOVERED, "supportedVersions": [OLDER_MODERN]}
            ),
            tools__list=lambda request, wire: wire.result(request, {"tools": [], "ttlMs": 60_000}),
        )
        async with connected(script) as client:
            await client.list_tools()
            await client.list_tools()
        assert len(script.of("tools/list")) == 1

    run(main())
