"""Middleware, a database that is open while the server runs, and a mounted server.

Run `python middleware.py`. The server prints the times on standard error.
"""

import asyncio
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import typedmcp
from typedmcp import Context, Server, ToolError, text_of
from typedmcp.app import CallNext


@asynccontextmanager
async def database(_: Server) -> AsyncGenerator[sqlite3.Connection]:
    """Open the database before the first request, and close it after the last."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE stock (item TEXT PRIMARY KEY, number INTEGER)")
    connection.execute("INSERT INTO stock VALUES ('lamp', 3), ('chair', 12)")
    try:
        yield connection
    finally:
        connection.close()


stock = Server("stock", lifespan=database)


@stock.tool
async def count(item: str, ctx: Context) -> int:
    """Count an item."""
    found = ctx.lifespan.execute("SELECT number FROM stock WHERE item = ?", [item]).fetchone()
    if found is None:
        raise ToolError(f"no item {item!r}")  # the model reads this
    return int(found[0])


@stock.tool
async def take(item: str, ctx: Context) -> int:
    """Remove one from stock, and return how many are left."""
    left = await count(item, ctx) - 1
    ctx.lifespan.execute("UPDATE stock SET number = ? WHERE item = ?", [left, item])
    return left


shop = Server("shop", version="1.0")
shop.mount(stock, "stock")  # its tools become `stock_count` and `stock_take`


@shop.middleware
async def time_requests(ctx: Context, params: Any, call_next: CallNext) -> Any:
    """Print how long each request takes, those of the mounted server included."""
    start = time.perf_counter()
    try:
        return await call_next()
    finally:
        request = f"{ctx.method} {getattr(params, 'name', '')}".strip()
        print(f"{request}: {1000 * (time.perf_counter() - start):.1f} ms", file=sys.stderr)


async def main() -> None:
    async with typedmcp.connect([sys.executable, __file__, "serve"]) as client:
        print([tool.name async for tool in client.tools()])
        print("lamps left:", text_of(await client.call_tool("stock_take", {"item": "lamp"})))
        print("lamps:", text_of(await client.call_tool("stock_count", {"item": "lamp"})))
        print("beds:", text_of(await client.call_tool("stock_count", {"item": "bed"})))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        shop.run()
    else:
        asyncio.run(main())
