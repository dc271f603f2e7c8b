"""Lists of servers whose cursors repeat, in gateways and groups: they end, with what was found."""

from __future__ import annotations

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import MODERN, OLDER, Request, Script, Wire, serving
from tests.server.scripted import run
from typedmcp_gateway import Gateway
from typedmcp_hosts import connect_all


class Endless(Script):
    """A server whose list of tools has one page, and says each time that there are more."""

    def _tools_list(self, request: Request, wire: Wire) -> None:
        tools = [{"name": "t", "inputSchema": {"type": "object"}}]
        members = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        wire.result(request, {**members, "tools": tools, "nextCursor": "more"})


@each("revision", [OLDER, MODERN])
@each("is_alone", [True, False])
def test_a_gateway_and_a_group_end_a_list_that_brings_nothing_new(revision: str, is_alone: bool) -> None:
    async def main() -> None:
        script = Endless(revision)
        async with serving(script) as url, serving(Script(revision)) as other:
            servers = {"a": url} if is_alone else {"a": url, "b": other}
            name = "t" if is_alone else "a_t"
            async with connect_all(servers, on_diagnostic=str) as group:
                assert [tool.name for tool in await group.list_tools()] == [name]
            assert len(script.of("tools/list")) == 2
            gateway = Gateway(url) if is_alone else Gateway(servers=servers)
            async with typedmcp.connect(gateway, on_diagnostic=str) as client:
                page = await client.list_tools()
                assert [tool.name for tool in page.tools] == [name]
                assert page.next_cursor is None
            assert len(script.of("tools/list")) <= 6

    run(main)
