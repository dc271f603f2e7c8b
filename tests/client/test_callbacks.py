"""Input requests of servers: only what the client has declared reaches a callback, and only consent accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import COMPLETE, Script, played, text
from tests.server.scripted import MODERN_REVISION, Json, run
from typedmcp.client import Client, connect
from typedmcp.dialect import structs
from typedmcp.limits import Limits

HANDSHAKE = "2025-11-25"
FORM: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
URL: Json = {"mode": "url", "message": "?", "url": "https://example.com/a"}
PROMPT: Json = {"messages": [], "maxTokens": 9}
TOOLS: Json = {**PROMPT, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
CHOICE: Json = {**PROMPT, "toolChoice": {"mode": "auto"}}


def returning(value: Any) -> Callable[[Any], Any]:
    """Return a callback that returns this value."""
    return lambda _params: value


def never(_params: Any) -> Any:
    """Fail: the request must not reach a callback."""
    raise AssertionError


UNDECLARED: dict[str, tuple[str, Json, Json, int, str]] = {
    "tools": ("sampling/createMessage", TOOLS, {"sample": never}, -32602, "sampling.tools"),
    "a choice of tools": ("sampling/createMessage", CHOICE, {"sample": never}, -32602, "sampling.tools"),
    "a URL": ("elicitation/create", URL, {"elicit": never}, -32602, "elicitation.url"),
    "a form": ("elicitation/create", FORM, {"elicit_url": never}, -32602, "elicitation.form"),
    "a message": ("sampling/createMessage", PROMPT, {"elicit": never}, -32601, "sampling/createMessage"),
    "a question": ("elicitation/create", FORM, {"sample": never}, -32601, "elicitation/create"),
    "roots": ("roots/list", {}, {"elicit": never}, -32601, "roots/list"),
}
"""Requests, the client's callbacks, and the code and part of the text of the error."""


def request_of(method: str, params: Json) -> Json:
    """Return the request of a legacy server: its schema wants an id of a URL."""
    more = {"elicitationId": "1"} if params.get("mode") == "url" else {}
    return {"method": method, **({"params": {**params, **more}} if params else {})}


@each("name", UNDECLARED)
def test_a_legacy_server_gets_an_error_for_what_the_client_has_not_declared(name: str) -> None:
    method, params, callbacks, code, reason = UNDECLARED[name]

    async def main() -> None:
        async with played(HANDSHAKE, **callbacks) as (_, script):
            script.send(id="q", **request_of(method, params))
            answer = await script.receive()
            assert (answer["id"], answer["error"]["code"]) == ("q", code)
            assert reason in answer["error"]["message"]

    run(main)


async def call_with_input(client: Client, script: Script, *requests: Json) -> tuple[asyncio.Task[Any], Any]:
    """Call a tool that requests input. Return the call, and the responses that the client sends."""
    call = asyncio.create_task(client.call_tool("x"))
    named = {str(number): request for number, request in enumerate(requests)}
    script.send(id=(await script.receive())["id"], result={"resultType": "input_required", "inputRequests": named})
    receiving = asyncio.create_task(script.receive())
    await asyncio.wait([call, receiving], return_when=asyncio.FIRST_COMPLETED)
    if not receiving.done():
        receiving.cancel()
        return call, None
    script.send(id=receiving.result()["id"], result=COMPLETE)
    return call, receiving.result()["params"]["inputResponses"]


@each("name", UNDECLARED)
def test_a_call_fails_if_a_modern_server_requests_what_the_client_has_not_declared(name: str) -> None:
    method, params, callbacks, _, reason = UNDECLARED[name]

    async def main() -> None:
        async with played(**callbacks) as (client, script):
            call, answers = await call_with_input(
                client, script, {"method": method, **({"params": params} if params else {})}
            )
            assert answers is None
            with pytest.raises(typedmcp.ProtocolError, match=f"x: the server requested .*{reason}|{reason}"):
                await call

    run(main)


