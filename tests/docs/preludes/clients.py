"""Names that the page about clients takes for granted: servers and what they need."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typedmcp
import typedmcp_hosts.config
from typedmcp.dialect import structs as structs

SERVER = """
import typedmcp

server = typedmcp.Server("search")


@server.tool
def search(text: str) -> list[str]:
    return [text]


server.add_resource(lambda: "wet", "wiki://rain")
server.run()
"""
for name in ("clock.py", "search.py"):
    Path(name).write_text(SERVER)
Path("mcp.json").write_text(
    f'{{"mcpServers": {{"files": {{"command": "{sys.executable}", "args": ["search.py"]}},'
    f' "wiki": {{"command": "{sys.executable}", "args": ["search.py"]}}}}}}'
)

weather = typedmcp.Server("weather", errors=(LookupError,))


@weather.tool
def greet(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}!"


@weather.tool
def forecast(city: str) -> dict[str, object]:
    """Forecast the weather."""
    if city == "Atlantis":
        raise typedmcp.ToolError("no such city: Atlantis")
    return {"city": city, "days": 3}


@weather.tool
def forecasts(cities: list[str]) -> list[dict[str, object]]:
    """Forecast the weather in several places."""
    return [{"city": city} for city in cities]


@weather.tool
def report(city: str, days: int) -> str:
    """Describe the forecast in words."""
    return f"{days} days of rain in {city}"


target, token = weather, "a token"


async def my_model(messages: object) -> str:
    """Answer like a model."""
    return "rain"


def connect(there: Any, connect: Callable[..., typedmcp.Client] = typedmcp.connect, **options: Any) -> typedmcp.Client:
    """Return a client of a target; in the place of URLs, which do not exist here, it is a client of `weather`."""
    if isinstance(there, str):
        options.pop("auth", None)
        there = weather
    return connect(there, **options)


for module in (typedmcp, typedmcp_hosts.config):
    vars(module)["connect"] = connect
client = await connect(weather)  # type: ignore[top-level-await]  # noqa: F704
listen_for_ever = client.listen


def listen(**wanted: Any) -> typedmcp.Subscription:
    """Subscribe like a client, publish one change, and end the subscription."""
    subscription = listen_for_ever(**wanted)

    async def change() -> None:
        await asyncio.sleep(0.1)
        weather.resource_updated("file:///a")
        await asyncio.sleep(0.1)
        await subscription.close()

    tasks.append(asyncio.ensure_future(change()))
    return subscription


tasks: list[asyncio.Task[None]] = []
client.listen = listen  # type: ignore[method-assign]
