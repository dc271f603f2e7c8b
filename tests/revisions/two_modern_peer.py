"""A server and a client for the tests with two modern revisions, which run in processes of their own.

`two_modern_peer.py server stdio|http REVISIONS CODEC` serves over standard input and output, or over HTTP and prints
its URL. `two_modern_peer.py client stdio|http REVISIONS CODEC OWN_REVISIONS` starts that server and uses it with a
client on OWN_REVISIONS. It prints the results and all messages as JSON. Commas separate revisions.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import typedmcp
from typedmcp import dialect
from typedmcp.transports.process import ProcessTransport
from typedmcp.transports.process_parameters import StdioServerParameters

FORM: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: dict[str, Any] = {"name": "echo", "inputSchema": {"type": "object", "properties": {"any": True}}}
"""A tool whose schema is only valid on modern revisions."""
CACHED = {"resultType": "complete", "ttlMs": 1000, "cacheScope": "public"}


class Handler:
    """A handler whose results are of the types in `module`."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def _made(self, value: dict[str, Any], name: str) -> Any:
        return self._module.from_builtins(value, getattr(self._module, name))

    async def list_tools(self, _params: Any, _ctx: typedmcp.Context) -> Any:
        return self._made({"tools": [TOOL], **CACHED}, "ListToolsResult")

    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
        if params.name == "ask":
            answer = await ctx.elicit("Where to?", FORM)
            value: Any = [answer.action, answer.content]
        elif params.name == "change":
            ctx.changes.tools_changed()
            value = None
        else:
            await ctx.progress(1, message="one")
            value = [params.arguments["any"], ctx.revision]
        content = [{"type": "text", "text": params.name}]
        return self._made({"content": content, "structuredContent": value, "resultType": "complete"}, "CallToolResult")

    async def read_resource(self, params: Any, _ctx: typedmcp.Context) -> Any:
        raise typedmcp.ResourceNotFoundError(params.uri)

    async def get_prompt(self, _params: Any, ctx: typedmcp.Context) -> Any:
        await ctx.sample(dialect.structs.CreateMessageRequestParams(messages=[], max_tokens=1))


def config(revisions: str, codec: str) -> typedmcp.ServerConfig:
    module = dialect.structs if codec == "msgspec" else dialect.models
    options: Any = {"codec": codec}
    return typedmcp.ServerConfig(Handler(module), name="two", version="1", revisions=revisions.split(","), **options)


class Recorder:
    """An ASGI application that records the bodies of another one, and returns them at `/recorded`."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._messages: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/recorded":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": json.dumps(self._messages).encode()})
            return

        async def recording_receive() -> Any:
            event = await receive()
            if event.get("body"):
                headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                self._messages.append({"sender": "client", "headers": headers, "text": event["body"].decode()})
            return event

        async def recording_send(event: Any) -> None:
            if event.get("body"):
                self._messages.append({"sender": "server", "text": event["body"].decode()})
            await send(event)

        await self._app(scope, recording_receive if scope["type"] == "http" else receive, recording_send)


def serve_http(served: typedmcp.ServerConfig) -> None:
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        app = Recorder(typedmcp.asgi(served))
        uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none")).run(sockets=[listening])


class RecordingTransport:
    """A transport that records the lines of another one."""

    def __init__(self, inner: ProcessTransport, messages: list[dict[str, Any]]) -> None:
        self._inner, self._messages = inner, messages

    async def read(self) -> bytes:
        data = await self._inner.read()
        self._messages += [{"sender": "server", "text": line.decode()} for line in data.splitlines()]
        return data

    def write(self, data: bytes) -> None:
        self._messages += [{"sender": "client", "text": line.decode()} for line in data.splitlines()]
        self._inner.write(data)

    @property
    def is_congested(self) -> bool:
        return self._inner.is_congested

    async def drain(self) -> None:
        await self._inner.drain()

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def connected(
    transport: str, command: list[str], messages: list[dict[str, Any]], **options: Any
) -> AsyncGenerator[typedmcp.Client]:
    """Start a server, connect to it, and add the messages of both sides to `messages`."""
    if transport == "stdio":
        inner = await ProcessTransport.start(
            StdioServerParameters(command[0], command[1:], env={"PYTHONPATH": os.environ["PYTHONPATH"]})
        )
        async with typedmcp.connect(RecordingTransport(inner, messages), **options) as client:
            yield client
        return
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = (await asyncio.to_thread(server.stdout.readline)).strip()
            async with typedmcp.connect(f"{url}/mcp", **options) as client:
                yield client
            with await asyncio.to_thread(urllib.request.urlopen, f"{url}/recorded") as response:
                messages += json.load(response)
        finally:
            server.terminate()


async def error_of(call: Any) -> list[Any]:
    """Await a call that should fail, and return class, code and data of its error."""
    try:
        await call
    except typedmcp.RemoteError as error:
        return [type(error).__name__, error.code, error.data]
    return ["no error"]


async def scenario(client: typedmcp.Client) -> dict[str, Any]:
    """Make every kind of request once, and return the results."""
    plain = dialect.structs.to_builtins
    steps: list[str | None] = []
    echo = await client.call_tool("echo", {"any": [1]}, on_progress=lambda step: steps.append(step.message or None))
    async with client.listen(tools=True) as changes:
        await client.call_tool("change")
        changed = await anext(changes)
    return {
        "revision": client.revision,
        "tools": [plain(tool) for tool in (await client.list_tools()).tools],
        "echo": echo.structured_content,
        "steps": steps,
        "asked": (await client.call_tool("ask")).structured_content,
        "changed": changed.kind,
        "raw": (await client.send("tools/list", {}))["tools"],
        "errors": {
            "unknown resource": await error_of(client.read_resource("file:///none")),
            "unknown method": await error_of(client.send("no/method", {})),
            "missing capability": await error_of(client.get_prompt("any")),
        },
    }


async def call(transport: str, served: str, codec: str, spoken: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    command = [sys.executable, __file__, "server", transport, served, codec]

    def elicit(_params: object) -> dict[str, Any]:
        return {"city": "Oslo"}

    async with connected(transport, command, messages, revisions=spoken.split(","), elicit=elicit) as client:
        seen = await asyncio.wait_for(scenario(client), 120)
    return {**seen, "messages": messages}


def main(role: str, transport: str, *arguments: str) -> None:
    if role == "client":
        print(json.dumps(asyncio.run(call(transport, *arguments))))
    elif transport == "stdio":
        typedmcp.serve(config(*arguments))
    else:
        serve_http(config(*arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
