"""Mistakes of whoever writes a client, as the server's log and its frames show them."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import Json, run
from typedmcp.frames import OnFrame
from typedmcp.server.config import _MAX_MISTAKES  # pyright: ignore[reportPrivateUsage]

INITIALIZE: Json = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
INITIALIZED: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def message(**members: Any) -> Json:
    return {"jsonrpc": "2.0", **members}


def call(**params: Any) -> Json:
    return message(id=1, method="tools/call", params=params)


MISTAKES: dict[str, tuple[list[Json], list[str]]] = {
    "initialized without its prefix": (
        [INITIALIZE, message(method="initialized")],
        ["unexpected message: method not found: initialized; did you mean notifications/initialized?"],
    ),
    "a notification as a request": (
        [INITIALIZE, message(id=1, method="notifications/initialized")],
        ["rejected request notifications/initialized: notifications/initialized is a notification and has no id"],
    ),
    "a request as a notification": (
        [INITIALIZE, INITIALIZED, message(method="tools/list")],
        ["rejected notification: tools/list is a request and needs an id"],
    ),
    "an answer without its id": (
        [INITIALIZE, INITIALIZED, message(result={})],
        ["malformed: id: required, but missing"],
    ),
    "an answer to nothing": (
        [INITIALIZE, INITIALIZED, message(id=99, result={})],
        ["unexpected response: a response with the id 99"],
    ),
    "arguments under another name": (
        [INITIALIZE, INITIALIZED, call(name="add", args={"a": 1, "b": 2})],
        ["rejected request tools/call: params.args is unknown; meant arguments?"],
    ),
    "arguments beside the name": (
        [INITIALIZE, INITIALIZED, call(name="add", **{"a\n": 1, "b": 2})],
        [r"rejected request tools/call: params.a\x0a is unknown; meant arguments?"],
    ),
    "another name of a method": (
        [INITIALIZE, INITIALIZED, message(id=1, method="tools.list")],
        ["rejected request tools.list: method not found: tools.list; did you mean tools/list?"],
    ),
    "a request before the handshake": (
        [message(id=1, method="tools/list")],
        ["rejected request tools/list: send initialize first; without it params._meta: required, but missing"],
    ),
    "no mistake: a feature that the server lacks": (
        [INITIALIZE, INITIALIZED, message(id=1, method="resources/list")],
        [],
    ),
    "no mistake: arguments that do not fit": (
        [INITIALIZE, INITIALIZED, call(name="add", arguments={"c": 1}), call(name="add")],
        [],
    ),
    "no mistake: a revision that the server lacks": (
        [message(id=1, method="server/discover", params={"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2099-01-01",
            "io.modelcontextprotocol/clientCapabilities": {},
        }})],
        [],
    ),
}  # fmt: skip
"""Messages of a client, and the warnings about them."""


def adding() -> typedmcp.Server:
    server = typedmcp.Server("adding")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return server


async def exchange(server: object, messages: list[Json]) -> list[Json]:
    """Send messages to a server that is served, and return what it sends."""
    near, far = typedmcp.memory_pair()
    serving = asyncio.create_task(typedmcp.serve_async(server, far))
    near.write("".join(json.dumps(each) + "\n" for each in messages).encode())
    received, wanted = b"", sum("id" in each and "method" in each for each in messages)
    async with asyncio.timeout(10):
        while received.count(b"\n") < wanted:
            received += await near.read()
    await near.close()
    await serving
    return [json.loads(line) for line in received.splitlines()]


@each("name", MISTAKES)
def test_mistakes_are_warnings_once_each(name: str, caplog: pytest.LogCaptureFixture) -> None:
    messages, warnings = MISTAKES[name]
    caplog.set_level(logging.WARNING, "typedmcp")
    repeated = [{**each, "id": each["id"] + 10} if "method" in each and "id" in each else each for each in messages]

    async def main() -> None:
        await exchange(adding(), messages if messages[0] is not INITIALIZE else [*messages, *repeated[1:]])

    caplog.clear()
    run(main)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == warnings


def test_the_client_is_told_what_it_may_have_meant_first() -> None:
    async def main() -> None:
        *_, missing, unknown = await exchange(
            adding(), [INITIALIZE, INITIALIZED, call(name="add", args={}), message(id=2, method="tools.list")]
        )
        (content,) = missing["result"]["content"]
        assert content["text"].splitlines()[0] == "params.args is unknown; meant arguments?"
        assert unknown["error"]["message"] == "method not found: tools.list; did you mean tools/list?"

    run(main)


def test_a_client_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "typedmcp")

    async def main() -> None:
        await exchange(adding(), [INITIALIZE, *(message(id=id, method=f"x{id}y") for id in range(1, 200))])

    run(main)
    assert len(caplog.records) == _MAX_MISTAKES


@each("record", [True, False])
def test_frames_of_a_server_are_those_of_its_client(record: bool) -> None:
    async def main() -> None:
        served, seen, recorded = list[tuple[str, bytes]](), list[tuple[str, bytes]](), list[tuple[str, bytes]]()

        def keep_in(frames: list[tuple[str, bytes]]) -> OnFrame:
            def keep(sender: str, data: bytes) -> None:
                frames.append((sender, data))

            return keep

        class Sink:
            def open(self, info: object) -> OnFrame:
                return keep_in(recorded)

        config = typedmcp.ServerConfig(adding(), on_frame=keep_in(served), record=Sink() if record else None)
        near, far = typedmcp.memory_pair()
        serving = asyncio.create_task(typedmcp.serve_async(config, far))
        async with typedmcp.connect(near, on_frame=keep_in(seen)) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
        await serving
        assert served == seen
        assert [json.loads(data).get("method") for sender, data in seen if sender == "client"] == [
            "server/discover",
            "tools/call",
        ]
        assert recorded == (seen if record else [])

    run(main)


@each("make", [typedmcp.ServerConfig, typedmcp.connect])
def test_on_frame_is_a_function(make: Any) -> None:
    with pytest.raises(typedmcp.UsageError, match="on_frame must be a function, not 'print'"):
        make(adding(), on_frame="print")
