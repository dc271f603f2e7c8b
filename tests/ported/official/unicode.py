"""examples/mcpserver/unicode_example.py: other scripts and emojis, and a server without a name."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer()


@mcp.tool(description="🌟 Sagt hallo: ä é ñ 漢字 🎉")
def hello(name: str = "宇宙", greeting: str = "¡Buenas") -> str:
    """Say hello."""
    return f"{greeting}, {name}! 👋"


@mcp.tool(description="🎨 Lists emojis")
def emojis() -> list[str]:
    """List emojis."""
    return ["🐶 Hund", "❤️ Herz", "🏳️ Fahne"]


@mcp.tool(description="🔤 Scripts")
def scripts() -> str:
    """Say hello in some scripts."""
    return "\n".join(["Hallo", "Здравствуй", "!שלום", "こんにちは", "สวัสดี"])
