"""A `Server` of typedmcp with decorated functions, over stdio as a script, and over HTTP as `app`."""

import typedmcp

server = typedmcp.Server("large", version="1")


@server.tool
async def large(size: int) -> str:
    return "x" * size


@server.tool
async def length(text: str) -> str:
    return str(len(text))


if __name__ == "__main__":
    server.run()
else:
    app = typedmcp.asgi(server, limits=typedmcp.Limits(http_body_bytes=64 << 20))
