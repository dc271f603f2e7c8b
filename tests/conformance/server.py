"""A server with all features, for the official conformance suite and the clients of others.

    python tests/conformance/server.py stdio
    python tests/conformance/server.py http [--port N] [--host H]

It is one handler, written in the dialect. It serves five protocol revisions, without any code for them. The features
are in tables: a tool or prompt is a function under a decorator, and fixed results are data.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import typedmcp
from typedmcp.dialect import handlers, structs
from typedmcp_extensions.tasks import ServerTasks

Content: TypeAlias = list[structs.ContentBlock]
Messages: TypeAlias = list[structs.PromptMessage]
Schema: TypeAlias = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
"""A red pixel."""
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="
"""Two samples of silence."""

STATIC_TEXT = "test://static-text"
STATIC_BINARY = "test://static-binary"
WATCHED = "test://watched-resource"
TEMPLATE = "test://template/{id}/data"
FROM_TEMPLATE = re.compile(r"test://template/(?P<id>[^/]+)/data")

PAUSE = 0.05
"""Seconds between the steps of a tool that reports progress, so that they arrive one by one."""


# Make results


def text(value: str) -> Content:
    return [structs.TextContent(text=value)]


def resource(uri: str, mime_type: str, value: str) -> structs.EmbeddedResource:
    contents = structs.TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    return structs.EmbeddedResource(resource=contents)


def user(*contents: structs.ContentBlock) -> Messages:
    return [structs.PromptMessage(role="user", content=content) for content in contents]


def form(**fields: Schema) -> Schema:
    """Return the schema of a form with only required fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def prompt_for_model(question: str, max_tokens: int = 100) -> structs.CreateMessageRequestParams:
    message = structs.SamplingMessage(role="user", content=structs.TextContent(text=question))
    return structs.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)


def question(message: str, schema: Schema) -> structs.ElicitRequest:
    wanted = structs.from_builtins(schema, structs.ElicitRequestFormParamsRequestedSchema)
    return structs.ElicitRequest(params=structs.ElicitRequestFormParams(message=message, requested_schema=wanted))


# Read input from the client


def filled_in(answer: structs.ElicitResult) -> dict[str, Any]:
    """Return the content of a form, empty if it was declined."""
    return dict(answer.content or {})


def described(answer: structs.ElicitResult) -> str:
    return f"action={answer.action}, content={json.dumps(filled_in(answer))}"


def spoken(answer: structs.CreateMessageResult) -> str:
    """Return the text that a model has generated."""
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    return " ".join(block.text for block in blocks if isinstance(block, structs.TextContent))


# The tables


@dataclass(frozen=True)
class Call:
    """A call of a tool, with its context."""

    server: Everything
    params: structs.CallToolRequestParams
    ctx: typedmcp.Context

    def argument(self, name: str) -> str:
        value = (self.params.arguments or {}).get(name)
        if not isinstance(value, str):
            raise typedmcp.InvalidParamsError(
                f"arguments.{name}: expected string", {"path": f"params.arguments.{name}"}
            )
        return value


Output: TypeAlias = Content | structs.CallToolResult | structs.InputRequiredResult
ToolFunction: TypeAlias = Callable[[Call], Awaitable[Output]]
PromptFunction: TypeAlias = Callable[[Mapping[str, str], typedmcp.Context], Awaitable[Messages]]

TOOLS: dict[str, tuple[structs.Tool, ToolFunction]] = {}
PROMPTS: dict[str, tuple[structs.Prompt, PromptFunction]] = {}

LATE = {"test_late_tool", "test_late_prompt"}
"""Names that are listed only after a change."""


def result_of(output: Output) -> structs.CallToolResult | structs.InputRequiredResult:
    return structs.CallToolResult(content=output, result_type="complete") if isinstance(output, list) else output


def tool(
    name: str, description: str, schema: Schema | None = None, **more: Any
) -> Callable[[ToolFunction], ToolFunction]:
    """Register a function as a tool. Without a schema it takes no arguments; `more` are members of `structs.Tool`."""

    def added(function: ToolFunction) -> ToolFunction:
        input_schema = schema or {"type": "object"}
        TOOLS[name] = structs.Tool(name=name, description=description, input_schema=input_schema, **more), function
        return function

    return added


