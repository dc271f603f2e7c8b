"""Serve a server of a legacy revision through a gateway to a client of the newest one."""

import asyncio

import typedmcp
from typedmcp_gateway import Gateway, NameRules

server = typedmcp.Server("shop")


@server.tool
async def price(thing: str) -> str:
    return f"{thing}: 3"


async def main() -> None:
    old = typedmcp.ServerConfig(server, revisions=["2025-06-18"])
    gateway = Gateway(servers={"shop": old}, rules={"shop": NameRules(prefix="s_")})
    async with typedmcp.connect(gateway) as client:
        assert [tool.name async for tool in client.tools()] == ["s_price"]
        assert typedmcp.text_of(await client.call_tool("s_price", {"thing": "tea"})) == "tea: 3"
    assert [status.is_up for status in gateway.status] == [True]


asyncio.run(main())
