"""A server with one of everything that a gateway forwards. As a program it takes revisions and a transport."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import sys
from dataclasses import dataclass
from typing import Any

import typedmcp
from typedmcp.dialect import structs

__all__ = ["PICTURE", "Sum", "make_server", "starting"]

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)


@dataclass
class Sum:
    sum: int


@dataclass
class Person:
    name: str
    age: int


def make_server() -> typedmcp.Server:
    """Return a new server."""
    server = typedmcp.Server("everyday", version="1", instructions="Add numbers, and ask people.")
    _add_contents(server)
    _add_results(server)
    _add_calls(server)
    _add_questions(server)
    return server


def _add_contents(server: typedmcp.Server) -> None:
    notes = {"note://tea": "hot"}

    @server.resource("note://tea")
    def tea() -> str:
        return notes["note://tea"]

    @server.resource("city://{name}")
    def city(name: str) -> str:
        return f"{name} is large"

    @server.prompt
    def greeting(name: str) -> str:
        return f"Say hello to {name}."

    @server.completion(greeting, "name")
    def complete_name(value: str) -> list[str]:
        return [name for name in ("Ada", "Alan", "Grace") if name.startswith(value)]

    @server.tool
    async def touch(ctx: typedmcp.Context) -> str:
        notes["note://tea"] = "cold"
        ctx.changes.resource_updated("note://tea")
        ctx.changes.tools_changed()
        return "touched"


def _add_results(server: typedmcp.Server) -> None:
    @server.tool
    def add(a: int, b: int) -> Sum:
        """Add two numbers."""
        return Sum(a + b)

    @server.tool
    def text() -> str:
        return "plain text"

    @server.tool
    def picture() -> typedmcp.Image:
        return typedmcp.Image(data=PICTURE, format="png")

    @server.tool
    def fail() -> str:
        raise typedmcp.ToolError("this tool fails")

    @server.tool
    def pid() -> int:
        return os.getpid()


def _add_calls(server: typedmcp.Server) -> None:
    cancelled: list[str] = []

    @server.tool
    async def count(ctx: typedmcp.Context) -> str:
        for number in (1, 2, 3):
            await ctx.progress(number, 3, f"step {number}")
            await ctx.info(f"counted {number}")
        return "3"

    @server.tool
    async def hang(ctx: typedmcp.Context) -> str:
        try:
            await ctx.progress(0, 1)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("hang")
            raise
        return "late"

    @server.tool
    async def cancellations(at_least: int = 1) -> int:
        """Count the cancelled calls, and wait up to a minute for so many."""
        for _ in range(3000):
            if len(cancelled) >= at_least:
                break
            await asyncio.sleep(0.02)
        return len(cancelled)


def _add_questions(server: typedmcp.Server) -> None:
    @server.tool
    async def ask_model(ctx: typedmcp.Context) -> str:
        return typedmcp.text_of(await ctx.sample("Which colour?", max_tokens=9))

    @server.tool
    async def ask_person(ctx: typedmcp.Context) -> str:
        first = await ctx.elicit("Who are you?", Person)
        if first.action != "accept" or first.data is None:
            return first.action
        second = await ctx.elicit(f"Really, {first.data.name}?", bool)
        return f"{first.data.name} {first.data.age} {second.data}"

    @server.tool
    async def ask_url(ctx: typedmcp.Context) -> str:
        return (await ctx.elicit_url("Sign in", "https://example.com/sign-in")).action

    @server.tool
    async def ask_roots(ctx: typedmcp.Context) -> list[str]:
        return [root.uri for root in await ctx.list_roots()]

    @server.tool
    async def ask_two(ctx: typedmcp.Context) -> str:
        sampling = structs.CreateMessageRequestParams(
            messages=[structs.SamplingMessage(role="user", content=structs.TextContent(text="?"))], max_tokens=9
        )
        answers: dict[str, Any] = await ctx.ask(
            {"roots": structs.ListRootsRequest(), "model": structs.CreateMessageRequest(params=sampling)}
        )
        return f"{answers['roots'].roots[0].uri} {typedmcp.text_of(answers['model'])}"


def starting(revision: str, transport: str) -> list[str]:
    """Return the command that serves one revision over "stdio" or "http"."""
    return [sys.executable, "-m", __spec__.name if __spec__ else __name__, revision, transport]


def main() -> None:
    revision, transport = sys.argv[1:]
    config = typedmcp.ServerConfig(make_server(), revisions=[revision])
    if transport == "stdio":
        typedmcp.serve(config)
        return
    from typedmcp_http import UvicornServer

    app = typedmcp.asgi(config, sse_path="/sse")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        UvicornServer(app, "127.0.0.1", 0).run(sockets=[listening])


if __name__ == "__main__":
    main()
