"""Elicitation with typed forms: a tool asks the user, and gets the answer as a dataclass.

Run `python elicitation.py`.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

import typedmcp
from typedmcp import Context, Server, text_of
from typedmcp.dialect import structs

server = Server("restaurant", version="1.0")


@dataclass
class Booking:
    """A form. Its fields are strings, numbers, booleans and choices."""

    guests: Annotated[int, Meta(ge=1, le=8)]
    place: Literal["window", "garden", "bar"] = "window"
    vegetarian: bool = False


@server.tool
async def book_table(day: str, ctx: Context) -> str:
    """Book a table. The user fills in the details."""
    form = await ctx.elicit(f"A table on {day}: how many guests, and where?", Booking)
    if form.data is None:
        return "not booked"
    booking = form.data
    if booking.guests > 6:
        deposit = await ctx.elicit(f"{booking.guests} guests need a deposit. Continue?", bool)
        if not deposit.data:
            return "not booked: no deposit"
    return f"booked: {booking.guests} guests, {booking.place}, on {day}"


Answer = Mapping[str, Any] | None
"""A mapping fills in the form, None declines."""


async def book(*answers: Answer) -> None:
    """Call the tool as a user who gives these answers."""
    remaining = iter(answers)

    def elicit(request: structs.ElicitRequestFormParams) -> Answer:
        answer = next(remaining)
        print(f"  {request.message} {answer}")
        return answer

    command = [sys.executable, __file__, "serve"]
    async with typedmcp.connect(command, elicit=elicit) as client:
        print(text_of(await client.call_tool("book_table", {"day": "Friday"})))


async def main() -> None:
    await book({"guests": 2, "place": "garden"})
    await book({"guests": 7}, {"value": True})
    await book(None)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
