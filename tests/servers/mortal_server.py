"""A server that is killed: `mortal_server.py REVISION FOLDER [PORT]`. It leaves a file named by its process."""

import asyncio
import os
import random
import sys
from pathlib import Path

import typedmcp

revision, folder, *port = sys.argv[1:]
Path(folder, str(os.getpid())).touch()
server = typedmcp.Server("mortal")


@server.tool
async def quick() -> str:
    """Answer at once."""
    return "quick"


@server.tool
async def slow() -> str:
    """Answer after a while."""
    await asyncio.sleep(random.uniform(0.2, 2))
    return "slow"


@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    """Answer with the first root of the client."""
    return (await ctx.list_roots())[0].uri


if __name__ == "__main__":
    if port:
        server.run("http", port=int(port[0]), revisions=[revision])
    else:
        server.run(revisions=[revision])