def prompt(name: str, description: str, **arguments: str) -> Callable[[PromptFunction], PromptFunction]:
    """Register a function as a prompt with required arguments, each with its description."""

    def added(function: PromptFunction) -> PromptFunction:
        wanted = [
            structs.PromptArgument(name=argument, description=meaning, required=True)
            for argument, meaning in arguments.items()
        ]
        PROMPTS[name] = structs.Prompt(name=name, description=description, arguments=wanted), function
        return function

    return added


# Tools with a fixed result


def fixed(name: str, description: str, content: Content) -> None:
    async def answer(_call: Call) -> Content:
        return content

    tool(name, description)(answer)


IMAGE = structs.ImageContent(data=PNG, mime_type="image/png")
AUDIO = structs.AudioContent(data=WAV, mime_type="audio/wav")

fixed("test_simple_text", "Answers with a text", text("This is a simple text response for testing."))
fixed("test_image_content", "Answers with an image", [IMAGE])
fixed("test_audio_content", "Answers with a sound", [AUDIO])
fixed(
    "test_embedded_resource",
    "Answers with a resource",
    [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
)
fixed(
    "test_multiple_content_types",
    "Answers with a text, an image and a resource",
    [
        structs.TextContent(text="Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
)
fixed("test_late_tool", "Is in the list after test_trigger_tool_change", text("Better late than never."))


@tool("test_error_handling", "Fails, in a way that the model is told of")
async def error_handling(_call: Call) -> structs.CallToolResult:
    content = text("This tool intentionally returns an error for testing")
    return structs.CallToolResult(content=content, result_type="complete", is_error=True)


WEATHER: Schema = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


@tool(
    "test_structured_content",
    "Answers with data, the same as text, and a link: each revision gets as much of it as it has",
    title="Structured content",
    annotations=structs.ToolAnnotations(read_only_hint=True),
    icons=[structs.Icon(src=f"data:image/png;base64,{PNG}", mime_type="image/png", sizes=["1x1"])],
    output_schema=structs.from_builtins(WEATHER, structs.ToolOutputSchema),
)
async def structured_content(_call: Call) -> structs.CallToolResult:
    link = structs.ResourceLink(name="static-text", uri=STATIC_TEXT, mime_type="text/plain")
    content: Content = [*text('{"degrees": 12.5}'), link]
    return structs.CallToolResult(content=content, structured_content={"degrees": 12.5}, result_type="complete")


@tool(
    "json_schema_2020_12_tool",
    "Takes arguments whose schema uses what JSON Schema 2020-12 has",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema_2020_12_tool(call: Call) -> Content:
    return text(f"Called with {json.dumps(structs.to_builtins(call.params.arguments or {}))}")


@tool(
    "test_x_mcp_header",
    "Says which region it was asked about, which HTTP clients repeat in a header",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
)
async def x_mcp_header(call: Call) -> Content:
    arguments = call.params.arguments or {}
    return text(f"Region: {arguments.get('region', 'none')}")


# Tools that report progress and log


@tool("test_tool_with_progress", "Reports progress, three times")
async def tool_with_progress(call: Call) -> Content:
    for done in (0, 50, 100):
        await call.ctx.progress(done, 100, f"{done} of 100")
        await asyncio.sleep(PAUSE)
    await asyncio.sleep(3 * PAUSE)  # the TypeScript client loses progress that it reads together with the answer
    return text("Done, with progress.")


@tool("test_tool_with_logging", "Logs three messages")
async def tool_with_logging(call: Call) -> Content:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await call.ctx.log("info", message, "everything")
        await asyncio.sleep(PAUSE)
    return text("Done, with logging.")


@tool("test_logging_tool", "Logs a message of every kind; the client hears of those that it asked for")
async def logging_tool(call: Call) -> Content:
    await call.ctx.log("debug", "Looking closely")
    await call.ctx.log("info", {"step": 1, "of": 2})
    await call.ctx.log("error", "Nothing is wrong, this is a test")
    return text("Done, with logging for whoever wants it.")


@tool("test_reconnection", "Answers, over HTTP after the client had to come back")
async def reconnection(call: Call) -> Content:
    await call.ctx.disconnect(retry=0.5)
    await asyncio.sleep(PAUSE)
    return text("The answer outlived a stream.")


@tool("test_wait", "Reports progress, then waits until it is cancelled")
async def wait(call: Call) -> Content:
    await call.ctx.progress(1, message="waiting")
    try:
        await asyncio.Event().wait()
    finally:
        call.server.given_up += 1
    return text("Nobody cancelled, which cannot be.")


@tool("test_cancelled_waits", "Says how many waits were cancelled")
async def cancelled_waits(call: Call) -> Content:
    return text(str(call.server.given_up))


# Tools that change something


@tool("test_trigger_tool_change", "Adds a tool, or takes it away again")
async def trigger_tool_change(call: Call) -> Content:
    call.server.hidden ^= {"test_late_tool"}
    call.ctx.changes.tools_changed()
    return text("The tools changed.")


@tool("test_trigger_prompt_change", "Adds a prompt, or takes it away again")
async def trigger_prompt_change(call: Call) -> Content:
    call.server.hidden ^= {"test_late_prompt"}
    call.ctx.changes.prompts_changed()
    return text("The prompts changed.")


@tool("test_trigger_resource_change", "Changes what can be read at the watched resource")
async def trigger_resource_change(call: Call) -> Content:
    call.server.updates += 1
    call.ctx.changes.resource_updated(WATCHED)
    return text("The watched resource changed.")


# Tools that request input. The same code works on every revision; on the newest, each request is a round.


@tool(
    "test_sampling",
    "Asks the client's model",
    {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
)
async def sampling(call: Call) -> Content:
    answer = await call.ctx.sample(prompt_for_model(call.argument("prompt")))
    return text(f"LLM response: {spoken(answer)}")


ACCOUNT = form(
    username={"type": "string", "description": "Name to sign in with"},
    email={"type": "string", "description": "Address to write to"},
)


@tool(
    "test_elicitation",
    "Asks the user",
    {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
)
async def elicitation(call: Call) -> Content:
    answer = await call.ctx.elicit(call.argument("message"), ACCOUNT)
    return text(f"User response: {described(answer)}")


DEFAULTS: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}


@tool("test_elicitation_sep1034_defaults", "Asks the user to fill in a form that is filled in already")
async def elicitation_sep1034_defaults(call: Call) -> Content:
    answer = await call.ctx.elicit("Please look over what is known of you", DEFAULTS)
    return text(f"Elicitation completed: {described(answer)}")


OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{n}", "title": f"{ordinal} choice"} for n, ordinal in enumerate(["First", "Second"], start=1)
]
CHOICES: Schema = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option one", "Option two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


@tool("test_elicitation_sep1330_enums", "Asks the user to choose, in every way that a form has")
async def elicitation_sep1330_enums(call: Call) -> Content:
    answer = await call.ctx.elicit("Please choose", CHOICES)
    return text(f"Elicitation completed: {described(answer)}")


@tool("test_streaming_elicitation", "Asks the user while a stream is open")
async def streaming_elicitation(call: Call) -> Content:
    await call.ctx.progress(1, message="asking")
    answer = await call.ctx.elicit("Shall this go on?", form(ok={"type": "boolean"}))
    return text(f"User response: {described(answer)}")


@tool("test_missing_capability", "Refuses a client that has no model")
async def missing_capability(call: Call) -> Content:
    if call.ctx.client_capabilities.sampling is None:
        raise typedmcp.MissingCapabilityError({"sampling": {}})
    return text("The client has declared sampling.")


ASK_NAME = form(name={"type": "string"})
ASK_COLOR = form(color={"type": "string"})
ASK_OK = form(ok={"type": "boolean"})


@tool("test_input_required_result_elicitation", "Asks for a name")
async def input_required_result_elicitation(call: Call) -> Content:
    answer = unasked_answer(call, "user_name") or await call.ctx.elicit("What is your name?", ASK_NAME, key="user_name")
    return text(f"Hello, {filled_in(answer).get('name', 'stranger')}!")


def unasked_answer(call: Call, key: str) -> structs.ElicitResult | None:
    """Return an answer that a client sends before it is asked, as the suite does in one scenario.

    The runtime ignores such answers, since one could be taken for consent. A name is none: this tool reads it from the
    message as received.
    """
    params = json.loads(call.ctx.raw)["params"]
    if "requestState" in params or key not in params.get("inputResponses", {}):
        return None
    return structs.from_builtins(params["inputResponses"][key], structs.ElicitResult)


@tool("test_input_required_result_sampling", "Asks the client's model for a capital")
async def input_required_result_sampling(call: Call) -> Content:
    answer = await call.ctx.sample(prompt_for_model("What is the capital of France?"), key="capital_question")
    return text(f"The model says: {spoken(answer)}")


@tool("test_input_required_result_list_roots", "Asks for the folders that the client works in")
async def input_required_result_list_roots(call: Call) -> Content:
    roots = await call.ctx.list_roots(key="client_roots")
    return text("Roots: " + ", ".join(root.uri for root in roots))


@tool("test_input_required_result_multi_round", "Asks for a name, then for a color")
async def input_required_result_multi_round(call: Call) -> Content:
    name = await call.ctx.elicit("Step 1: What is your name?", ASK_NAME, key="step1")
    color = await call.ctx.elicit("Step 2: What is your favorite color?", ASK_COLOR, key="step2")
    return text(f"{filled_in(name).get('name')} likes {filled_in(color).get('color')}.")


@tool(
    "test_input_required_result_tampered_state", "Asks for a confirmation, with a state that must come back as it went"
)
async def input_required_result_tampered_state(call: Call) -> Content:
    answer = await call.ctx.elicit("Please confirm", ASK_OK, key="confirm")
    return text(f"Nobody touched the state: {described(answer)}")


# The same by hand: a tool may return its requests for input, with a state of its own.


@tool(
    "test_input_required_result_request_state", "Asks for a confirmation, and checks the state that comes back with it"
)
async def input_required_result_request_state(call: Call) -> Output:
    came_back = call.params.request_state == "asked for a confirmation"
    if came_back and "confirm" in (call.params.input_responses or {}):
        return text("state-ok")
    return structs.InputRequiredResult(
        result_type="input_required",
        input_requests={"confirm": question("Please confirm", ASK_OK)},
        request_state="asked for a confirmation",
    )


EVERY_INPUT: dict[str, tuple[str, structs.InputRequest]] = {
    "user_name": ("elicitation", question("What is your name?", ASK_NAME)),
    "greeting": ("sampling", structs.CreateMessageRequest(params=prompt_for_model("Generate a greeting", 50))),
    "client_roots": ("roots", structs.ListRootsRequest()),
}
"""Requests for input by key, each with the capability that it needs."""


@tool("test_input_required_result_multiple_inputs", "Asks for a name, a greeting and folders at once")
async def input_required_result_multiple_inputs(call: Call) -> Content:
    answers = await call.ctx.ask({key: request for key, (_, request) in EVERY_INPUT.items()})
    name, greeting = filled_in(answers["user_name"]).get("name"), spoken(answers["greeting"])
    return text(f"{greeting} {name}, {len(answers['client_roots'].roots)} folder(s).")


@tool("test_input_required_result_capabilities", "Asks for as much as the client has declared")
async def input_required_result_capabilities(call: Call) -> Content:
    declared = structs.to_builtins(call.ctx.client_capabilities)
    answers = await call.ctx.ask({key: request for key, (need, request) in EVERY_INPUT.items() if need in declared})
    return text(f"Answered: {', '.join(sorted(answers)) or 'nothing'}")


# Tools that run as tasks, for clients that declare the extension


TASKS = ServerTasks(poll_interval=0.1)


def task(name: str, description: str, schema: Schema | None = None, *, required: bool = False) -> Callable[[Any], Any]:
    """Register a function as a tool that runs as a task."""

    def added(function: ToolFunction) -> ToolFunction:
        async def run(call: Call) -> Output:
            async def work(ctx: typedmcp.Context) -> Output:
                return result_of(await function(replace(call, ctx=ctx)))

            made: Output = await TASKS.run(call.ctx, work, required=required)
            return made

        return tool(name, description, schema)(run)

    return added


def arguments_of(*required: str, **properties: str) -> Schema:
    """Return the schema of arguments with these types."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": [*required],
    }


@tool("greet", "Greets, within the request", arguments_of("name", name="string"))
async def greet(call: Call) -> Content:
    return text(f"Hello, {call.argument('name')}!")


@task("slow_compute", "Takes as long as it is told", arguments_of("seconds", seconds="number", label="string"))
async def slow_compute(call: Call) -> Content:
    arguments = call.params.arguments or {}
    await asyncio.sleep(float(arguments["seconds"]))
    return text(f"Computed {arguments.get('label', 'nothing')}.")


@task("failing_job", "Fails, in a way that the model is told of", required=True)
async def failing_job(_call: Call) -> structs.CallToolResult:
    await asyncio.sleep(PAUSE)
    content = text("This job intentionally fails")
    return structs.CallToolResult(content=content, result_type="complete", is_error=True)


@task("protocol_error_job", "Fails, as a method does")
async def protocol_error_job(_call: Call) -> Content:
    raise typedmcp.RemoteError(-32603, "this job intentionally fails")


@task("confirm_delete", "Asks the user before it deletes a file", arguments_of("filename", filename="string"))
async def confirm_delete(call: Call) -> Content:
    answer = await call.ctx.elicit(f"Delete {call.argument('filename')}?", form(confirm={"type": "boolean"}))
    return text("Deleted." if filled_in(answer).get("confirm") else "Kept.")


@task("multi_input", "Asks two questions at once")
async def multi_input(call: Call) -> Content:
    wanted = form(name={"type": "string"})
    answers = await call.ctx.ask({key: question(f"The {key} name?", wanted) for key in ("first", "last")})
    return text(" ".join(str(filled_in(answer).get("name")) for answer in answers.values()))


@tool("test_tool_with_task", "Asks the user within the request, and continues as a task")
async def tool_with_task(call: Call) -> Output:
    answer = await call.ctx.elicit("What is your name?", form(name={"type": "string"}), key="user_name")

    async def work(_ctx: typedmcp.Context) -> Output:
        return result_of(text(f"Hello, {filled_in(answer).get('name')}!"))

    made: Output = await TASKS.run(call.ctx, work, required=True)
    return made


# Prompts


@prompt("test_simple_prompt", "Says one thing")
async def simple_prompt(_arguments: Mapping[str, str], _ctx: typedmcp.Context) -> Messages:
    return user(*text("This is a simple prompt for testing."))


@prompt(
    "test_prompt_with_arguments", "Repeats its arguments", arg1="First thing to repeat", arg2="Second thing to repeat"
)
async def prompt_with_arguments(arguments: Mapping[str, str], _ctx: typedmcp.Context) -> Messages:
    return user(*text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))


@prompt("test_prompt_with_embedded_resource", "Brings a resource along", resourceUri="URI of the resource")
async def prompt_with_embedded_resource(arguments: Mapping[str, str], _ctx: typedmcp.Context) -> Messages:
    embedded = resource(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
    return user(embedded, *text("Please process the embedded resource above."))


@prompt("test_prompt_with_image", "Brings an image along")
async def prompt_with_image(_arguments: Mapping[str, str], _ctx: typedmcp.Context) -> Messages:
    return user(IMAGE, *text("Please analyze the image above."))


@prompt("test_input_required_result_prompt", "Asks what it should be about")
async def input_required_result_prompt(_arguments: Mapping[str, str], ctx: typedmcp.Context) -> Messages:
    wanted = form(context={"type": "string"})
    answer = await ctx.elicit("What context should the prompt use?", wanted, key="user_context")
    return user(*text(f"Prompt with context: {filled_in(answer).get('context', 'none')}"))


@prompt("test_late_prompt", "Is in the list after test_trigger_prompt_change")
async def late_prompt(_arguments: Mapping[str, str], _ctx: typedmcp.Context) -> Messages:
    return user(*text("Better late than never."))


# Resources and completion

RESOURCES = [
    structs.Resource(uri=STATIC_TEXT, name="static-text", description="A text", mime_type="text/plain"),
    structs.Resource(uri=STATIC_BINARY, name="static-binary", description="An image", mime_type="image/png"),
    structs.Resource(uri=WATCHED, name="watched-resource", description="A text that changes", mime_type="text/plain"),
]
TEMPLATES = [
    structs.ResourceTemplate(
        uri_template=TEMPLATE, name="template", description="Data by number", mime_type="application/json"
    )
]

COMPLETIONS: dict[tuple[str, str], list[str]] = {
    ("test_prompt_with_arguments", "arg1"): ["paris", "park", "party", "place"],
    ("test_prompt_with_arguments", "arg2"): ["london", "lisbon"],
    (TEMPLATE, "id"): ["1", "12", "123"],
}
"""Completions by prompt or template, and argument."""


T = TypeVar("T")


def listed(table: Mapping[str, tuple[T, object]], hidden: Iterable[str]) -> list[T]:
    """List the items of a table, without the hidden ones."""
    return [item for name, (item, _) in table.items() if name not in hidden]


class Everything(handlers.ServerStub[typedmcp.Context]):
    """The handler: it looks everything up in the tables, and holds the state."""

    def __init__(self) -> None:
        self.hidden = set(LATE)
        self.given_up = 0
        self.updates = 0

    async def list_tools(
        self, _params: structs.PaginatedRequestParams, _ctx: typedmcp.Context
    ) -> structs.ListToolsResult:
        await asyncio.sleep(0)  # like a server that looks them up: over HTTP, sessions get the answer as a stream
        tools = listed(TOOLS, self.hidden)
        return structs.ListToolsResult(tools=tools, result_type="complete", ttl_ms=0, cache_scope="public")

    async def call_tool(
        self, params: structs.CallToolRequestParams, ctx: typedmcp.Context
    ) -> structs.CallToolResult | structs.InputRequiredResult:
        if params.name not in TOOLS:
            raise typedmcp.InvalidParamsError(f"unknown tool: {params.name}", {"name": params.name})
        _, function = TOOLS[params.name]
        return result_of(await function(Call(self, params, ctx)))

    async def list_prompts(
        self, _params: structs.PaginatedRequestParams, _ctx: typedmcp.Context
    ) -> structs.ListPromptsResult:
        prompts = listed(PROMPTS, self.hidden)
        return structs.ListPromptsResult(prompts=prompts, result_type="complete", ttl_ms=0, cache_scope="public")

    async def get_prompt(
        self, params: structs.GetPromptRequestParams, ctx: typedmcp.Context
    ) -> structs.GetPromptResult:
        if params.name not in PROMPTS:
            raise typedmcp.InvalidParamsError(f"unknown prompt: {params.name}", {"name": params.name})
        described, function = PROMPTS[params.name]
        arguments = params.arguments or {}
        for wanted in described.arguments or []:
            if wanted.name not in arguments:
                raise typedmcp.InvalidParamsError(f"arguments.{wanted.name}: required, but missing")
        messages = await function(arguments, ctx)
        return structs.GetPromptResult(messages=messages, description=described.description, result_type="complete")

    async def list_resources(
        self, _params: structs.PaginatedRequestParams, _ctx: typedmcp.Context
    ) -> structs.ListResourcesResult:
        return structs.ListResourcesResult(
            resources=RESOURCES, result_type="complete", ttl_ms=60_000, cache_scope="public"
        )

    async def list_resource_templates(
        self, _params: structs.PaginatedRequestParams, _ctx: typedmcp.Context
    ) -> structs.ListResourceTemplatesResult:
        return structs.ListResourceTemplatesResult(
            resource_templates=TEMPLATES, result_type="complete", ttl_ms=60_000, cache_scope="public"
        )

    async def read_resource(
        self, params: structs.ReadResourceRequestParams, _ctx: typedmcp.Context
    ) -> structs.ReadResourceResult:
        contents = self._contents(params.uri)
        return structs.ReadResourceResult(contents=[contents], result_type="complete", ttl_ms=0, cache_scope="private")

    def _contents(self, uri: str) -> structs.TextResourceContents | structs.BlobResourceContents:
        if uri == STATIC_BINARY:
            return structs.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        if found := FROM_TEMPLATE.fullmatch(uri):
            data = {"id": found["id"], "templateTest": True, "data": f"Data for ID: {found['id']}"}
            return structs.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
        texts = {
            STATIC_TEXT: "This is the content of the static text resource.",
            WATCHED: f"Changed {self.updates} time(s).",
        }
        if uri not in texts:
            raise typedmcp.ResourceNotFoundError(uri)
        return structs.TextResourceContents(uri=uri, mime_type="text/plain", text=texts[uri])

    async def complete(self, params: structs.CompleteRequestParams, _ctx: typedmcp.Context) -> structs.CompleteResult:
        of = params.ref.name if isinstance(params.ref, structs.PromptReference) else params.ref.uri
        known = COMPLETIONS.get((of, params.argument.name), [])
        values = [value for value in known if value.startswith(params.argument.value)]
        completion = structs.CompleteResultCompletion(values=values, total=len(values), has_more=False)
        return structs.CompleteResult(completion=completion, result_type="complete")


ABOUT: dict[str, Any] = {
    "name": "everything",
    "version": "1",
    "instructions": "Call anything; nothing is real.",
    "extensions": [TASKS],
}


def serve_http(host: str, port: int) -> None:
    """Serve over HTTP, and print the address as soon as connections are accepted."""
    from typedmcp_http import UvicornServer

    app = typedmcp.asgi(Everything(), path="/mcp", sse_path="/sse", **ABOUT)
    with socket.create_server((host, port)) as listening:
        print(f"http://{host}:{listening.getsockname()[1]}", flush=True)
        UvicornServer(app, host, port).run(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="a free one without")
    options = parser.parse_args()
    if options.transport == "stdio":
        typedmcp.serve(Everything(), **ABOUT)
    else:
        serve_http(options.host, options.port)


if __name__ == "__main__":
    main()
