"""A client of `weather.py`.

Run `python weather_client.py` to start the server and call it, or give the URL of a server:
`python weather_client.py http://127.0.0.1:8000/mcp`.
"""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

import typedmcp
from typedmcp import text_of
from typedmcp.dialect import structs

COMMAND = [sys.executable, str(Path(__file__).with_name("weather.py"))]


@dataclass
class Day:
    """The part of a forecast that this client uses."""

    sky: str
    low: int
    high: int


async def main(target: str | list[str]) -> None:
    async with typedmcp.connect(target) as client:
        print("instructions:", client.server.instructions)
        await call_tools(client)
        await read_resources(client)
        prompt = await client.get_prompt("packing", {"city": "Nuuk", "days": "2"})
        print(f"{prompt.messages[0].role}:", text_of(prompt))


async def call_tools(client: typedmcp.Client) -> None:
    for day in await client.call_tool("get_forecast", {"city": "Bergen", "days": 2}, result_type=list[Day]):
        print(f"Bergen: {day.sky}, {day.low} to {day.high} degrees")
    print("alerts:", text_of(await client.call_tool("get_alerts", {"city": "Bergen"})))
    try:
        await client.call_tool("get_forecast", {"city": "Atlantis"}, raise_on_error=True)
    except typedmcp.ToolError as error:
        print(error)


async def read_resources(client: typedmcp.Client) -> None:
    print("cities:", text_of(await client.read_resource("cities://supported")))
    print("Cairo now:", text_of(await client.read_resource("weather://Cairo/now")))
    template = structs.ResourceTemplateReference(uri="weather://{city}/now")
    print("cities with N:", (await client.complete(template, "city", "N")).completion.values)
    try:
        await client.read_resource("weather://Atlantis/now")
    except typedmcp.ResourceNotFoundError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if sys.argv[1:] else COMMAND))
