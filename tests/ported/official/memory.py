"""examples/mcpserver/memory.py: `Field` in place of a default, tools without return types. No database, no model."""

import asyncio
import math
from dataclasses import dataclass, field

from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

mcp = MCPServer("memory")


class Node(BaseModel):
    content: str
    importance: float = 1.0
    access_count: int = 0

    def effective(self) -> float:
        return self.importance * (1 + math.log(self.access_count + 1))


@dataclass
class Store:
    nodes: list[Node] = field(default_factory=list)


STORE = Store()


async def add(content: str, store: Store) -> str:
    store.nodes.append(Node(content=content))
    return f"Remembered: {content}"


@mcp.tool()
async def remember(contents: list[str] = Field(description="List of observations to store")):
    return "\n".join(await asyncio.gather(*[add(content, STORE) for content in contents]))


@mcp.tool()
async def profile() -> str:
    return "".join(f"- {node.content} ({node.effective():.2f})\n" for node in STORE.nodes)
