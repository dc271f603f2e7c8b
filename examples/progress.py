"""Progress and cancellation: a client shows the progress of a call, and cancels another one.

Run `python progress.py`.
"""

import asyncio
import sys

import typedmcp
from typedmcp import Context, Server, text_of
from typedmcp.dialect import structs

server = Server("kitchen", version="1.0")
cancelled: asyncio.Queue[str] = asyncio.Queue()


@server.tool
async def bake(loaves: int, ctx: Context) -> str:
    """Bake bread, loaf by loaf."""
    done = 0
    try:
        while done < loaves:
            await asyncio.sleep(0.01)  # the work
            done += 1
            await ctx.progress(done, total=loaves, message=f"loaf {done} is done")
    except asyncio.CancelledError:
        cancelled.put_nowait(f"cancelled after {done} of {loaves}")
        raise
    return f"{done} loaves"


@server.tool
async def next_cancelled() -> str:
    """Wait for a cancelled call, and return its progress."""
    return await cancelled.get()


def show(step: structs.ProgressNotificationParams) -> None:
    print(f"  {step.progress:g} of {step.total:g}: {step.message}")


async def main() -> None:
    async with typedmcp.connect([sys.executable, __file__, "serve"]) as client:
        print("three loaves:")
        print(text_of(await client.call_tool("bake", {"loaves": 3}, on_progress=show)))

        print("a million:")
        started = asyncio.Event()
        call = client.call_tool("bake", {"loaves": 1_000_000}, on_progress=lambda _: started.set())
        task = asyncio.create_task(call)
        await started.wait()
        task.cancel()  # a timeout or Ctrl-C does the same
        print(text_of(await client.call_tool("next_cancelled")))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
