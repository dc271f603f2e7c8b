"""A weather server with tools, resources, a resource template and a prompt.

Run `python weather.py` to serve over standard input and output, or `python weather.py http` to serve at
http://127.0.0.1:8000/mcp, or on the port in the variable PORT. `weather_client.py` calls either.
"""

import os
import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from typedmcp import ResourceNotFoundError, Server, ToolError

server = Server("weather", version="1.0", instructions="Call get_alerts before you recommend going outside.")


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
    """Forecast the weather.

    Args:
        city: One of the cities in cities://supported.
        days: How many days, starting today.

    """
    if city not in FORECASTS:
        raise ToolError(f"unknown city {city!r}; known: {', '.join(FORECASTS)}")
    return FORECASTS[city][:days]


@server.tool(annotations={"readOnlyHint": True})
def get_alerts(city: str) -> list[str]:
    """List current weather warnings."""
    return ALERTS.get(city, [])


@server.resource("cities://supported")
def cities() -> list[str]:
    """List the cities with forecasts."""
    return [*FORECASTS]


@server.resource("weather://{city}/now")
def now(city: str) -> Day:
    """Get the current weather."""
    if city not in FORECASTS:
        raise ResourceNotFoundError(f"weather://{city}/now")
    return FORECASTS[city][0]


@server.completion("weather://{city}/now", "city")
def complete_city(prefix: str) -> list[str]:
    return [*FORECASTS]


@server.prompt
def packing(city: str, days: int = 3) -> str:
    """Ask for a packing list."""
    return f"I am going to {city} for {days} days. Check the forecast and the alerts, then tell me what to pack."


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        server.run("http", port=int(os.environ.get("PORT", "8000")))
    else:
        server.run()
