"""Progress and cancellation: a long tool says how far it is; another call of it is given up, and the server notices.

Run `python progress.py`.
"""

import asyncio
import sys

import typedmcp
from typedmcp import Context, Server, text_of
from typedmcp.dialect import structs

server = Server("kitchen", version="1.0")
given_up: asyncio.Queue[str] = asyncio.Queue()


@server.tool
async def bake(loaves: int, ctx: Context) -> str:
    """Bake bread, loaf by loaf."""
    done = 0
    try:
        while done < loaves:
            await asyncio.sleep(0.01)  # stands for the work
            done += 1
            await ctx.progress(done, total=loaves, message=f"loaf {done} is done")
    except asyncio.CancelledError:
        given_up.put_nowait(f"given up after {done} of {loaves}")
        raise  # nobody waits for an answer any more
    return f"{done} loaves"


@server.tool
async def next_given_up() -> str:
    """What became of a call that was given up; waits for one."""
    return await given_up.get()


def show(step: structs.ProgressNotificationParams) -> None:
    print(f"  {step.progress:g} of {step.total:g}: {step.message}")


async def main() -> None:
    async with typedmcp.connect([sys.executable, __file__, "serve"]) as client:
        print("three loaves:")
        print(text_of(await client.call_tool("bake", {"loaves": 3}, on_progress=show)))

        print("a million:")
        begun = asyncio.Event()
        endless = client.call_tool("bake", {"loaves": 1_000_000}, on_progress=lambda _: begun.set())
        call = asyncio.create_task(endless)
        await begun.wait()
        call.cancel()  # as a timeout, or Ctrl-C, would
        print(text_of(await client.call_tool("next_given_up")))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
