"""The smallest server: one tool. `python quickstart.py` serves it over standard input and output."""

import typedmcp

server = typedmcp.Server("greeter")


@server.tool
async def greet(name: str, times: int = 1) -> str:
    """Greet a person."""
    return " ".join([f"Hello, {name}!"] * times)


if __name__ == "__main__":
    server.run()
