"""Types of applications in web frameworks."""

from __future__ import annotations

from typing import assert_type

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, Route

import typedmcp
from typedmcp.server.http.asgi import AsgiApp

server = typedmcp.Server("mounted")
app = typedmcp.asgi(server, path="/", auth=typedmcp.StaticTokens({"token": typedmcp.Principal("ci")}))
assert_type(app, AsgiApp)

Starlette(routes=[Mount("/mcp", app=app), Route("/mcp", app)], lifespan=app.lifespan)
Starlette().mount("/mcp", app)
FastAPI(lifespan=app.lifespan).mount("/mcp", app)
server.run("http", host="0.0.0.0", hosts=["mcp.example.com"], origins=["https://app.example.com"])  # noqa: S104