def test_tools_reach_the_callback_of_a_client_that_has_declared_them() -> None:
    received: list[Any] = []

    def sample(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
        received.append(params.tools)
        return structs.CreateMessageResult(role="assistant", model="m", content=structs.TextContent(text="a"))

    async def main() -> None:
        async with played(sample=sample, capabilities={"sampling": {"tools": {}}}) as (client, script):
            call, answers = await call_with_input(client, script, {"method": "sampling/createMessage", "params": TOOLS})
            assert text(await call) == "good"
            assert answers["0"]["content"]["text"] == "a"
            assert [tool.name for tool in received[0]] == ["t"]

    run(main)


MODES: dict[str, tuple[Json, Any]] = {
    "no callback": ({}, None),
    "forms": ({"elicit": never}, {"form": {}}),
    "URLs": ({"elicit_url": never}, {"url": {}}),
    "both": ({"elicit": never, "elicit_url": never}, {"form": {}, "url": {}}),
}


@each("revision", [MODERN_REVISION, HANDSHAKE, "2025-06-18"])
@each("name", MODES)
def test_each_callback_declares_its_own_mode(name: str, revision: str) -> None:
    callbacks, modes = MODES[name]
    expected: Any = modes
    if revision == "2025-06-18":  # it has forms only, and no modes
        expected = {} if "elicit" in callbacks else None

    async def main() -> None:
        near, far = typedmcp.memory_pair()
        client = connect(near, revisions=[revision], **callbacks)
        opening = asyncio.create_task(client.open())
        params = (await Script(far, []).receive())["params"]
        declared = params.get("capabilities", params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities"))
        assert declared.get("elicitation") == expected
        opening.cancel()
        await client.close()

    run(main)


CONSENT: dict[str, tuple[Any, str]] = {
    "true": (True, "accept"),
    "a result that accepts": (structs.ElicitResult(action="accept", content={"a": "b"}), "accept"),
    "false": (False, "decline"),
    "nothing": (None, "decline"),
    "a result that cancels": (structs.ElicitResult(action="cancel"), "cancel"),
}


@each("name", CONSENT)
def test_a_url_is_accepted_with_consent_only(name: str) -> None:
    given, action = CONSENT[name]

    async def main() -> None:
        async with played(elicit=never, elicit_url=returning(given)) as (client, script):
            call, answers = await call_with_input(client, script, {"method": "elicitation/create", "params": URL})
            assert answers == {"0": {"action": action}}
            await call

    run(main)


@each("given", [{}, {"a": 1}, "yes", 1, [True]], ids=repr)
def test_anything_else_is_no_consent(given: Any) -> None:
    async def main() -> None:
        async with played(elicit_url=returning(given)) as (client, script):
            call, answers = await call_with_input(client, script, {"method": "elicitation/create", "params": URL})
            assert answers is None
            with pytest.raises(typedmcp.UsageError, match="elicit_url returned"):
                await call

    run(main)


def test_an_error_that_requires_a_url_is_raised_if_the_client_has_not_declared_urls() -> None:
    error: Json = {"code": -32042, "message": "visit it", "data": {"elicitations": [{**URL, "elicitationId": "1"}]}}

    async def main() -> None:
        async with played(HANDSHAKE, elicit=never) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], error=error)
            with pytest.raises(typedmcp.RemoteError, match="visit it"):
                await call

    run(main)


@each("url", ["javascript:alert(1)", "JavaScript:alert(1)", "file:///etc/passwd", "steam://run/1"])
def test_only_urls_for_a_browser_reach_the_callback(url: str) -> None:
    error: Json = {"code": -32042, "message": "visit it", "data": {"elicitations": [{**URL, "url": url}]}}

    async def main() -> None:
        async with played(HANDSHAKE, elicit_url=never) as (client, script):
            script.send(id="q", **request_of("elicitation/create", {**URL, "url": url}))
            answer = await script.receive()
            assert answer["error"]["code"] == -32602
            assert "params.url: expected https or http" in answer["error"]["message"]
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], error=error)
            with pytest.raises(typedmcp.RemoteError, match="visit it"):
                await call
        async with played(elicit_url=never) as (client, script):
            request = {"method": "elicitation/create", "params": {**URL, "url": url}}
            with pytest.raises(typedmcp.ProtocolError, match="expected https or http"):
                await (await call_with_input(client, script, request))[0]

    run(main)


@each("number", [3, 4])
def test_an_error_that_requires_urls_asks_for_a_limited_number(number: int) -> None:
    error: Json = {"code": -32042, "message": "visit them", "data": {"elicitations": [URL] * number}}
    asked: list[str] = []

    def consent(params: structs.ElicitRequestURLParams) -> bool:
        asked.append(params.url)
        return True

    async def main() -> None:
        async with played(HANDSHAKE, elicit_url=consent, limits=Limits(input_requests=3)) as (client, script):
            call = asyncio.create_task(client.call_tool("x", timeout=5))
            script.send(id=(await script.receive())["id"], error=error)
            if number <= 3:
                script.send(id=(await script.receive())["id"], result=COMPLETE)
                await call
                assert len(asked) == number
            else:
                with pytest.raises(typedmcp.InputUnavailableError, match=r"4 URLs at once; the limit is 3"):
                    await call
                assert asked == []

    run(main)
