"""The client in a session of a revision with a handshake, over one stream: what it sends, and in which order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import INITIALIZED, Script, text
from tests.server.scripted import LEGACY, Json, run
from typedmcp.client import Client, connect
from typedmcp.dialect import structs

NEWEST = LEGACY[0]
RESULT: Json = {"content": [{"type": "text", "text": "good"}]}
FORM: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}

each_legacy = each("revision", LEGACY)


def initialized(revision: str, capabilities: Json | None = None) -> Json:
    """Return the result of `initialize` of a server with tools."""
    return {**INITIALIZED, "protocolVersion": revision, "capabilities": {"tools": {}, **(capabilities or {})}}


@asynccontextmanager
async def opened(capabilities: Json | None = None, **options: Any) -> AsyncGenerator[tuple[Client, Script]]:
    """Open a session of the newest legacy revision with a server that the test plays."""
    reports: list[typedmcp.Diagnostic] = []
    near, far = typedmcp.memory_pair()
    script = Script(far, reports)
    client = connect(near, revisions=[NEWEST], on_diagnostic=reports.append, **options)
    opening = asyncio.create_task(client.open())
    script.send(id=(await script.receive())["id"], result=initialized(NEWEST, capabilities))
    assert (await script.receive())["method"] == "notifications/initialized"
    await opening
    try:
        yield client, script
    finally:
        await client.close()


def sample(_params: Any) -> structs.CreateMessageResult:
    raise NotImplementedError


def decline(_params: Any) -> None:
    """Decline every elicitation."""


# The handshake


@each_legacy
def test_the_handshake_names_version_capabilities_and_client_and_comes_before_any_call(revision: str) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        client = connect(near, name="mine", version="3", revisions=[revision], roots=["file:///a"])
        opening, call = asyncio.create_task(client.open()), asyncio.create_task(client.call_tool("x"))
        handshake = await script.receive()
        assert handshake["method"] == "initialize"
        assert handshake["params"]["protocolVersion"] == revision
        assert {*handshake["params"]["capabilities"]} == {"roots"}
        assert handshake["params"]["clientInfo"] == {"name": "mine", "version": "3"}
        assert await script.settled() == []  # the call waits for the response
        script.send(id=handshake["id"], result=initialized(revision))
        ready, request = await script.receive(), await script.receive()
        assert (ready["method"], "id" in ready) == ("notifications/initialized", False)
        assert request["method"] == "tools/call"
        script.send(id=request["id"], result=RESULT)
        assert text(await call) == "good"
        await opening
        await client.close()

    run(main)


@each_legacy
def test_the_newest_version_is_proposed_and_any_supported_one_accepted(revision: str) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        client = connect(near, revisions=[*LEGACY])
        opening = asyncio.create_task(client.open())
        handshake = await script.receive()
        assert handshake["params"]["protocolVersion"] == NEWEST
        script.send(id=handshake["id"], result=initialized(revision))
        await opening
        assert client.revision == revision
        await client.close()

    run(main)


def test_a_client_disconnects_from_a_server_of_an_unknown_version() -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        opening = asyncio.create_task(connect(near, revisions=[*LEGACY]).open())
        script.send(id=(await script.receive())["id"], result=initialized("1999-01-01"))
        with pytest.raises(typedmcp.UnsupportedVersionError):
            await opening
        assert await far.read() == b""  # nothing else was sent

    run(main)


@each("by", ["the deadline", "the caller"])
def test_initialize_is_never_cancelled(by: str) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        client = connect(near, revisions=[NEWEST], timeout=0.05 if by == "the deadline" else 10)
        opening = asyncio.create_task(client.open())
        sent = await far.read()
        if by == "the caller":
            opening.cancel()
        with pytest.raises((asyncio.CancelledError, typedmcp.RequestTimeoutError)):
            await opening
        await client.close()
        while data := await far.read():
            sent += data
        assert [json.loads(line)["method"] for line in sent.splitlines()] == ["initialize"]

    run(main)


DECLARED: dict[str, tuple[Json, Json]] = {
    "nothing": ({}, {}),
    "sampling": ({"sample": sample}, {"sampling": {}}),
    "sampling with tools": (
        {"sample": sample, "capabilities": {"sampling": {"tools": {}}}},
        {"sampling": {"tools": {}}},
    ),
    "elicitation": ({"elicit": decline}, {"elicitation": {"form": {}}}),
    "roots": ({"roots": []}, {"roots": {"listChanged": True}}),
}


@each("name", DECLARED)
def test_the_handshake_declares_what_the_client_has_callbacks_for(name: str) -> None:
    options, expected = DECLARED[name]

    async def main() -> None:
        near, far = typedmcp.memory_pair()
        client = connect(near, revisions=[NEWEST], **options)
        opening = asyncio.create_task(client.open())
        declared = (await Script(far, []).receive())["params"]["capabilities"]
        assert {*declared} == {*expected}
        for capability, members in expected.items():
            assert members.items() <= declared[capability].items()
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await opening

    run(main)


# Messages


def test_every_request_has_an_id_and_every_open_one_a_progress_token_of_its_own() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            ids: list[Any] = []
            for _ in range(3):
                calls = [asyncio.create_task(client.call_tool("x", on_progress=print)) for _ in range(3)]
                requests = [await script.receive() for _ in calls]
                tokens = [request["params"]["_meta"]["progressToken"] for request in requests]
                assert len({*tokens}) == len(calls)
                ids += [request["id"] for request in requests]
                assert all(type(each) in (int, str) for each in (*tokens, *ids))
                for request in requests:
                    script.send(id=request["id"], result=RESULT)
                await asyncio.gather(*calls)
            assert len({*ids}) == 9

    run(main)


def test_the_lines_of_the_client_are_requests_responses_and_notifications() -> None:
    arguments = {"text": "one\ntwo\r\nthree\u2028four"}

    async def main() -> None:
        async with opened(roots=["file:///a"]) as (client, script):
            script.send(id="q", method="roots/list")
            assert await script.receive() == {
                "jsonrpc": "2.0", "id": "q", "result": {"roots": [{"uri": "file:///a"}]},
            }  # fmt: skip
            script.send(id=7, method="ping")
            assert await script.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}
            await client.notify_roots_changed()
            changed = await script.receive()
            call = asyncio.create_task(client.call_tool("x", arguments))
            request = await script.receive()
            assert (request["method"], request["params"]["arguments"]) == ("tools/call", arguments)
            call.cancel()
            cancelled = await script.receive()
            assert (changed["method"], cancelled["method"]) == (
                "notifications/roots/list_changed", "notifications/cancelled",
            )  # fmt: skip
            assert cancelled["params"]["requestId"] == request["id"]
            assert not {"id"} & ({*changed} | {*cancelled})
            assert {each["jsonrpc"] for each in (changed, request, cancelled)} == {"2.0"}
            with suppress(asyncio.CancelledError):
                await call

    run(main)


def test_an_elicitation_without_a_mode_is_a_form() -> None:
    seen: list[Any] = []

    async def main() -> None:
        async with opened(elicit=seen.append) as (_, script):
            script.send(id=1, method="elicitation/create", params=FORM)
            assert (await script.receive())["result"] == {"action": "decline"}
            assert [type(params) for params in seen] == [structs.ElicitRequestFormParams]

    run(main)


def test_a_completed_elicitation_is_reported_and_has_no_effect() -> None:
    async def main() -> None:
        async with opened(elicit=decline) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            for _ in range(2):
                script.send(method="notifications/elicitation/complete", params={"elicitationId": "unknown"})
            assert await script.settled() == []
            script.send(id=request["id"], result=RESULT)
            assert text(await call) == "good"
            assert script.kinds() == ["legacy notification"] * 2

    run(main)


# Tasks, which the client does not run


def test_a_server_request_as_a_task_is_answered_like_any_other() -> None:
    async def main() -> None:
        async with opened(elicit=decline) as (_, script):
            script.send(id=1, method="elicitation/create", params={**FORM, "task": {"ttl": 1000}})
            assert (await script.receive())["result"] == {"action": "decline"}

    run(main)


@each("support", ["forbidden", "optional", "required"])
def test_a_call_without_the_extension_is_never_made_a_task(support: str) -> None:
    async def main() -> None:
        async with opened({"tasks": {"requests": {"tools": {"call": {}}}}}) as (client, script):
            listing = asyncio.create_task(client.list_tools())
            tool = {"name": "x", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
            script.send(id=(await script.receive())["id"], result={"tools": [tool]})
            assert [tool.name for tool in (await listing).tools] == ["x"]
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            assert "task" not in request["params"]
            script.send(id=request["id"], result=RESULT)
            assert text(await call) == "good"

    run(main)
