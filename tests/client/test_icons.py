"""Icons of servers: those with unsafe addresses do not reach the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import typedmcp
from mcpspec.v2025_11_25 import methods as older_methods
from tests.cases import each
from tests.client.test_misbehaviour import DISCOVERED, INITIALIZED, Script, played
from tests.server.scripted import MODERN_REVISION, Json, run
from typedmcp.client import connect
from typedmcp.client.results.decoder import MAX_PROBLEMS

SAFE = ["https://example.com/a.png", "HTTPS://example.com/a", "data:image/png;base64,AA==", "data:image/svg+xml,<svg/>"]
UNSAFE = [
    "javascript:alert(1)", " javascript:alert(1)", "JavaScript:alert(1)", "file:///etc/passwd", "ftp://a/b", "ws://a/b",
    "http://example.com/a.png", "vscode://x", "data:text/html,<script>", "/a.png", "//a/b", "", "https://",
]  # fmt: skip
ICONS: list[Json] = [{"src": src} for pair in zip(SAFE * 4, UNSAFE, strict=False) for src in pair]
TOOL: Json = {"name": "t", "inputSchema": {"type": "object"}}
CACHE: Json = {"ttlMs": 0, "cacheScope": "private"}
LINK: Json = {"type": "resource_link", "name": "t", "uri": "a:b"}

HOLDERS: dict[str, tuple[Callable[[Any], Any], Json, Callable[[Any], Any]]] = {
    "tools/list": (
        lambda client: client.list_tools(),
        {**CACHE, "tools": [{**TOOL, "icons": ICONS}]},
        lambda result: result.tools[0],
    ),
    "prompts/list": (
        lambda client: client.list_prompts(),
        {**CACHE, "prompts": [{"name": "t", "icons": ICONS}]},
        lambda result: result.prompts[0],
    ),
    "resources/list": (
        lambda client: client.list_resources(),
        {**CACHE, "resources": [{"name": "t", "uri": "a:b", "icons": ICONS}]},
        lambda result: result.resources[0],
    ),
    "resources/templates/list": (
        lambda client: client.list_resource_templates(),
        {**CACHE, "resourceTemplates": [{"name": "t", "uriTemplate": "a:{b}", "icons": ICONS}]},
        lambda result: result.resource_templates[0],
    ),
    "tools/call": (
        lambda client: client.call_tool("t"),
        {"content": [{"type": "text", "text": ""}, {**LINK, "icons": ICONS}]},
        lambda result: result.content[1],
    ),
    "prompts/get": (
        lambda client: client.get_prompt("t"),
        {"messages": [{"role": "user", "content": {**LINK, "icons": ICONS}}]},
        lambda result: result.messages[0].content,
    ),
}
ALL: Json = {"tools": {}, "prompts": {}, "resources": {}}


def check(holder: Any, script: Script) -> None:
    assert {icon.src for icon in holder.icons} == {*SAFE}
    assert [report.params for report in script.reports] == UNSAFE
    assert {str(report.kind) for report in script.reports} == {"invalid data"}
    assert "the icon of" in script.reports[0].text or 'an icon of "t" is left out' in script.reports[0].text


@each("revision", [MODERN_REVISION, "2025-11-25"])
@each("method", HOLDERS)
def test_icons_with_unsafe_addresses_are_left_out_and_reported(method: str, revision: str) -> None:
    call, result, holder_of = HOLDERS[method]

    async def main() -> None:
        async with played(revision, {"capabilities": ALL}) as (client, script):
            calling = asyncio.create_task(call(client))
            request = await script.receive()
            assert request["method"] == method
            script.send(id=request["id"], result={"resultType": "complete", **result})
            check(holder_of(await calling), script)

    run(main)


def test_results_of_an_older_method_record_have_safe_icons_only() -> None:
    async def main() -> None:
        async with played("2025-11-25") as (client, script):
            calling = asyncio.create_task(client.send(older_methods.TOOLS_LIST, {}))
            script.send(id=(await script.receive())["id"], result={"tools": [{**TOOL, "icons": ICONS}]})
            check((await calling).tools[0], script)

    run(main)


def test_many_unsafe_icons_are_reported_up_to_a_limit() -> None:
    async def main() -> None:
        async with played() as (client, script):
            calling = asyncio.create_task(client.list_tools())
            icons = [{"src": "javascript:"}] * 20_000
            script.send(
                id=(await script.receive())["id"],
                result={"resultType": "complete", **CACHE, "tools": [{**TOOL, "icons": icons}] * 2},
            )
            assert [tool.icons for tool in (await calling).tools] == [[], []]
            assert len(script.reports) == MAX_PROBLEMS + 1
            assert script.reports[-1].text == f"{40_000 - MAX_PROBLEMS} more icons are left out"

    run(main)


@each("revision", [MODERN_REVISION, "2025-11-25"])
def test_the_server_itself_has_safe_icons_only(revision: str) -> None:
    info = {"name": "s", "version": "1", "icons": ICONS}

    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        near, far = typedmcp.memory_pair()
        script = Script(far, reports)
        client = connect(near, revisions=[revision], on_diagnostic=reports.append)
        opening = asyncio.create_task(client.open())
        id = (await script.receive())["id"]
        if revision == MODERN_REVISION:
            script.send(id=id, result={**DISCOVERED, "_meta": {"io.modelcontextprotocol/serverInfo": info}})
        else:
            script.send(id=id, result={**INITIALIZED, "protocolVersion": revision, "serverInfo": info})
        await opening
        assert client.server.info is not None
        assert {icon.src for icon in client.server.info.icons or ()} == {*SAFE}
        assert [report.params for report in reports] == UNSAFE
        await client.close()

    run(main)
