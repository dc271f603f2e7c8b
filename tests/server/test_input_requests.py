"""Input requests: which answers count, which questions may be asked, and how long a client may take."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, cast

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import EVERYTHING, LEGACY, MODERN_REVISION, Client, Json, run, served
from typedmcp import DiagnosticKind
from typedmcp.dialect import structs

Context: TypeAlias = typedmcp.Context

FORM: Json = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
YES: Json = {"action": "accept", "content": {"ok": True}}
NO: Json = {"action": "accept", "content": {"ok": False}}
HAS_FORMS = [revision for revision in LEGACY if revision >= "2025-06-18"]
either_era = each("revision", [MODERN_REVISION, "2025-11-25"])


def text(value: object) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=str(value))])


def form_of(message: str, schema: Json = FORM) -> structs.ElicitRequest:
    return structs.ElicitRequest(params=structs.ElicitRequestFormParams(message=message, requested_schema=schema))


class Asks:
    """A handler with one tool, which a test defines."""

    def __init__(self, tool: Callable[[Any, Context], Any]) -> None:
        self.tool = tool

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        made = await self.tool(params, ctx)
        return made if isinstance(made, structs.InputRequiredResult) else text(made)


async def opened(client: Client, revision: str = MODERN_REVISION, **capabilities: Any) -> None:
    await client.open(revision, **(capabilities or EVERYTHING))


async def attempt(client: Client, state: Json | None = None, **answers: Any) -> Json:
    """Call the tool, with the state of an earlier result and with answers."""
    params: Json = {"name": "tool", "arguments": {}}
    if state is not None:
        params["requestState"] = state["requestState"]
    if answers:
        params["inputResponses"] = answers
    return await client.result("tools/call", params)


def asked(result: Json) -> Json:
    """Return the messages of the requested forms, by key."""
    return {key: request["params"]["message"] for key, request in result["inputRequests"].items()}


def said(result: Json) -> str:
    found: str = result["content"][0]["text"]
    return found


# Which answers count


def test_an_answer_counts_for_the_question_that_it_was_given_to_alone() -> None:
    price = 1

    async def pay(_params: Any, ctx: Context) -> Any:
        answer = await ctx.elicit(f"Pay {price} EUR?", FORM, key="pay")
        return f"{price} EUR paid: {answer.content}"

    async def main() -> None:
        nonlocal price
        async with served(Asks(pay)) as client:
            await opened(client)
            first = await attempt(client)
            assert asked(first) == {"pay": "Pay 1 EUR?"}
            price = 1000
            second = await attempt(client, first, pay=YES)
            assert asked(second) == {"pay": "Pay 1000 EUR?"}
            (report,) = client.of_kind(DiagnosticKind.INVALID_DATA)
            assert "asks something else now" in report.text
            assert said(await attempt(client, second, pay=YES)) == "1000 EUR paid: {'ok': True}"

    run(main)


@either_era
def test_a_request_for_roots_has_parameters_for_clients_that_need_them(revision: str) -> None:
    async def folders(_params: Any, ctx: Context) -> Any:
        return [root.uri for root in await ctx.list_roots(key="folders")]

    async def main() -> None:
        answer = {"roots": [{"uri": "file:///a"}]}
        async with served(Asks(folders)) as client:
            await opened(client, revision)
            if revision == MODERN_REVISION:
                first = await attempt(client)
                assert first["inputRequests"] == {"folders": {"method": "roots/list", "params": {}}}
                result = await attempt(client, first, folders=answer)
            else:
                id = client.start("tools/call", {"name": "tool", "arguments": {}})
                request = await client.receive()
                assert (request["method"], request["params"]) == ("roots/list", {})
                client.send({"id": request["id"], "result": answer})
                result = (await client.answer_to(id))["result"]
            assert said(result) == "['file:///a']"

    run(main)


CHANGES: dict[str, Callable[[int], Any]] = {
    "the message of a form": lambda number: form_of(f"Pay {number}?"),
    "the schema of a form": lambda number: form_of("?", {**FORM, "title": f"{number}"}),
    "a URL": lambda number: structs.ElicitRequest(
        params=structs.ElicitRequestURLParams(message="?", url=f"https://example.com/{number}")
    ),
    "the method": lambda number: form_of("?") if number == 1 else structs.ListRootsRequest(),
    "a prompt": lambda number: structs.CreateMessageRequest(
        params=structs.CreateMessageRequestParams(
            messages=[structs.SamplingMessage(role="user", content=structs.TextContent(text=str(number)))], max_tokens=9
        )
    ),
}  # fmt: skip


@each("change", CHANGES)
def test_every_part_of_a_question_belongs_to_it(change: str) -> None:
    numbers = itertools.count(1)
    results: dict[str, Json] = {
        "elicitation/create": YES,
        "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
    }

    async def ask(_params: Any, ctx: Context) -> Any:
        return await ctx.ask({"it": CHANGES[change](next(numbers))})

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, elicitation={"form": {}, "url": {}}, sampling={}, roots={})
            first = await attempt(client)
            second = await attempt(client, first, it=results[first["inputRequests"]["it"]["method"]])
            assert second["resultType"] == "input_required"

    run(main)


def test_trace_context_does_not_belong_to_a_question() -> None:
    numbers = itertools.count(1)

    async def ask(_params: Any, ctx: Context) -> Any:
        params = structs.ListRootsRequestParams(meta={"traceparent": str(next(numbers))})
        answers = await ctx.ask({"roots": structs.ListRootsRequest(params=params)})
        return answers["roots"].roots[0].uri

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client)
            first = await attempt(client)
            assert said(await attempt(client, first, roots={"roots": [{"uri": "file:///a"}]})) == "file:///a"

    run(main)


def test_a_question_that_always_changes_ends_with_an_error_that_says_so() -> None:
    numbers = itertools.count(1)

    async def ask(_params: Any, ctx: Context) -> Any:
        return await ctx.elicit(f"It is {next(numbers)} o'clock. Go on?", FORM, key="go")

    async def main() -> None:
        async with served(Asks(ask), limits=typedmcp.Limits(input_rounds=3)) as client:
            await opened(client)
            result = await attempt(client)
            for _ in range(2):
                result = await attempt(client, result, go=YES)
            params = {
                "name": "tool",
                "arguments": {},
                "requestState": result["requestState"],
                "inputResponses": {"go": YES},
            }
            error = await client.error("tools/call", params)
            assert error["message"] == (
                "no result after 3 rounds of input requests; "
                'the question "go" changed from attempt to attempt, so no answer to it counted'
            )

    run(main)  # fmt: skip


async def two(_params: Any, ctx: Context) -> Any:
    first = await ctx.elicit("First?", FORM, key="first")
    second = await ctx.elicit("Second?", FORM, key="second")
    return f"{first.content} {second.content}"


def test_answers_without_a_state_are_answers_to_no_question() -> None:
    async def main() -> None:
        async with served(Asks(two)) as client:
            await opened(client)
            assert asked(await attempt(client, first=YES, second=YES)) == {"first": "First?"}
            (report,) = client.of_kind(DiagnosticKind.UNEXPECTED_RESPONSE)
            assert report.text == (
                'inputResponses: the answer to "first" is ignored, and 1 more: '
                "without requestState, no question was asked"
            )
            assert report.params == ["first", "second"]

    run(main)  # fmt: skip


def test_an_answer_to_a_question_that_was_not_asked_yet_does_not_count() -> None:
    async def main() -> None:
        async with served(Asks(two)) as client:
            await opened(client)
            first = await attempt(client)
            assert asked(await attempt(client, first, first=YES, second=YES)) == {"second": "Second?"}
            (report,) = client.of_kind(DiagnosticKind.UNEXPECTED_RESPONSE)
            assert "not asked in the last attempt" in report.text

    run(main)


@each("unknown", [{"odd": 1}, {}, 5, None, "text", [YES]], ids=str)
def test_an_answer_that_the_protocol_does_not_have_is_ignored(unknown: Any) -> None:
    async def main() -> None:
        async with served(Asks(two), strict=True) as client:
            await opened(client)
            first = await attempt(client)
            second = await attempt(client, first, first=YES, other=unknown)
            assert asked(second) == {"second": "Second?"}
            assert asked(await attempt(client, second, second=unknown)) == {"second": "Second?"}
            texts = [report.text for report in client.of_kind(DiagnosticKind.UNEXPECTED_RESPONSE)]
            ignored = "inputResponses: ignored, since the protocol has no such answers: "
            assert texts == [f'{ignored}"other"', f'{ignored}"second"']
            assert said(await attempt(client, second, second=YES)) == "{'ok': True} {'ok': True}"

    run(main)


def test_a_parameter_that_is_wrong_is_an_error_beside_answers_that_are_ignored() -> None:
    async def main() -> None:
        async with served(Asks(two)) as client:
            await opened(client)
            params: Json = {"name": 5, "arguments": {}, "inputResponses": {"other": 5}}
            error = await client.error("tools/call", params)
            assert (error["code"], error["message"]) == (-32602, "params.name: expected string, got 5")

    run(main)


def test_an_answer_of_an_earlier_attempt_cannot_be_replaced() -> None:
    async def main() -> None:
        async with served(Asks(two)) as client:
            await opened(client)
            second = await attempt(client, await attempt(client), first=NO)
            done = await attempt(client, second, first=YES, second=YES)
            assert said(done) == "{'ok': False} {'ok': True}"
            (report,) = client.of_kind(DiagnosticKind.UNEXPECTED_RESPONSE)
            assert "answered already" in report.text

    run(main)


def test_a_handler_that_returns_its_questions_gets_the_answers_to_those_alone() -> None:
    seen: list[Any] = []

    async def by_hand(params: Any, _ctx: Context) -> Any:
        seen.append((params.input_responses, params.request_state))
        if not params.input_responses:
            return structs.InputRequiredResult(input_requests={"ok": form_of("?")}, request_state="mine")
        return "done"

    async def main() -> None:
        async with served(Asks(by_hand)) as client:
            await opened(client)
            first = await attempt(client, ok=YES)
            again = await attempt(client, first, other=YES)
            wrong_kind = await attempt(client, again, ok={"roots": []})
            wrong_value = await attempt(client, wrong_kind, ok={"action": "accept", "content": {"ok": "yes"}})
            assert said(await attempt(client, wrong_value, ok=YES, other=YES)) == "done"
            assert seen == [
                (None, None), *[(None, "mine")] * 3, ({"ok": structs.ElicitResult(**YES)}, "mine"),
            ]  # fmt: skip

    run(main)


# States that are used again


def test_a_state_can_be_used_again_unless_it_is_for_single_use() -> None:
    async def main() -> None:
        async with served(Asks(two)) as client:
            await opened(client)
            second = await attempt(client, await attempt(client), first=YES)
            for _ in range(2):
                assert said(await attempt(client, second, second=YES)) == "{'ok': True} {'ok': True}"

    run(main)


def test_a_state_for_single_use_is_rejected_the_second_time() -> None:
    async def main() -> None:
        async with served(Asks(two), state_signer=typedmcp.StateSigner(single_use=True)) as client:
            await opened(client)
            first = await attempt(client)
            second = await attempt(client, first, first=YES)
            assert said(await attempt(client, second, second=YES)) == "{'ok': True} {'ok': True}"
            for state in (first, second):
                params: Json = {"name": "tool", "arguments": {}, "requestState": state["requestState"]}
                error = await client.error("tools/call", params)
                assert error["code"] == -32602
                assert error["message"] == "requestState: it was used already; call again without it"

    run(main)


# Answers that do not fit the form

PERSON: Json = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
}
UNFIT: list[tuple[Json, str]] = [
    ({"name": "Ada", "age": "bad"}, 'age: expected integer, got "bad"'),
    ({"age": 3}, "name: required, but missing"),
    ({"name": "Ada", "age": -1}, "age: expected at least 0"),
]


async def who(_params: Any, ctx: Context) -> Any:
    answer = await ctx.elicit("Who?", PERSON, key="who")
    return answer.content


@each("content, fault", UNFIT)
def test_an_answer_that_does_not_fit_its_form_is_requested_again(content: Json, fault: str) -> None:
    async def main() -> None:
        async with served(Asks(who)) as client:
            await opened(client)
            second = await attempt(client, await attempt(client), who={"action": "accept", "content": content})
            assert asked(second) == {"who": "Who?"}
            (report,) = client.of_kind(DiagnosticKind.INVALID_DATA)
            assert fault in report.text
            done = await attempt(client, second, who={"action": "accept", "content": {"name": "Ada"}})
            assert said(done) == "{'name': 'Ada'}"

    run(main)


@each("revision", HAS_FORMS)
@each("content, fault", UNFIT)
def test_an_answer_that_does_not_fit_its_form_is_an_error_on_older_revisions(
    content: Json, fault: str, revision: str
) -> None:
    async def main() -> None:
        async with served(Asks(who)) as client:
            await opened(client, revision)
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            question = await client.receive()
            client.send({"id": question["id"], "result": {"action": "accept", "content": content}})
            error = (await client.answer_to(id))["error"]
            assert (error["code"], error["message"]) == (-32602, f"the answer does not fit the form: {fault}")

    run(main)


def test_an_answer_has_to_fit_the_form_that_was_sent() -> None:
    """2025-06-18 has no fields for several choices: they are left out of the form."""
    schema: Json = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        },
        "required": ["name", "tags"],
    }

    async def ask(_params: Any, ctx: Context) -> Any:
        return (await ctx.elicit("Who?", schema)).content

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, "2025-06-18")
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            question = await client.receive()
            assert question["params"]["requestedSchema"]["required"] == ["name"]
            client.send({"id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}})
            assert said((await client.answer_to(id))["result"]) == "{'name': 'Ada'}"

    run(main)  # fmt: skip


# Questions that are not asked


class Bag(TypedDict):
    tags: list[Literal["a", "b"]]
    size: NotRequired[int]


@each("revision", HAS_FORMS)
@each("kind, field", [(Bag, "tags"), (list[Literal["a"]], "value")])
def test_a_form_that_the_revision_cannot_show_is_not_sent(kind: Any, field: str, revision: str) -> None:
    raised: list[str] = []

    async def ask(_params: Any, ctx: Context) -> Any:
        try:
            return cast("typedmcp.Elicited[Any]", await ctx.elicit("What?", kind)).data
        except typedmcp.InputUnavailableError as error:
            raised.append(str(error))
            return "not asked"

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, revision)
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            if revision == "2025-06-18":
                assert said((await client.answer_to(id))["result"]) == "not asked"
                assert raised == [f"elicit: {field}: the forms of 2025-06-18 have no field for several choices"]
                return
            question = await client.receive()
            client.send({"id": question["id"], "result": {"action": "accept", "content": {field: ["a"]}}})
            assert said((await client.answer_to(id))["result"]) == ("['a']" if field == "value" else "{'tags': ['a']}")

    run(main)


def test_a_field_for_several_choices_that_may_be_left_out_is_left_out_on_2025_06_18() -> None:
    class Optional(TypedDict):
        size: int
        tags: NotRequired[list[Literal["a", "b"]]]

    async def ask(_params: Any, ctx: Context) -> Any:
        return (await ctx.elicit("What?", Optional)).data

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, "2025-06-18")
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            question = await client.receive()
            assert [*question["params"]["requestedSchema"]["properties"]] == ["size"]
            client.send({"id": question["id"], "result": {"action": "accept", "content": {"size": 1}}})
            assert said((await client.answer_to(id))["result"]) == "{'size': 1}"

    run(main)


def message(role: Any, *content: Any) -> structs.SamplingMessage:
    return structs.SamplingMessage(role=role, content=[*content])


WORDS = structs.TextContent(text="x")
CALL_A, CALL_B = (structs.ToolUseContent(id=id, name="t", input={}) for id in "ab")
RESULT_A, RESULT_B = (structs.ToolResultContent(tool_use_id=id, content=[]) for id in "ab")
WRONG_MESSAGES: dict[str, tuple[list[structs.SamplingMessage], str]] = {
    "results with other content": (
        [message("assistant", CALL_A), message("user", RESULT_A, WORDS)],
        "params.messages[1]: results of tools must be the whole content of a message of the user",
    ),
    "results of the assistant": (
        [message("assistant", CALL_A), message("assistant", RESULT_A)],
        "params.messages[1]: results of tools must be the whole content of a message of the user",
    ),
    "a missing result": (
        [message("assistant", CALL_A, CALL_B), message("user", RESULT_B)],
        'params.messages[1]: no result for the tool call "a" in the message before',
    ),
    "a message in between": (
        [message("assistant", CALL_A), message("user", WORDS), message("user", RESULT_A)],
        'params.messages[1]: no result for the tool call "a" in the message before',
    ),
    "calls at the end": (
        [message("user", WORDS), message("assistant", WORDS, CALL_A)],
        'params.messages: no result for the tool call "a" in the last message',
    ),
    "a result without a call": (
        [message("user", RESULT_A)],
        'params.messages[0]: a result for "a", which the message before does not call',
    ),
    "a second result": (
        [message("assistant", CALL_A), message("user", RESULT_A, RESULT_A)],
        'params.messages[1]: a result for "a", which the message before does not call',
    ),
}
RIGHT_MESSAGES = [
    message("user", WORDS), message("assistant", WORDS, CALL_A, CALL_B), message("user", RESULT_B, RESULT_A),
    message("assistant", CALL_A), message("user", RESULT_A), message("assistant", WORDS),
]  # fmt: skip


def sampling(messages: list[structs.SamplingMessage], **more: Any) -> structs.CreateMessageRequest:
    params = structs.CreateMessageRequestParams(messages=messages, max_tokens=9, **more)
    return structs.CreateMessageRequest(params=params)


def url(address: str) -> structs.ElicitRequest:
    return structs.ElicitRequest(params=structs.ElicitRequestURLParams(message="?", url=address))


NOT_URLS = [
    "not a url", "/path", "example.com", "https://", "https:///path", "https://a b", "https://a:x/", "", "https://a\n",
]  # fmt: skip
FORBIDDEN: list[Any] = [
    *[pytest.param(sampling(messages), fault, id=name) for name, (messages, fault) in WRONG_MESSAGES.items()],
    *[pytest.param(url(each), "params.url: expected an absolute URL", id=repr(each)) for each in NOT_URLS],
]


@either_era
@each("by_hand", [False, True])
@each("request_, fault", FORBIDDEN)
def test_a_question_that_the_specification_forbids_is_not_sent(
    request_: Any, fault: str, by_hand: bool, revision: str
) -> None:
    async def ask(_params: Any, ctx: Context) -> Any:
        if by_hand:
            return structs.InputRequiredResult(input_requests={"it": request_})
        return await ctx.ask({"it": request_})

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, revision, elicitation={"url": {}}, sampling={"tools": {}})
            error = await client.error("tools/call", {"name": "tool", "arguments": {}})
            assert error["code"] == -32603
            assert client.unread() == []
            (report,) = client.of_kind(DiagnosticKind.INTERNAL_ERROR)
            assert 'the input request "it" is wrong: ' + fault in str(report.error)

    run(main)


@either_era
@each("request_", [sampling(RIGHT_MESSAGES), *map(url, ["https://a", "https://[::1]:1/a?b=c#d", "app:open/1"])])
def test_a_question_that_the_specification_allows_is_sent(request_: Any, revision: str) -> None:
    async def ask(_params: Any, ctx: Context) -> Any:
        return await ctx.ask({"it": request_})

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, revision, elicitation={"url": {}}, sampling={"tools": {}})
            client.start("tools/call", {"name": "tool", "arguments": {}})
            received = await client.receive()
            assert client.reports == []
            assert received.get("method", request_.method) == request_.method
            assert "error" not in received

    run(main)


@either_era
@each("by_hand", [False, True])
def test_questions_in_a_round_are_limited(by_hand: bool, revision: str) -> None:
    async def ask(_params: Any, ctx: Context) -> Any:
        requests: Any = {str(number): structs.ListRootsRequest() for number in range(4)}
        return structs.InputRequiredResult(input_requests=requests) if by_hand else await ctx.ask(requests)

    async def main() -> None:
        async with served(Asks(ask), limits=typedmcp.Limits(input_requests=3)) as client:
            await opened(client, revision)
            assert (await client.error("tools/call", {"name": "tool", "arguments": {}}))["code"] == -32603
            (report,) = client.of_kind(DiagnosticKind.INTERNAL_ERROR)
            assert "4 input requests in one round; the limit is 3 (input_requests)" in str(report.error)

    run(main)


@each(
    "revision, declared, is_sent",
    [
        (MODERN_REVISION, {}, False),
        (MODERN_REVISION, {"context": {}}, True),
        ("2025-11-25", {}, False),
        ("2025-11-25", {"context": {}}, True),
        ("2025-06-18", {}, True),  # where there is nothing to declare
    ],
)
def test_include_context_needs_its_capability(revision: str, declared: Json, is_sent: bool) -> None:
    async def ask(_params: Any, ctx: Context) -> Any:
        return await ctx.ask({"it": sampling([message("user", WORDS)], include_context="thisServer")})

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, revision, sampling=declared)
            client.start("tools/call", {"name": "tool", "arguments": {}})
            received = await client.receive()
            request = received["result"]["inputRequests"]["it"] if client.is_modern else received
            assert request["params"].get("includeContext", "none") == ("thisServer" if is_sent else "none")
            reports = [report.text for report in client.of_kind(DiagnosticKind.DROPPED)]
            wanted = ["params.includeContext: the client has not declared sampling.context"]
            assert reports == ([] if is_sent else wanted)

    run(main)


# Clients that do not answer


def test_a_legacy_client_that_does_not_answer_in_time_is_not_waited_for() -> None:
    errors: list[BaseException] = []

    async def ask(_params: Any, ctx: Context) -> Any:
        try:
            return await ctx.list_roots()
        except typedmcp.RequestTimeoutError as error:
            errors.append(error)
            return "no answer"

    async def main() -> None:
        async with served(Asks(ask), input_timeout=0.01) as client:
            await opened(client, "2025-11-25")
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            question, cancelled = await client.receive(), await client.receive()
            assert cancelled["method"] == "notifications/cancelled"
            assert cancelled["params"]["requestId"] == question["id"]
            assert said((await client.answer_to(id))["result"]) == "no answer"
            assert "no answer within 0.01 s" in str(errors[0])
            client.send({"id": question["id"], "result": {"roots": []}})
            await client.settled()
            assert len(client.of_kind(DiagnosticKind.LATE_MESSAGE)) == 1

    run(main)


@each("by_hand", [False, True])
def test_a_call_that_was_cancelled_cannot_ask(by_hand: bool) -> None:
    errors: list[BaseException] = []

    async def ask(_params: Any, ctx: Context) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if by_hand:
                return structs.InputRequiredResult(
                    result_type="input_required", input_requests={"a": form_of("keep the draft?")}
                )
            try:
                await ctx.list_roots()
            except typedmcp.InputUnavailableError as error:
                errors.append(error)
            raise

    async def main() -> None:
        async with served(Asks(ask)) as client:
            await opened(client, "2025-11-25")
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            await client.settled()
            client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
            await client.settled()
            assert client.unread() == []
            assert len(errors) == (not by_hand)

    run(main)


def test_a_handler_can_wait_for_a_shorter_time() -> None:
    async def ask(_params: Any, ctx: Context) -> Any:
        try:
            async with asyncio.timeout(0.01):
                return await ctx.list_roots()
        except TimeoutError:
            return "no answer"

    async def main() -> None:
        async with served(Asks(ask), input_timeout=None) as client:
            await opened(client, "2025-11-25")
            id = client.start("tools/call", {"name": "tool", "arguments": {}})
            question, cancelled = await client.receive(), await client.receive()
            assert cancelled["params"]["requestId"] == question["id"]
            assert said((await client.answer_to(id))["result"]) == "no answer"

    run(main)
