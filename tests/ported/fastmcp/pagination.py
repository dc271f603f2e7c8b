"""servers/pagination: pages of a list."""

from fastmcp import FastMCP

mcp = FastMCP("Pages", list_page_size=2)


@mcp.tool
def first(query: str) -> str:
    return query


@mcp.tool
def second(query: str) -> str:
    return query


@mcp.tool
def third(query: str) -> str:
    return query
