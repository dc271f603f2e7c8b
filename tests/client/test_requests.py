"""The requests of the client on a modern revision: metadata, ids, repeated requests, negotiation, deadlines."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import COMPLETE, INITIALIZED, Script, played, text
from tests.server.scripted import CAPABILITIES, INFO, MODERN_REVISION, VERSION, Json, run
from typedmcp import Client, connect
from typedmcp.dialect import structs


def recording_server() -> tuple[typedmcp.Server, list[Json]]:
    """Return a server with one item of each kind, and the list of the requests that its handlers get."""
    server, requests = typedmcp.Server("recorder"), list[Json]()

    @server.middleware
    async def record(ctx: typedmcp.Context, params: Any, call_next: Any) -> Any:
        requests.append(json.loads(ctx.raw))
        return await call_next(params)

    server.add_tool(lambda: "", name="tool")
    server.add_resource(lambda: "", "data://it")
    server.add_prompt(lambda: "", name="prompt")
    return server, requests


def sample(_params: Any) -> structs.CreateMessageResult:
    raise NotImplementedError


def decline(_params: Any) -> None:
    """Decline every elicitation."""


EVERY_REQUEST: dict[str, Callable[[Client], Any]] = {
    "tools/list": lambda client: client.list_tools(),
    "tools/call": lambda client: client.call_tool("tool"),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "resources/read": lambda client: client.read_resource("data://it"),
    "prompts/list": lambda client: client.list_prompts(),
    "prompts/get": lambda client: client.get_prompt("prompt"),
}


@each("method", EVERY_REQUEST)
@each("has_callbacks", [True, False])
def test_every_request_names_version_client_and_capabilities(method: str, has_callbacks: bool) -> None:
    callbacks: Any = {"sample": sample, "elicit": decline, "roots": ["file:///a"]} if has_callbacks else {}

    async def main() -> None:
        server, requests = recording_server()
        async with connect(server, name="mine", version="3", revisions=[MODERN_REVISION], **callbacks) as client:
            await EVERY_REQUEST[method](client)
            await EVERY_REQUEST[method](client)
        for request in requests:
            meta = request["params"]["_meta"]
            assert request["method"] == method
            assert meta[VERSION] == MODERN_REVISION
            assert meta[INFO] == {"name": "mine", "version": "3"}
            assert {*meta[CAPABILITIES]} == ({"sampling", "elicitation", "roots"} if has_callbacks else set())
        assert requests

    run(main)


def test_each_open_request_has_its_own_progress_token() -> None:
    async def main() -> None:
        async with played() as (client, script):
            calls = [asyncio.create_task(client.call_tool("x", on_progress=print)) for _ in range(9)]
            requests = [await script.receive() for _ in calls]
            tokens = [request["params"]["_meta"]["progressToken"] for request in requests]
            assert len({*tokens}) == len(calls)
            assert all(type(token) in (int, str) for token in tokens)
            for request in requests:
                script.send(id=request["id"], result=COMPLETE)
            await asyncio.gather(*calls)

    run(main)


def test_the_lines_of_the_client_are_requests_and_notifications() -> None:
    arguments = {"text": "one\ntwo\r\nthree\u2028four"}

    async def main() -> None:
        async with played(roots=["file:///a"]) as (client, script):
            script.send(id="q", method="roots/list")
            call = asyncio.create_task(client.call_tool("x", arguments))
            request = await script.receive()
            call.cancel()
            cancelled = await script.receive()
            assert request["params"]["arguments"] == arguments
            assert cancelled["params"]["requestId"] == request["id"]
            assert all(message["jsonrpc"] == "2.0" for message in (request, cancelled))
            assert ("id" in request, "id" in cancelled) == (True, False)
            assert await script.settled() == []  # the request of the server has no response

    run(main)


# Repeated requests

STATE = ' {"not": "ours"}\u2028=?base64?eA==?= '
ROOTS: Json = {"k": {"method": "roots/list"}}


def without_answers(params: Json) -> Json:
    """Return parameters without the members that a repeated request adds, and without its progress token."""
    meta = {key: value for key, value in params["_meta"].items() if key != "progressToken"}
    return {key: value for key, value in params.items() if key not in ("inputResponses", "requestState")} | {
        "_meta": meta
    }


def test_a_repeated_request_has_a_new_id_the_answers_and_the_state_as_it_came() -> None:
    async def main() -> None:
        async with played(roots=["file:///a"]) as (client, script):
            call = asyncio.create_task(client.call_tool("x", {"a": 1}))
            first = await script.receive()
            other = asyncio.create_task(client.call_tool("y"))
            parallel = await script.receive()
            script.send(
                id=first["id"],
                result={"resultType": "input_required", "requestState": STATE, "inputRequests": ROOTS},
            )
            again = await script.receive()
            assert len({first["id"], parallel["id"], again["id"]}) == 3
            assert again["params"]["requestState"] == STATE
            assert again["params"]["inputResponses"] == {"k": {"roots": [{"uri": "file:///a"}]}}
            assert without_answers(again["params"]) == without_answers(first["params"])
            assert not {"requestState", "inputResponses"} & {*first["params"], *parallel["params"]}
            for request in (parallel, again):
                script.send(id=request["id"], result=COMPLETE)
            assert (text(await call), text(await other)) == ("good", "good")
            later = asyncio.create_task(client.call_tool("x", {"a": 1}))
            request = await script.receive()
            assert not {"requestState", "inputResponses"} & {*request["params"]}
            script.send(id=request["id"], result=COMPLETE)
            await later

    run(main)


def test_a_request_is_repeated_without_a_state_where_none_came() -> None:
    async def main() -> None:
        async with played(roots=["file:///a"]) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            states: list[Any] = []
            for members in ({"requestState": STATE}, {"inputRequests": ROOTS}):
                request = await script.receive()
                states.append(request["params"].get("requestState"))
                script.send(id=request["id"], result={"resultType": "input_required", **members})
            request = await script.receive()
            assert [*states, request["params"].get("requestState")] == [None, STATE, None]
            script.send(id=request["id"], result=COMPLETE)
            assert text(await call) == "good"

    run(main)


def test_an_elicitation_without_a_mode_is_a_form() -> None:
    form: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    seen: list[Any] = []

    async def main() -> None:
        async with played(elicit=seen.append) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            asked = {"k": {"method": "elicitation/create", "params": form}}
            script.send(
                id=(await script.receive())["id"], result={"resultType": "input_required", "inputRequests": asked}
            )
            again = await script.receive()
            assert again["params"]["inputResponses"]["k"]["action"] == "decline"
            assert [type(params) for params in seen] == [structs.ElicitRequestFormParams]
            script.send(id=again["id"], result=COMPLETE)
            await call

    run(main)


# Negotiation over one stream


@each("code", [-32601, -32602, -32600, -32603, -32000, 1, None])
def test_any_other_error_and_silence_lead_to_the_handshake(code: int | None) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        client = connect(near, probe=0.05 if code is None else 10)
        opening = asyncio.create_task(client.open())
        discovery = await script.receive()
        assert (discovery["method"], discovery["params"]["_meta"][VERSION]) == ("server/discover", MODERN_REVISION)
        if code is not None:
            script.send(id=discovery["id"], error={"code": code, "message": "no"})
        handshake = await script.receive()
        assert handshake["method"] == "initialize"
        script.send(id=handshake["id"], result=INITIALIZED)
        await opening
        assert client.revision == "2025-06-18"
        await client.close()

    run(main)


@each("code", [-32020, -32021])
def test_an_error_of_a_modern_server_does_not_lead_to_the_handshake(code: int) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        opening = asyncio.create_task(connect(near).open())
        script.send(id=(await script.receive())["id"], error={"code": code, "message": "no"})
        with pytest.raises(typedmcp.RemoteError) as caught:
            await opening
        assert caught.value.code == code
        assert await far.read() == b""  # nothing else was sent

    run(main)


def test_a_client_of_modern_revisions_alone_fails_with_a_legacy_server_before_any_call() -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        opening = asyncio.create_task(connect(near, revisions=[MODERN_REVISION]).open())
        discovery = await script.receive()
        assert discovery["method"] == "server/discover"
        script.send(id=discovery["id"], error={"code": -32601, "message": "Method not found"})
        with pytest.raises(typedmcp.UnsupportedVersionError):
            await opening
        assert await far.read() == b""  # nothing else was sent

    run(main)


# Time


def test_a_call_has_a_deadline_by_default() -> None:
    connection = connect(recording_server()[0])._connection  # pyright: ignore[reportPrivateUsage]
    assert connection.timeout is not None
    assert connection.max_time is not None
    assert 0 < connection.timeout < connection.max_time < math.inf


def test_a_result_whose_time_has_passed_is_not_fetched_until_it_is_needed() -> None:
    page: Json = {"resultType": "complete", "tools": [], "ttlMs": 1, "cacheScope": "private"}

    async def main() -> None:
        async with played() as (client, script):
            listing = asyncio.create_task(client.list_tools())
            script.send(id=(await script.receive())["id"], result=page)
            await listing
            assert await script.settled() == []

    run(main)
