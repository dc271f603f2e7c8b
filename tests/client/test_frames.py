"""`on_frame` gets every message in both directions as the bytes on the wire, over every transport."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import SUPPORTED, run
from typedmcp.errors import ProtocolError, UsageError
from typedmcp.transports.memory import memory_pair
from typedmcp_http import UvicornServer

server = typedmcp.Server("observed")


@server.tool
async def climb(ctx: typedmcp.Context) -> str:
    await ctx.progress(1, total=2)
    return "top"


class Frames:
    """Frames in their order, and a client's option that records them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def record(self, sender: str, data: bytes) -> None:
        self.seen.append((sender, json.loads(data)))

    def responses(self) -> dict[Any, Any]:
        return {frame["id"]: frame for sender, frame in self.seen if sender == "server" and "method" not in frame}

    def requests(self) -> dict[Any, str]:
        return {frame["id"]: frame["method"] for sender, frame in self.seen if sender == "client" and "id" in frame}

    def methods(self, sender: str) -> list[str]:
        return [frame["method"] for who, frame in self.seen if who == sender and "method" in frame]


@asynccontextmanager
async def over_http() -> AsyncGenerator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        uvicorn = UvicornServer(typedmcp.asgi(server, sse_path="/sse"), "127.0.0.1", port)
        serving = asyncio.create_task(uvicorn.serve([listener]))
        while not uvicorn.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            uvicorn.should_exit = True
            await serving


async def observe_call(target: Any, **options: Any) -> Frames:
    frames = Frames()
    async with typedmcp.connect(target, on_frame=frames.record, **options) as client:
        await client.call_tool("climb", on_progress=lambda _: None)
    return frames


def check(frames: Frames) -> None:
    assert "tools/call" in frames.methods("client")
    assert "notifications/progress" in frames.methods("server")
    assert frames.requests().keys() == frames.responses().keys()
    (id,) = [id for id, method in frames.requests().items() if method == "tools/call"]
    assert frames.responses()[id]["result"]["content"] == [{"type": "text", "text": "top"}]


@each("revision", SUPPORTED)
def test_a_stream_is_observed_on_every_revision(revision: str) -> None:
    async def main() -> None:
        check(await observe_call(server, revisions=[revision]))

    run(main)


@each("revision", SUPPORTED[:4])
def test_http_is_observed_on_every_revision_that_has_it(revision: str) -> None:
    async def main() -> None:
        async with over_http() as url:
            check(await observe_call(f"{url}/mcp", revisions=[revision]))

    run(main)


def test_http_with_sse_is_observed() -> None:
    async def main() -> None:
        async with over_http() as url:
            check(await observe_call(f"{url}/sse", sse=True, revisions=["2024-11-05"]))

    run(main)


def test_an_error_with_a_status_is_observed() -> None:
    async def main() -> None:
        frames = Frames()
        async with over_http() as url, typedmcp.connect(f"{url}/mcp", on_frame=frames.record) as client:
            with pytest.raises(typedmcp.RemoteError):
                await client.send("no/such")
        (response,) = [frame for frame in frames.responses().values() if "error" in frame]
        assert response["error"]["code"] == -32601

    run(main)


def test_a_message_that_is_not_valid_is_observed_before_it_is_rejected() -> None:
    async def main() -> None:
        near, far = memory_pair()
        raw: list[bytes] = []
        client = typedmcp.connect(near, on_frame=lambda sender, data: raw.append(data), revisions=["2026-07-28"])
        opening = asyncio.create_task(client.open())
        await far.read()
        far.write(b'{"jsonrpc":"2.0","id":1,\n{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":3}}\n')
        with pytest.raises(ProtocolError):
            await opening
        await client.close()
        assert raw[1:] == [b'{"jsonrpc":"2.0","id":1,', b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":3}}']

    run(main)


def test_a_callback_that_is_no_function_is_rejected() -> None:
    with pytest.raises(UsageError, match="on_frame must be a function, not 'print'"):
        typedmcp.connect(server, on_frame="print")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
