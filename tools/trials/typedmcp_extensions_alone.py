"""Offer a page for a tool, and load it as a host does; run a tool as a task, and wait for it."""

import asyncio

import typedmcp
from typedmcp_extensions.apps import AppPage, AppsClient, AppsServer, load_page, page_uri
from typedmcp_extensions.tasks import ClientTasks, ServerTasks, SyncTaskCalls, TaskCalls

server = typedmcp.Server("trial", extensions=[AppsServer(), ServerTasks(poll_interval=0.01)])
page = AppPage("ui://trial/page", "<!doctype html><p>Rain</p>")


@page.tool(server)
def rain(city: str) -> str:
    return f"{city}: 12 mm"


@server.tool(task="required")
async def convert(name: str) -> str:
    return f"{name}.mp4"


async def main() -> None:
    async with typedmcp.connect(server, extensions=[AppsClient()]) as client:
        (tool,) = [tool async for tool in client.tools() if tool.name == "rain"]
        assert page_uri(tool) == page.uri
        assert "Rain" in (await load_page(client, tool)).document
    async with typedmcp.connect(server, extensions=[ClientTasks()]) as client:
        task = await client.extension(TaskCalls).begin("convert", {"name": "cat"})
        assert typedmcp.text_of(await client.extension(TaskCalls).resume(task.task_id)) == "cat.mp4"


asyncio.run(main())

with typedmcp.sync.connect(server, extensions=[ClientTasks()]) as client:
    assert typedmcp.text_of(client.call_tool("convert", {"name": "dog"})) == "dog.mp4"
    assert SyncTaskCalls(client).list() == []
