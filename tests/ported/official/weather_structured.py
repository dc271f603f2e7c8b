"""examples/mcpserver/weather_structured.py: structured results of seven types, and a client in the same process."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from mcp.client import Client
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

mcp = MCPServer("Sea")


class Report(BaseModel):
    """The state of the sea."""

    waves: float = Field(description="Height in metres")
    place: str
    at: datetime = Field(default_factory=lambda: datetime(2026, 1, 2, 3, 4), description="Time of the report")


@mcp.tool()
def report(place: str) -> Report:
    """Report the sea."""
    return Report(waves=1.5, place=place)


class Summary(TypedDict):
    """A short report."""

    place: str
    waves: float


@mcp.tool()
def summary(place: str) -> Summary:
    """Summarise the sea."""
    return Summary(place=place, waves=1.5)


@mcp.tool()
def metrics(places: list[str]) -> dict[str, dict[str, float]]:
    """Measure the sea at several places."""
    return {place: {"waves": 1.0 + number / 2, "salt": 3.5} for number, place in enumerate(places)}


@dataclass
class Warning:
    """A warning for ships."""

    title: str
    areas: list[str]
    until: datetime


@mcp.tool()
def warnings(sea: str) -> list[Warning]:
    """List the warnings for a sea."""
    return [Warning("Storm", ["north", "west"], datetime(2026, 1, 3))] if sea.lower() == "north sea" else []


@mcp.tool()
def temperature(place: str, unit: str = "celsius") -> float:
    """Measure the temperature."""
    return 8.5 if unit == "celsius" else 47.3


class Range(BaseModel):
    low: float
    high: float


class Statistics(BaseModel):
    place: str
    days: int
    waves: Range


@mcp.tool()
def statistics(place: str, days: int = 7) -> Statistics:
    """Summarise several days."""
    return Statistics(place=place, days=days, waves=Range(low=0.5, high=2))


async def try_it() -> str:
    async with Client(mcp) as client:
        result = await client.call_tool("metrics", {"places": ["Bergen", "Oban"]})
        shown = json.dumps(result.structured_content, indent=2)
        result = await client.call_tool("statistics", {"place": "Oban", "days": 3})
        return shown + "".join(block.text for block in result.content if block.type == "text")
