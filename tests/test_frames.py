"""A sink that is not ours gets the frames of both sides, over every transport."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import SUPPORTED, run
from typedmcp.errors import UsageError
from typedmcp.frames import FrameSink, OnFrame, Sender
from typedmcp.observers import ConnectionInfo
from typedmcp_http import UvicornServer

Frames = list[tuple[Sender, bytes]]


class Sink:
    """Keeps the frames of each connection."""

    def __init__(self) -> None:
        self.connections: list[tuple[ConnectionInfo, Frames]] = []

    def open(self, info: ConnectionInfo) -> OnFrame:
        frames: Frames = []
        self.connections.append((info, frames))
        return lambda sender, data: frames.append((sender, data))

    @property
    def frames(self) -> list[tuple[Sender, Any]]:
        return [(sender, json.loads(data)) for _, frames in self.connections for sender, data in frames]


class Indifferent:
    def open(self, _info: ConnectionInfo) -> None:
        return None


def make_server() -> typedmcp.Server:
    server = typedmcp.Server("observed")

    @server.tool
    async def climb(ctx: typedmcp.Context, waits: bool = False) -> str:
        if waits:
            await asyncio.sleep(0.05)
        await ctx.progress(1, total=2)
        return "top"

    @server.tool
    async def idle() -> str:
        await asyncio.sleep(0.05)
        return "done"

    return server


@asynccontextmanager
async def over_http(**options: Any) -> AsyncGenerator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        uvicorn = UvicornServer(typedmcp.asgi(make_server(), sse_path="/sse", **options), "127.0.0.1", port)
        serving = asyncio.create_task(uvicorn.serve([listener]))
        while not uvicorn.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            uvicorn.should_exit = True
            await serving


async def use(target: Any, **options: Any) -> None:
    async with typedmcp.connect(target, **options) as client:
        for arguments in ({"waits": False}, {"waits": True}):
            await client.call_tool("climb", arguments, on_progress=lambda _: None)
        await client.call_tool("idle")
        with pytest.raises(typedmcp.RemoteError):
            await client.send("no/such")


def same(near: Sink, far: Sink) -> list[tuple[Sender, Any]]:
    def ordered(sink: Sink) -> list[str]:
        return sorted(json.dumps(frame, sort_keys=True) for frame in sink.frames)

    assert ordered(near) == ordered(far)
    return near.frames


def names(frames: list[tuple[Sender, Any]]) -> set[str]:
    return {frame["method"] for _, frame in frames if "method" in frame}


@each("revision", SUPPORTED)
def test_both_sides_of_a_stream_have_the_same_frames(revision: str) -> None:
    near, far = Sink(), Sink()
    sink: FrameSink = near
    run(lambda: use(typedmcp.ServerConfig(make_server(), record=far), record=sink, revisions=[revision]))
    assert near.frames == far.frames
    assert {"tools/call", "notifications/progress", "no/such"} <= names(near.frames)
    for side in (near, far):
        ((info, _),) = side.connections
        assert info.network == "memory"
        assert info.revision == (None if side is far and revision == SUPPORTED[0] else revision)


@each("revision", SUPPORTED[:4])
def test_both_sides_over_http_have_the_same_frames(revision: str) -> None:
    near, far = Sink(), Sink()

    async def main() -> None:
        async with over_http(record=far) as url:
            await use(f"{url}/mcp", record=near, revisions=[revision])
            ((info, _),) = near.connections
            assert info.network == "http"
            assert info.address == ("127.0.0.1", int(url.rpartition(":")[2]))

    run(main)
    assert {"tools/call", "notifications/progress", "no/such"} <= names(same(near, far))
    assert all(info.network == "http" for info, _ in far.connections)
    is_session = revision != SUPPORTED[0]
    assert (len(far.connections) == 1) is is_session
    assert all((info.id is not None) is is_session for info, _ in far.connections)


def test_both_sides_of_http_with_sse_have_the_same_frames() -> None:
    near, far = Sink(), Sink()

    async def main() -> None:
        async with over_http(record=far) as url:
            await use(f"{url}/sse", sse=True, record=near, revisions=["2024-11-05"])

    run(main)
    assert {"tools/call", "notifications/progress", "no/such"} <= names(same(near, far))


async def post(url: str, body: bytes, **headers: str) -> int:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    fields = {"host": "127.0.0.1", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head += f"content-length: {len(body)}\r\nconnection: close\r\n"
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
    response = await reader.read()
    writer.close()
    return int(response.split()[1])


def test_a_rejected_message_is_a_connection_of_its_own_with_its_response() -> None:
    far = Sink()
    ping, broken = b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1'

    async def main() -> None:
        async with over_http(record=far) as url:
            assert await post(url, ping, mcp_session_id="unknown", mcp_protocol_version="2025-11-25") == 404
            assert await post(url, broken, mcp_protocol_version="2026-07-28") == 400
            assert await post(url, ping, content_type="text/plain") == 415  # its body is not read

    run(main)
    assert [[sender for sender, _ in frames] for _, frames in far.connections] == [["client", "server"]] * 2
    assert [frames[0][1] for _, frames in far.connections] == [ping, broken]
    assert all("error" in json.loads(frames[1][1]) for _, frames in far.connections)


def test_a_session_that_cannot_begin_is_reported_once_with_its_response() -> None:
    far = Sink()

    async def main() -> None:
        async with over_http(record=far, limits=typedmcp.Limits(session_client_bytes=10)) as url:
            with pytest.raises(typedmcp.Error):
                await use(f"{url}/mcp", revisions=["2025-11-25"])

    run(main)
    ((_, frames),) = far.connections
    assert [sender for sender, _ in frames] == ["client", "server"]


def test_a_sink_may_have_no_interest_in_a_connection() -> None:
    async def main() -> None:
        seen: list[str] = []
        sink = Indifferent()

        def on_frame(sender: Sender, _data: bytes) -> None:
            seen.append(sender)

        await use(typedmcp.ServerConfig(make_server(), record=sink), record=sink, on_frame=on_frame)
        assert "server" in seen
        async with over_http(record=sink) as url:
            for revision in SUPPORTED[:2]:
                await use(f"{url}/mcp", revisions=[revision])
            assert await post(url, b"{}", mcp_session_id="unknown", mcp_protocol_version="2025-11-25") == 404

    run(main)


@each("value", [True, Sink])
def test_what_is_neither_a_file_nor_a_sink_is_rejected(value: Any) -> None:
    for make in (typedmcp.ServerConfig, typedmcp.connect):
        with pytest.raises(UsageError, match="must be the path of a file, or a FrameSink such as a Recorder, not"):
            make(make_server(), record=value)


def test_a_path_is_recorded_by_the_distribution_that_writes_files(tmp_path: Path) -> None:
    near, far = tmp_path / "near.jsonl", tmp_path / "far.jsonl"
    run(lambda: use(typedmcp.ServerConfig(make_server(), record=str(far)), record=near))
    assert near.read_text().count("tools/call") == far.read_text().count("tools/call") > 0


def test_a_path_without_that_distribution_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typedmcp_cli", None)
    for make in (typedmcp.ServerConfig, typedmcp.connect):
        with pytest.raises(ImportError, match=r"pip install 'typedmcp\[cli\]'.*typedmcp_cli.Recorder\('x.jsonl'\)"):
            make(make_server(), record="x.jsonl")
