"""One handler on all revisions: the differences between them, feature by feature."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import typedmcp
from tests.cases import each
from tests.server.scripted import (
    CAPABILITIES,
    EVERYTHING,
    LEGACY,
    MODERN_REVISION,
    SUPPORTED,
    VERSION,
    Client,
    Json,
    run,
    served,
)
from typedmcp.dialect import handlers, structs
from typedmcp.revisions import features

Context: TypeAlias = typedmcp.Context
Result: TypeAlias = structs.CallToolResult | structs.InputRequiredResult
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

each_revision = each("revision", SUPPORTED)
each_legacy = each("revision", LEGACY)


def text(value: str) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=value)], result_type="complete")


class Everything(handlers.ServerStub[Context]):
    """A handler with one method for each tool."""

    def __init__(self) -> None:
        self.entered = 0
        self.seen: list[Context] = []
        self.waiting = asyncio.Event()
        self.cancelled_handlers = 0

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Result:
        self.entered += 1
        self.seen.append(ctx)
        act: Callable[[Any, Context], Coroutine[Any, Any, Result]] = getattr(self, f"do_{params.name}")
        return await act(params, ctx)

    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> structs.ListToolsResult:
        tool = structs.Tool(
            name="rich",
            title="Rich",
            input_schema=structs.from_builtins(
                {"type": "object", "properties": {"any": True, "s": {"type": "string"}}}, structs.ToolInputSchema
            ),
            output_schema=structs.from_builtins({"type": "object"}, structs.ToolOutputSchema),
            icons=[structs.Icon(src="https://a.org/i.png", sizes=["48x48"])],
            annotations=structs.ToolAnnotations(read_only_hint=True),
        )
        return structs.ListToolsResult(tools=[tool], ttl_ms=1, cache_scope="private", result_type="complete")

    async def read_resource(
        self, params: structs.ReadResourceRequestParams, ctx: Context
    ) -> structs.ReadResourceResult | structs.InputRequiredResult:
        raise typedmcp.ResourceNotFoundError(params.uri)

    async def complete(self, params: structs.CompleteRequestParams, ctx: Context) -> structs.CompleteResult:
        assert isinstance(params.ref, structs.PromptReference | structs.ResourceTemplateReference)
        value = params.ref.uri if isinstance(params.ref, structs.ResourceTemplateReference) else params.ref.name
        completion = structs.CompleteResultCompletion(values=[value])
        return structs.CompleteResult(completion=completion, result_type="complete")

    # The tools

    async def do_rich(self, params: Any, ctx: Context) -> Result:
        return structs.CallToolResult(
            content=[
                structs.TextContent(text="hi"),
                structs.AudioContent(data="AA==", mime_type="audio/wav"),
                structs.ResourceLink(uri="test://a", name="a"),
            ],
            structured_content=params.arguments["structured"],
            result_type="complete",
        )

    async def do_facts(self, params: Any, ctx: Context) -> Result:
        assert ctx.client_info is not None
        return text(f"{ctx.revision} {ctx.client_info.name} {sorted(structs.to_builtins(ctx.client_capabilities))}")

    async def do_meta(self, params: Any, ctx: Context) -> Result:
        assert params.meta is ctx.meta
        return text(str(params.meta.get("traceparent")))

    async def do_log(self, params: Any, ctx: Context) -> Result:
        for level in ("debug", "info", "error"):
            await ctx.log(level, {"at": level}, "test")
        return text("done")

    async def do_progress(self, params: Any, ctx: Context) -> Result:
        for step in (1, 2, 2, 1, 3.5):
            await ctx.progress(step, 4, f"step {step}")
        return text("done")

    async def do_wait(self, params: Any, ctx: Context) -> Result:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled_handlers += 1
            await ctx.progress(99)
            raise
        return text("never")

    async def do_stubborn(self, params: Any, ctx: Context) -> Result:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled_handlers += 1
        return text("too late")

    async def do_elicit(self, params: Any, ctx: Context) -> Result:
        answer = await ctx.elicit("who?", SCHEMA)
        return text(f"{answer.action} {answer.content}")

    async def do_two_questions(self, params: Any, ctx: Context) -> Result:
        first = await ctx.elicit("first?", SCHEMA)
        second = await ctx.elicit("second?", SCHEMA)
        return text(f"{first.content} {second.content}")

    async def do_ask_all(self, params: Any, ctx: Context) -> Result:
        question = structs.CreateMessageRequestParams(
            messages=[structs.SamplingMessage(role="user", content=structs.TextContent(text="capital?"))], max_tokens=9
        )
        answers = await ctx.ask(
            {"model": structs.CreateMessageRequest(params=question), "roots": structs.ListRootsRequest()}
        )
        return text(f"{answers['model'].content.text} {answers['roots'].roots[0].uri}")

    async def do_sample(self, params: Any, ctx: Context) -> Result:
        messages = [
            structs.SamplingMessage(role="user", content=[structs.TextContent(text="a"), structs.TextContent(text="b")])
        ]
        answer = await ctx.sample(structs.CreateMessageRequestParams(messages=messages, max_tokens=9))
        return text(str(answer.model))

    async def do_returns_question(self, params: Any, ctx: Context) -> Result:
        answers: Any = params.input_responses
        if answers and "who" in answers:
            return text(f"{answers['who'].content} {params.request_state}")
        form = structs.from_builtins({"message": "who?", "requestedSchema": SCHEMA}, structs.ElicitRequestFormParams)
        requests: Any = {"who": structs.ElicitRequest(params=form)}
        return structs.InputRequiredResult(input_requests=requests, request_state="mine", result_type="input_required")


def with_client(
    test: Callable[[Client, Everything, str], Coroutine[Any, Any, None]],
) -> Callable[[str], None]:
    """Make a test of a revision, with a client that declares all capabilities and has opened a session."""

    @functools.wraps(test)
    def wrapped(revision: str) -> None:
        async def main() -> None:
            handler = Everything()
            async with served(handler, instructions="be kind") as client:
                await client.open(revision, **EVERYTHING)
                await test(client, handler, revision)

        run(main)

    del wrapped.__wrapped__  # else pytest would look for fixtures for the inner function
    return wrapped


# Handshake, discovery, capabilities


@each_legacy
@with_client
async def test_a_handshake_returns_name_version_instructions_and_capabilities(
    client: Client, _handler: Everything, revision: str
) -> None:
    assert client.opened["protocolVersion"] == revision
    assert client.opened["serverInfo"] == {"name": "under test", "version": "1"}
    assert client.opened["instructions"] == "be kind"
    completions: Json = {} if revision == "2024-11-05" else {"completions": {}}
    assert client.opened["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        **completions,
    }


@each("asked, given", [("1999-01-01", LEGACY[0]), (MODERN_REVISION, LEGACY[0]), ("2024-11-05", "2024-11-05")])
def test_a_handshake_agrees_on_the_requested_revision_or_the_newest_legacy_one(asked: str, given: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            params: Json = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            client.revision = "2025-11-25"
            assert (await client.result("initialize", params))["protocolVersion"] == given

    run(main)


def test_a_server_without_legacy_revisions_names_its_revisions() -> None:
    async def main() -> None:
        async with served(Everything(), revisions=[MODERN_REVISION]) as client:
            client.revision = "2025-11-25"
            params: Json = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            }
            error = await client.error("initialize", params)
            assert error["data"] == {"supported": [MODERN_REVISION], "requested": "2025-11-25"}

    run(main)


def test_discovery_returns_versions_capabilities_and_instructions() -> None:
    async def main() -> None:
        async with served(Everything(), instructions="be kind") as client:
            result = await client.result("server/discover")
            assert result["supportedVersions"] == list(features.SUPPORTED)
            assert result["instructions"] == "be kind"
            assert set(result["capabilities"]) == {"tools", "resources", "logging", "completions"}
            assert result["_meta"][SERVER_INFO] == {"name": "under test", "version": "1"}
            assert (result["resultType"], result["cacheScope"]) == ("complete", "public")

    run(main)


def test_a_server_of_legacy_revisions_alone_responds_to_discovery_as_legacy_servers_do() -> None:
    async def main() -> None:
        async with served(Everything(), revisions=LEGACY) as client:
            assert (await client.error("server/discover"))["code"] == -32602
            await client.open("2025-06-18")
            assert (await client.error("server/discover"))["code"] == -32601

    run(main)


def test_an_unsupported_revision_is_rejected_with_the_supported_ones() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            error = await client.error("tools/list", meta={VERSION: "1900-01-01"})
            assert error["code"] == -32022
            assert error["data"] == {"supported": list(features.SUPPORTED), "requested": "1900-01-01"}

    run(main)


@each("revision", LEGACY)
def test_a_legacy_revision_in_a_request_without_a_session_is_told_how_it_begins(revision: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            error = await client.error("tools/list", meta={VERSION: revision})
            assert error["code"] == -32022
            assert error["message"] == (
                f"protocol version {revision}: begin a session with initialize, and name no version in _meta"
            )

    run(main)


@each_legacy
@with_client
async def test_modern_requests_are_served_beside_a_legacy_session(
    client: Client, _handler: Everything, revision: str
) -> None:
    meta: Json = {VERSION: MODERN_REVISION, CAPABILITIES: {}}
    modern = await client.result("tools/list", meta=meta)
    result = await client.result("tools/list")
    assert modern["resultType"] == "complete"
    assert "resultType" not in result


@each_revision
@with_client
async def test_a_handler_sees_revision_client_and_capabilities(
    client: Client, _handler: Everything, revision: str
) -> None:
    result = await client.call("facts")
    known = ["elicitation", "roots", "sampling"] if revision >= "2025-06-18" else ["roots", "sampling"]
    assert result["content"][0]["text"] == f"{revision} scripted {known}"


@each_revision
@with_client
async def test_trace_context_reaches_the_handler(client: Client, _handler: Everything, revision: str) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    result = await client.call("meta", meta={"traceparent": trace})
    assert result["content"][0]["text"] == trace
    assert (await client.call("meta"))["content"][0]["text"] == "None"


# Results and their types


@each_revision
@with_client
async def test_members_of_modern_results_are_sent_on_modern_revisions_alone(
    client: Client, _handler: Everything, revision: str
) -> None:
    result = await client.result("tools/list")
    modern = {"resultType": "complete", "ttlMs": 1, "cacheScope": "private"}
    extra = {key: value for key, value in result.items() if key not in ("tools", "_meta")}
    assert extra == (modern if revision == MODERN_REVISION else {})
    assert ("_meta" in result) == (revision == MODERN_REVISION)


TOOL_MEMBERS = {
    "2024-11-05": {"name", "inputSchema"},
    "2025-03-26": {"name", "inputSchema", "annotations"},
    "2025-06-18": {"name", "inputSchema", "annotations", "title", "outputSchema"},
    "2025-11-25": {"name", "inputSchema", "annotations", "title", "outputSchema", "icons"},
    MODERN_REVISION: {"name", "inputSchema", "annotations", "title", "outputSchema", "icons"},
}


@each_revision
@with_client
async def test_a_tool_has_the_members_of_its_revision_and_dropped_ones_are_reported(
    client: Client, _handler: Everything, revision: str
) -> None:
    (tool,) = (await client.result("tools/list"))["tools"]
    assert set(tool) == TOOL_MEMBERS[revision]
    lost = {
        name
        for report in client.of_kind(typedmcp.DiagnosticKind.DROPPED)
        if report.method == "tools/list"
        for name in report.params
    }
    python = {
        "title": "Tool.title",
        "outputSchema": "Tool.output_schema",
        "icons": "Tool.icons",
        "annotations": "Tool.annotations",
    }
    assert lost == {python[name] for name in TOOL_MEMBERS[MODERN_REVISION] - TOOL_MEMBERS[revision]}


@each_revision
@with_client
async def test_a_boolean_schema_becomes_an_object_on_revisions_that_need_one(
    client: Client, _handler: Everything, revision: str
) -> None:
    (tool,) = (await client.result("tools/list"))["tools"]
    assert tool["inputSchema"]["properties"]["any"] == (True if revision == MODERN_REVISION else {})


CONTENT = {
    "2024-11-05": ["text", "text", "text"],
    "2025-03-26": ["text", "audio", "text"],
    "2025-06-18": ["text", "audio", "resource_link"],
    "2025-11-25": ["text", "audio", "resource_link"],
    MODERN_REVISION: ["text", "audio", "resource_link"],
}


@each_revision
@with_client
async def test_content_of_an_unknown_type_becomes_text(client: Client, _handler: Everything, revision: str) -> None:
    result = await client.call("rich", structured={"a": 1})
    assert [block["type"] for block in result["content"]] == CONTENT[revision]
    if revision < "2025-06-18":
        assert result["content"][2]["text"] == "[resource a: test://a]"
    assert ("structuredContent" in result) == (revision >= "2025-06-18")


@each_revision
@with_client
async def test_structured_content_that_is_no_object_is_sent_on_revisions_that_allow_it(
    client: Client, _handler: Everything, revision: str
) -> None:
    result = await client.call("rich", structured=[1, 2])
    assert ("structuredContent" in result) == (revision == MODERN_REVISION)
    lost = [
        report
        for report in client.of_kind(typedmcp.DiagnosticKind.DROPPED)
        if "CallToolResult.structured_content" in report.params
    ]
    assert bool(lost) == (revision != MODERN_REVISION)


@each_revision
@with_client
async def test_a_missing_resource_has_the_error_code_of_the_revision(
    client: Client, _handler: Everything, revision: str
) -> None:
    error = await client.error("resources/read", {"uri": "test://gone"})
    assert error["code"] == (-32602 if revision == MODERN_REVISION else -32002)
    assert error["data"] == {"uri": "test://gone"}


@each_revision
@with_client
async def test_completion_accepts_both_names_of_template_references(
    client: Client, _handler: Everything, revision: str
) -> None:
    params = {"ref": {"type": "ref/resource", "uri": "test://{x}"}, "argument": {"name": "x", "value": "1"}}
    result = await client.result("completion/complete", params)
    assert result["completion"]["values"] == ["test://{x}"]


# Logging and progress


@each_legacy
@with_client
async def test_a_legacy_session_gets_logs_from_info_upwards_until_it_sets_a_level(
    client: Client, _handler: Everything, revision: str
) -> None:
    async def levels() -> list[str]:
        id = client.start("tools/call", {"name": "log", "arguments": {}})
        found: list[str] = []
        while (message := await client.receive()).get("id") != id:
            assert message["method"] == "notifications/message"
            assert message["params"]["data"] == {"at": message["params"]["level"]}
            found.append(message["params"]["level"])
        return found

    assert await levels() == ["info", "error"]
    await client.result("logging/setLevel", {"level": "error"})
    assert await levels() == ["error"]
    await client.result("logging/setLevel", {"level": "debug"})
    assert await levels() == ["debug", "info", "error"]


def test_a_modern_request_gets_logs_only_if_it_names_a_level() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.call("log")
            assert client.unread() == []
            assert [report.params for report in client.of_kind(typedmcp.DiagnosticKind.LOG)] == [
                {"at": "debug"}, {"at": "info"}, {"at": "error"},
            ]  # fmt: skip
            await client.call("log", meta={"io.modelcontextprotocol/logLevel": "info"})
            assert [message["params"]["level"] for message in client.unread()] == ["info", "error"]

    run(main)


def test_an_unknown_log_level_is_rejected() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            error = await client.error("tools/list", meta={"io.modelcontextprotocol/logLevel": "loud"})
            assert error["code"] == -32602
            assert 'params._meta["io.modelcontextprotocol/logLevel"]: expected "alert"' in error["message"]

    run(main)


@each_revision
@each("token", ["t", 7, 0])
def test_progress_only_grows_and_keeps_the_type_of_the_token(revision: str, token: object) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision)
            await client.call("progress", meta={"progressToken": token})
            progress = [message["params"] for message in client.unread()]
            assert [each["progress"] for each in progress] == [1, 2, 3.5]
            assert [type(each["progress"]) for each in progress] == [int, int, float]
            assert all(each["progressToken"] == token and each["total"] == 4 for each in progress)
            assert ("message" in progress[0]) == (revision > "2024-11-05")
            await client.call("progress")
            assert len(client.unread()) == 3

    run(main)


# Cancellation


@each_revision
@each("name", ["wait", "stubborn"])
def test_a_cancelled_handler_stops_and_sends_nothing_more(revision: str, name: str) -> None:
    async def main() -> None:
        handler = Everything()
        async with served(handler) as client:
            await client.open(revision)
            id = client.start("tools/call", {"name": name, "arguments": {}}, meta={"progressToken": 1})
            await handler.waiting.wait()
            client.send({"method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}})
            await client.settled()
            await client.settled()
            assert handler.cancelled_handlers == 1
            assert client.unread() == []
            (report,) = client.of_kind(typedmcp.DiagnosticKind.CANCELLED)
            assert (report.text, report.params) == (f'the client cancelled request {id}: "enough"', "enough")
            # The id may be used again.
            client.send(
                {"id": id, "method": "tools/list", "params": {"_meta": client.meta()} if client.is_modern else {}}
            )
            assert "tools" in (await client.answer_to(id))["result"]

    run(main)


@each_revision
@with_client
async def test_cancelling_an_unknown_request_is_reported_without_a_response(
    client: Client, _handler: Everything, revision: str
) -> None:
    client.send({"method": "notifications/cancelled", "params": {"requestId": 77}})
    await client.settled()
    assert client.unread() == []
    assert len(client.of_kind(typedmcp.DiagnosticKind.UNEXPECTED_MESSAGE)) == 1


# Input from the client

ACCEPT = {"action": "accept", "content": {"name": "Ada"}}
HAS_ELICITATION = [revision for revision in LEGACY if revision >= "2025-06-18"]


@each("revision", HAS_ELICITATION)
@with_client
async def test_a_legacy_client_is_asked_while_the_handler_waits(
    client: Client, handler: Everything, revision: str
) -> None:
    id = client.start("tools/call", {"name": "elicit", "arguments": {}})
    question = await client.receive()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "who?"
    assert "mode" not in question["params"]  # a form is the default
    client.send({"id": question["id"], "result": ACCEPT})
    assert (await client.answer_to(id))["result"]["content"][0]["text"] == "accept {'name': 'Ada'}"
    assert handler.entered == 1


@with_client
async def _a_modern_client_is_asked_between_two_attempts(client: Client, handler: Everything, _revision: str) -> None:
    first = await client.call("elicit")
    assert first["resultType"] == "input_required"
    ((key, question),) = first["inputRequests"].items()
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "who?")
    retry: Json = {
        "name": "elicit",
        "arguments": {},
        "requestState": first["requestState"],
        "inputResponses": {key: ACCEPT},
    }
    second = await client.result("tools/call", retry)
    assert second["content"][0]["text"] == "accept {'name': 'Ada'}"
    assert handler.entered == 2


def test_a_modern_client_is_asked_between_two_attempts() -> None:
    _a_modern_client_is_asked_between_two_attempts(MODERN_REVISION)


def test_answers_of_earlier_rounds_travel_in_the_signed_state() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(MODERN_REVISION, **EVERYTHING)
            params: dict[str, Any] = {"name": "two_questions", "arguments": {}}
            result = await client.result("tools/call", params)
            asked: list[str] = []
            for name in ("Ada", "Grace"):
                ((key, question),) = result["inputRequests"].items()
                asked.append(question["params"]["message"])
                answer = {"action": "accept", "content": {"name": name}}
                retry: Json = {**params, "requestState": result["requestState"], "inputResponses": {key: answer}}
                result = await client.result("tools/call", retry)
            assert asked == ["first?", "second?"]
            assert result["content"][0]["text"] == "{'name': 'Ada'} {'name': 'Grace'}"

    run(main)


BAD_STATES: list[tuple[str, Callable[[str], str], str]] = [
    ("altered", lambda state: state[:-8] + ("AAAAAAAA" if not state.endswith("AAAAAAAA") else "BBBBBBBB"), "altered"),
    ("not ours", lambda _state: "abc!", "did not issue it"),
    ("empty", lambda _state: "", "altered"),
]


@each("change, why", [(change, why) for _, change, why in BAD_STATES], ids=[b[0] for b in BAD_STATES])
def test_a_state_that_is_not_as_it_was_signed_is_rejected(change: Callable[[str], str], why: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(MODERN_REVISION, **EVERYTHING)
            first = await client.call("elicit")
            retry: Json = {"name": "elicit", "arguments": {}, "requestState": change(first["requestState"])}
            error = await client.error("tools/call", retry)
            assert error["code"] == -32602
            assert why in error["message"]

    run(main)


def test_a_state_belongs_to_its_own_request() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(MODERN_REVISION, **EVERYTHING)
            first = await client.call("elicit")
            other: Json = {"name": "two_questions", "arguments": {}, "requestState": first["requestState"]}
            assert "another request" in (await client.error("tools/call", other))["message"]

    run(main)


@each("responses", [{}, {"other": ACCEPT}, {"elicitation/create#1": {"action": "maybe"}}])
def test_missing_and_malformed_answers_are_requested_again(responses: dict[str, Any]) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(MODERN_REVISION, **EVERYTHING)
            first = await client.call("elicit")
            retry: Json = {
                "name": "elicit", "arguments": {}, "requestState": first["requestState"], "inputResponses": responses,
            }  # fmt: skip
            answer = await client.request("tools/call", retry)
            assert answer["result"]["resultType"] == "input_required"
            assert [*answer["result"]["inputRequests"]] == [*first["inputRequests"]]

    run(main)


def test_a_call_that_always_requests_input_ends_at_the_limit_on_rounds() -> None:
    async def main() -> None:
        async with served(Everything(), limits=typedmcp.Limits(input_rounds=3)) as client:
            await client.open(MODERN_REVISION, **EVERYTHING)
            params: dict[str, Any] = {"name": "elicit", "arguments": {}}
            for _ in range(3):
                result = await client.result("tools/call", params)
                params = {**params, "requestState": result["requestState"]}
            assert "after 3 rounds" in (await client.error("tools/call", params))["message"]

    run(main)


@each_revision
def test_several_inputs_are_requested_at_once(revision: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision, **EVERYTHING)
            sampled = {"role": "assistant", "content": {"type": "text", "text": "Oslo"}, "model": "m"}
            answers = {"sampling/createMessage": sampled, "roots/list": {"roots": [{"uri": "file:///a"}]}}
            id = client.start("tools/call", {"name": "ask_all", "arguments": {}})
            if client.is_modern:
                first = (await client.answer_to(id))["result"]
                responses = {key: answers[request["method"]] for key, request in first["inputRequests"].items()}
                params: Json = {"name": "ask_all", "arguments": {}, "requestState": first["requestState"]}
                id = client.start("tools/call", {**params, "inputResponses": responses})
            else:
                for _ in answers:
                    question = await client.receive()
                    client.send({"id": question["id"], "result": answers[question["method"]]})
            assert (await client.answer_to(id))["result"]["content"][0]["text"] == "Oslo file:///a"

    run(main)


@each("revision", [*HAS_ELICITATION, MODERN_REVISION])
@with_client
async def test_a_handler_that_returns_input_requests_is_called_again_on_every_revision(
    client: Client, handler: Everything, revision: str
) -> None:
    id = client.start("tools/call", {"name": "returns_question", "arguments": {}})
    if client.is_modern:
        first = (await client.answer_to(id))["result"]
        assert first["requestState"] != "mine"
        retry: Json = {"name": "returns_question", "arguments": {}, "requestState": first["requestState"]}
        id = client.start("tools/call", {**retry, "inputResponses": {"who": ACCEPT}})
    else:
        question = await client.receive()
        client.send({"id": question["id"], "result": ACCEPT})
    assert (await client.answer_to(id))["result"]["content"][0]["text"] == "{'name': 'Ada'} mine"
    assert handler.entered == 2


@each_revision
def test_input_without_a_declared_capability_is_not_requested(revision: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision)
            error = await client.error("tools/call", {"name": "sample", "arguments": {}})
            assert error["code"] == (-32021 if revision == MODERN_REVISION else -32600)
            assert error["data"] == {"requiredCapabilities": {"sampling": {}}}
            assert client.unread() == []

    run(main)


@each_legacy
@with_client
async def test_a_message_with_several_contents_becomes_several_messages_on_older_revisions(
    client: Client, _handler: Everything, revision: str
) -> None:
    id = client.start("tools/call", {"name": "sample", "arguments": {}})
    question = await client.receive()
    messages = question["params"]["messages"]
    assert len(messages) == (1 if revision == "2025-11-25" else 2)
    answer = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "the model"}
    client.send({"id": question["id"], "result": answer})
    assert (await client.answer_to(id))["result"]["content"][0]["text"] == "the model"


@each_legacy
@each(
    "answer, code",
    [({"error": {"code": -1, "message": "no"}}, -1), ({"result": {"nonsense": 1}}, -32603)],
    ids=["an error", "a wrong result"],
)
def test_a_wrong_result_of_the_client_ends_the_call_with_an_error(
    revision: str, answer: dict[str, Any], code: int
) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision, **EVERYTHING)
            id = client.start("tools/call", {"name": "sample", "arguments": {}})
            question = await client.receive()
            client.send({"id": question["id"], **answer})
            assert (await client.answer_to(id))["error"]["code"] == code

    run(main)


@each_legacy
@with_client
async def test_a_cancelled_call_cancels_its_own_input_request(
    client: Client, _handler: Everything, revision: str
) -> None:
    id = client.start("tools/call", {"name": "sample", "arguments": {}})
    question = await client.receive()
    client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
    taken_back = await client.receive()
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    client.send({"id": question["id"], "result": {}})
    await client.settled()
    assert len(client.of_kind(typedmcp.DiagnosticKind.LATE_MESSAGE)) == 1


@each_legacy
@with_client
async def test_an_id_that_comes_back_as_a_string_is_accepted_and_reported(
    client: Client, _handler: Everything, revision: str
) -> None:
    id = client.start("tools/call", {"name": "sample", "arguments": {}})
    question = await client.receive()
    answer = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
    client.send({"id": str(question["id"]), "result": answer})
    assert "result" in await client.answer_to(id)
    assert len(client.of_kind(typedmcp.DiagnosticKind.ID_TYPE_MISMATCH)) == 1


@each_legacy
def test_a_strict_server_does_not_know_an_id_that_comes_back_as_a_string(revision: str) -> None:
    async def main() -> None:
        async with served(Everything(), strict=True) as client:
            await client.open(revision, **EVERYTHING)
            id = client.start("tools/call", {"name": "sample", "arguments": {}})
            question = await client.receive()
            answer = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
            client.send({"id": str(question["id"]), "result": answer})
            await client.settled()
            assert len(client.of_kind(typedmcp.DiagnosticKind.UNEXPECTED_RESPONSE)) == 1
            client.send({"id": question["id"], "result": answer})
            assert "result" in await client.answer_to(id)

    run(main)


# Changes


@each_legacy
def test_a_legacy_session_is_notified_of_lists_and_of_its_subscribed_resources(revision: str) -> None:
    async def main() -> None:
        changes = typedmcp.Changes()
        async with served(Everything(), changes=changes) as client:
            await client.open(revision)
            await client.result("resources/subscribe", {"uri": "test://a"})
            changes.tools_changed()
            changes.prompts_changed()  # the server has none
            changes.resource_updated("test://a")
            changes.resource_updated("test://b")
            assert (await client.receive())["method"] == "notifications/tools/list_changed"
            updated = await client.receive()
            assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", "test://a")
            await client.result("resources/unsubscribe", {"uri": "test://a"})
            changes.resource_updated("test://a")
            await client.settled()
            assert client.unread() == []
        assert len(changes) == 0

    run(main)


def test_a_modern_listener_is_acknowledged_first_and_gets_the_changes_that_it_wants() -> None:
    async def main() -> None:
        changes = typedmcp.Changes()
        async with served(Everything(), changes=changes) as client:
            wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["test://a"]}
            id = client.start("subscriptions/listen", {"notifications": wanted})
            acknowledged = await client.receive()
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["_meta"] == {SUBSCRIPTION: id}
            # The server has no prompts, so their changes are not announced.
            granted = {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]}
            assert acknowledged["params"]["notifications"] == granted
            changes.resources_changed()
            changes.tools_changed()
            changes.resource_updated("test://b")
            changes.resource_updated("test://a")
            first, second = await client.receive(), await client.receive()
            assert [m["method"] for m in (first, second)] == [
                "notifications/tools/list_changed", "notifications/resources/updated",
            ]  # fmt: skip
            assert all(m["params"]["_meta"] == {SUBSCRIPTION: id} for m in (first, second))
            client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
            await client.settled()
            changes.tools_changed()
            await client.settled()
            assert client.unread() == []
        assert len(changes) == 0

    run(main)


def test_a_listener_is_notified_when_the_server_ends() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            id = client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await client.receive()
            client.connection.stop()
            cancelled, result = await client.receive(), await client.receive()
            assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", id)
            assert (result["id"], result["result"]["_meta"][SUBSCRIPTION]) == (id, id)

    run(main)


# Features of legacy revisions alone


@each_legacy
@with_client
async def test_notifications_of_legacy_revisions_alone_are_reported(
    client: Client, _handler: Everything, revision: str
) -> None:
    client.send({"method": "notifications/roots/list_changed"})
    client.send({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 0.5}})
    await client.settled()
    methods = [report.method for report in client.of_kind(typedmcp.DiagnosticKind.LEGACY_NOTIFICATION)]
    assert methods == ["notifications/roots/list_changed", "notifications/progress"]


def test_tasks_are_not_offered_and_their_parameters_are_ignored() -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open("2025-11-25", tasks={"requests": {}})
            assert "tasks" not in client.opened["capabilities"]
            for method in ("tasks/list", "tasks/get", "tasks/result", "tasks/cancel"):
                error = await client.error(method, {} if method == "tasks/list" else {"taskId": "a"})
                assert error["code"] == -32601
                assert error["message"].startswith(f"method not found: {method}: tasks of 2025-11-25 are not offered")
            params: Json = {"name": "facts", "arguments": {}, "task": {"ttl": 1000}}
            assert "content" in await client.result("tools/call", params)

    run(main)


@each("method", ["ping", "initialize", "logging/setLevel", "resources/subscribe"])
def test_methods_of_legacy_revisions_alone_are_unknown_on_modern_ones(method: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            assert (await client.error(method, meta=client.meta()))["code"] == -32601

    run(main)


@each_legacy
@each("method", ["server/discover", "subscriptions/listen"])
def test_methods_of_the_dialect_alone_are_unknown_on_legacy_revisions(revision: str, method: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision)
            assert (await client.error(method))["code"] == -32601

    run(main)
