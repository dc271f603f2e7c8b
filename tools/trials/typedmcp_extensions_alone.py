"""Offer a page for a tool, and load it as a host does."""

import asyncio

import typedmcp
from typedmcp_extensions.apps import AppPage, AppsClient, AppsServer, load_page, page_uri

server = typedmcp.Server("trial", extensions=[AppsServer()])
page = AppPage("ui://trial/page", "<!doctype html><p>Rain</p>")


@page.tool(server)
def rain(city: str) -> str:
    return f"{city}: 12 mm"


async def main() -> None:
    async with typedmcp.connect(server, extensions=[AppsClient()]) as client:
        (tool,) = [tool async for tool in client.tools()]
        assert page_uri(tool) == page.uri
        assert "Rain" in (await load_page(client, tool)).document


asyncio.run(main())
