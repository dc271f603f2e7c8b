"""A weather server: tools, resources, a template of resources and a prompt, from functions.

Run `python weather.py` to serve standard input and output, or `python weather.py http` to serve HTTP at
http://127.0.0.1:8000/mcp (the variable PORT says another port). `weather_client.py` calls either.
"""

import os
import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from typedmcp import ResourceNotFound, Server, ToolError

server = Server("weather", version="1.0", instructions="Ask get_alerts before recommending to go outside.")


@dataclass
class Day:
    """The weather of one day."""

    sky: Literal["sun", "clouds", "rain", "snow"]
    low: int
    high: int


FORECASTS = {
    "Bergen": [Day("rain", 6, 9), Day("rain", 5, 9), Day("clouds", 6, 11)],
    "Cairo": [Day("sun", 17, 31), Day("sun", 18, 33), Day("sun", 18, 32)],
    "Nuuk": [Day("snow", -9, -4), Day("clouds", -11, -6), Day("sun", -14, -8)],
}
ALERTS = {"Bergen": ["Flooding in low-lying streets"], "Nuuk": ["Drifting snow", "Black ice"]}


@server.tool(annotations={"readOnlyHint": True})
def get_forecast(city: str, days: Annotated[int, Meta(ge=1, le=3)] = 3) -> list[Day]:
    """The weather to come.

    Args:
        city: One of the cities in cities://supported.
        days: How many days, beginning with today.

    """
    if city not in FORECASTS:
        raise ToolError(f"nothing is known of {city!r}; try one of: {', '.join(FORECASTS)}")
    return FORECASTS[city][:days]


@server.tool(annotations={"readOnlyHint": True})
def get_alerts(city: str) -> list[str]:
    """Warnings that are in force, if any."""
    return ALERTS.get(city, [])


@server.resource("cities://supported")
def cities() -> list[str]:
    """The cities that there are forecasts for."""
    return [*FORECASTS]


@server.resource("weather://{city}/now")
def now(city: str) -> Day:
    """The weather at the moment."""
    if city not in FORECASTS:
        raise ResourceNotFound(f"weather://{city}/now")
    return FORECASTS[city][0]


@server.completion("weather://{city}/now", "city")
def known_cities(typed: str) -> list[str]:
    return [*FORECASTS]


@server.prompt
def packing(city: str, days: int = 3) -> str:
    """What to put into the suitcase."""
    return f"I am going to {city} for {days} days. Look at the forecast and at the alerts, then tell me what to pack."


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        server.run("http", port=int(os.environ.get("PORT", "8000")))
    else:
        server.run()
