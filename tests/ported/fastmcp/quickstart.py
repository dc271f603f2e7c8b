"""getting-started/quickstart: a tool, and `run` with a port."""

from fastmcp import FastMCP

mcp = FastMCP("Quick")


@mcp.tool
def welcome(name: str) -> str:
    return f"Welcome, {name}!"


if __name__ == "__main__":
    mcp.run(transport="http", port=8000)
