"""servers/tools: options of the decorator, annotations, types, `ToolError`, a timeout."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

mcp = FastMCP("Garden")


@mcp.tool(name="find_plants", description="Search the garden.", meta={"season": "spring"})
def search(query: str, bed: str | None = None) -> list[dict]:
    """Search, see the description in the decorator."""
    return [{"id": 2, "name": query, "bed": bed}]


@mcp.tool(annotations={"title": "Water a bed", "readOnlyHint": False, "idempotentHint": True})
def water(
    bed: Annotated[str, "The bed to water"],
    litres: Annotated[float, Field(gt=0, le=20, description="How much")] = 2,
    way: Literal["can", "hose"] = "can",
) -> str:
    """Water a bed."""
    return f"{litres:g} l on {bed} by {way}"


@mcp.tool(annotations=ToolAnnotations(title="Harvest", readOnlyHint=True, openWorldHint=False))
def harvest(bed: str) -> dict:
    """Tell what is ripe."""
    if bed == "empty":
        raise ToolError("nothing grows there")
    return {"bed": bed, "ripe": ["beans"]}


@dataclass
class Bed:
    name: str
    metres: float


@mcp.tool
def measure(beds: list[Bed]) -> Bed:
    """Return the largest bed."""
    return max(beds, key=lambda bed: bed.metres)


@mcp.tool(timeout=0.05)
async def grow() -> str:
    """Wait for a plant, for too long."""
    await asyncio.sleep(30)
    return "grown"
