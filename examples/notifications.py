"""Change notifications: a client listens while the server adds and removes a tool and changes a resource.

The same code works in all revisions. Run `python notifications.py`.
"""

import asyncio
import sys

import typedmcp
from typedmcp import Server, text_of

server = Server("board", version="1.0")
NOTES = "board://notes"
notes: list[str] = []


@server.resource(NOTES)
def read_notes() -> str:
    """All notes."""
    return "\n".join(notes)


@server.tool
async def write(note: str) -> None:
    """Add a note."""
    notes.append(note)
    server.resource_updated(NOTES)
    if len(notes) == 1:
        server.add_tool(wipe)


async def wipe() -> None:
    """Remove all notes."""
    notes.clear()
    server.resource_updated(NOTES)
    server.remove_tool("wipe")


async def show(client: typedmcp.Client, changes: typedmcp.Subscription, number: int) -> None:
    """Wait for a number of changes, and print the changed list or content."""
    for _ in range(number):
        change = await anext(changes)
        if change.kind == "tools":
            print("tools:", [tool.name async for tool in client.tools()])
        elif change.uri is not None:
            print("notes:", repr(text_of(await client.read_resource(change.uri))))


async def main() -> None:
    async with (
        typedmcp.connect([sys.executable, __file__, "serve"]) as client,
        client.listen(tools=True, uris=[NOTES]) as changes,
    ):
        await client.call_tool("write", {"note": "buy milk"})
        await show(client, changes, 2)
        await client.call_tool("write", {"note": "and bread"})
        await show(client, changes, 1)
        await client.call_tool("wipe")
        await show(client, changes, 2)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
