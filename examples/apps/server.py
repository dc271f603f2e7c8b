"""A server whose tool has a page: the rain of the coming days, as bars.

python examples/apps/host.py  # shows the page; open the address that it prints
"""

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import typedmcp
from typedmcp_extensions.apps import AppPage, AppsServer

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


@dataclass
class Day:
    day: str
    rain: int
    """Rain in mm."""


@dataclass
class Forecast:
    city: str
    days: list[Day]


server = typedmcp.Server("weather", version="1.0", extensions=[AppsServer()])
page = AppPage("ui://weather/forecast", Path(__file__).with_name("page.html"), title="Forecast", border=True)
measurements = 0


def measured(city: str) -> Forecast:
    """Return the rain of a week, which no one has measured."""
    return Forecast(city, [Day(day, crc32(f"{city} {day} {measurements}".encode()) % 20) for day in DAYS])


@page.tool(server, text=lambda forecast: f"Rain in {forecast.city}: {forecast.days[0].rain} mm on Monday")
def forecast(city: str) -> Forecast:
    """Forecast the rain of a week."""
    return measured(city)


@page.tool(server, visible_to=["app"])
def refresh(city: str) -> Forecast:
    """Measure again. The button of the page calls it, and the model does not see it."""
    global measurements
    measurements += 1
    return measured(city)


@page.tool(server, visible_to=["model"])
def close_station(city: str) -> str:
    """Close the weather station of a city. The page may not call it."""
    return f"the station of {city} is closed"


if __name__ == "__main__":
    server.run()
