"""Input requests of servers: wrong ones are rejected, and wrong answers of callbacks are not sent."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import COMPLETE, Script, played, text
from tests.server.scripted import Json, run
from typedmcp.dialect import structs
from typedmcp.limits import Limits

FORM: Json = {
    "message": "Who?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    },
}
TOOL_CALL: Json = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
TOOL_RESULT: Json = {"type": "tool_result", "toolUseId": "a", "content": []}
WORDS: Json = {"type": "text", "text": "x"}


def sampling(*messages: tuple[str, list[Json]]) -> Json:
    return {"maxTokens": 9, "messages": [{"role": role, "content": content} for role, content in messages]}


WRONG: dict[str, tuple[str, Json, str]] = {
    "results with other content": (
        "sampling/createMessage",
        sampling(("assistant", [TOOL_CALL]), ("user", [TOOL_RESULT, WORDS])),
        "params.messages[1]: results of tools must be the whole content",
    ),
    "a missing result": (
        "sampling/createMessage",
        sampling(("assistant", [TOOL_CALL]), ("user", [WORDS])),
        'params.messages[1]: no result for the tool call "a"',
    ),
    "no URL": (
        "elicitation/create",
        {"mode": "url", "message": "?", "url": "not a url"},
        'params.url: expected an absolute URL, got "not a url"',
    ),
}


def unexpected(_params: Any) -> Any:
    raise AssertionError("the callback is called")


def input_required(**requests: Json) -> Json:
    return {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}


@each("wrong", WRONG)
def test_a_wrong_input_request_fails_the_call(wrong: str) -> None:
    method, params, fault = WRONG[wrong]

    async def main() -> None:
        options: Any = {"sample": unexpected, "elicit": unexpected, "elicit_url": unexpected}
        async with played(**options, capabilities={"sampling": {"tools": {}}}) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(
                id=(await script.receive())["id"], result=input_required(it={"method": method, "params": params})
            )
            with pytest.raises(typedmcp.ProtocolError) as caught:
                await call
            assert f"the server's {method} is wrong: {fault}" in str(caught.value)
            assert await script.settled() == []

    run(main)


@each("wrong", WRONG)
def test_a_wrong_request_of_a_legacy_server_gets_an_error(wrong: str) -> None:
    method, params, fault = WRONG[wrong]
    if method == "elicitation/create":
        params = {**params, "elicitationId": "1"}

    async def main() -> None:
        options: Any = {
            "sample": unexpected,
            "elicit": unexpected,
            "elicit_url": unexpected,
            "capabilities": {"sampling": {"tools": {}}},
        }
        async with played("2025-11-25", **options) as (_, script):
            script.send(id=1, method=method, params=params)
            error = (await script.receive())["error"]
            assert error["code"] == -32602
            assert fault in error["message"]

    run(main)


def test_a_call_with_nothing_but_a_state_is_repeated_ever_more_slowly() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            times: list[float] = []
            for _ in range(4):
                request = await script.receive()
                times.append(loop.time())
                script.send(id=request["id"], result={"resultType": "input_required", "requestState": "s"})
            script.send(id=(await script.receive())["id"], result=COMPLETE)
            assert text(await call) == "good"
            pauses = [after - before for before, after in itertools.pairwise(times)]
            assert all(pause >= least for pause, least in zip(pauses, (0.09, 0.19, 0.39), strict=True))

    run(main)


def test_a_pause_between_rounds_ends_with_the_time_of_the_call() -> None:
    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x", max_time=0.15))
            for _ in range(2):
                request = await script.receive()
                script.send(id=request["id"], result={"resultType": "input_required", "requestState": "s"})
            with pytest.raises(typedmcp.RequestTimeoutError):
                await call

    run(main)


def test_input_requests_in_a_round_are_limited() -> None:
    async def main() -> None:
        async with played(roots=[], limits=Limits(input_requests=2)) as (client, script):
            for count in (2, 3):
                call = asyncio.create_task(client.call_tool("x"))
                requests = {str(number): {"method": "roots/list"} for number in range(count)}
                script.send(id=(await script.receive())["id"], result=input_required(**requests))
                if count == 2:
                    script.send(id=(await script.receive())["id"], result=COMPLETE)
                    assert text(await call) == "good"
            with pytest.raises(typedmcp.InputUnavailableError, match=r"requested 3 inputs at once; the limit is 2"):
                await call

    run(main)


UNFIT: list[Any] = [
    {"age": 1},
    {"name": "Ada", "age": "bad"},
    structs.ElicitResult(action="accept", content={"name": 1}),
]
FITTING: list[Any] = [{"name": "Ada"}, structs.ElicitResult(action="accept", content={"name": "Ada"}), None]


def always(answer: Any) -> Any:
    """Return a callback that gives this answer."""

    def elicit(_params: Any) -> Any:
        return answer

    return elicit


async def _call_with(script: Script, client: typedmcp.Client) -> Any:
    call = asyncio.create_task(client.call_tool("x"))
    request = {"method": "elicitation/create", "params": FORM}
    script.send(id=(await script.receive())["id"], result=input_required(it=request))
    return call


@each("answer", UNFIT, ids=str)
def test_an_answer_that_does_not_fit_the_form_is_an_error_before_it_is_sent(answer: Any) -> None:
    async def main() -> None:
        async with played(elicit=always(answer)) as (client, script):
            call = await _call_with(script, client)
            with pytest.raises(
                typedmcp.UsageError, match=r"elicit returned an answer that does not fit the form: (name|age): "
            ):
                await call
            assert await script.settled() == []

    run(main)  # fmt: skip


@each("answer", FITTING, ids=str)
def test_an_answer_that_fits_the_form_is_sent(answer: Any) -> None:
    async def main() -> None:
        async with played(elicit=always(answer)) as (client, script):
            call = await _call_with(script, client)
            sent = await script.receive()
            assert sent["params"]["inputResponses"]["it"]["action"] == ("decline" if answer is None else "accept")
            script.send(id=sent["id"], result=COMPLETE)
            assert text(await call) == "good"

    run(main)


@each("answer", UNFIT, ids=str)
def test_a_legacy_server_gets_an_error_in_place_of_an_answer_that_does_not_fit(answer: Any) -> None:
    async def main() -> None:
        async with played("2025-06-18", elicit=always(answer)) as (_, script):
            script.send(id=1, method="elicitation/create", params=FORM)
            error = (await script.receive())["error"]
            assert error["code"] == -32603
            assert "does not fit the form" in error["message"]

    run(main)
