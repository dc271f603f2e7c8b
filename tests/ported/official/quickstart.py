"""examples/mcpserver/readme-quickstart.py: a tool and a template."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("Quick")


@mcp.tool()
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@mcp.resource("farewell://{name}")
def farewell(name: str) -> str:
    """Say goodbye to a person."""
    return f"Goodbye, {name}!"
