"""examples/mcpserver/echo.py: a tool, a resource, a template and a named prompt."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("Echo")


@mcp.tool()
def repeat(text: str) -> str:
    """Repeat a text."""
    return text


@mcp.resource("echo://always")
def always() -> str:
    return "Always!"


@mcp.resource("echo://said/{text}")
def said(text: str) -> str:
    """Say a text."""
    return f"Said: {text}"


@mcp.prompt("echo")
def ask(text: str) -> str:
    return text
