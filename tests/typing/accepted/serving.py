"""Types of servers made of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, assert_type

from typedmcp import Context, Elicited, Server
from typedmcp.dialect import structs

server = Server("typed")


@dataclass
class Booking:
    nights: int


@server.tool
async def book(city: str, ctx: Context) -> str:
    asked = await ctx.elicit("how long?", Booking)
    assert_type(asked, Elicited[Booking])
    assert_type(asked.data, Booking | None)
    assert_type(await ctx.elicit("really?", bool), Elicited[bool])
    assert_type(await ctx.elicit("which?", Literal["bed", "room"]), Elicited[Any])
    assert_type(await ctx.elicit("how?", {"type": "object", "properties": {}}), structs.ElicitResult)
    return city


@server.tool(title="Add", annotations={"readOnlyHint": True}, timeout=3)
def add(a: int, b: int = 1) -> int:
    return a + b


@server.resource("weather://{city}/now", mime_type="text/plain")
def weather(city: str) -> str:
    return city


assert_type(add(1), int)
assert_type(weather("Oslo"), str)
