"""Typed forms: a tool asks the person at the client, and gets the answer as an object of the type that it asked for.

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
    """A form: its fields are texts, numbers, booleans and choices."""

    guests: Annotated[int, Meta(ge=1, le=8)]
    place: Literal["window", "garden", "bar"] = "window"
    vegetarian: bool = False


@server.tool
async def book_table(day: str, ctx: Context) -> str:
    """Book a table. The person is asked for what is still open."""
    form = await ctx.elicit(f"A table on {day}: for how many, and where?", Booking)
    if form.data is None:
        return "nothing was booked"
    booking = form.data
    if booking.guests > 6:
        sure = await ctx.elicit(f"{booking.guests} guests need a deposit. Go on?", bool)
        if not sure.data:
            return "nothing was booked, for want of a deposit"
    return f"booked: {booking.guests} guests, {booking.place}, on {day}"


Question = structs.ElicitRequestFormParams | structs.ElicitRequestURLParams


def answering(*answers: Mapping[str, Any] | None) -> Any:
    """Stands for a person: gives one answer after the other. A mapping fills the form in, None declines."""
    left = iter(answers)

    def answer(question: Question) -> Mapping[str, Any] | None:
        given = next(left)
        print(f"  {question.message} {given}")
        return given

    return answer


async def visit(*answers: Mapping[str, Any] | None) -> None:
    command = [sys.executable, __file__, "serve"]
    async with typedmcp.connect(command, elicit=answering(*answers)) as client:
        print(text_of(await client.call_tool("book_table", {"day": "Friday"})))


async def main() -> None:
    await visit({"guests": 2, "place": "garden"})
    await visit({"guests": 7}, {"value": True})
    await visit(None)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
