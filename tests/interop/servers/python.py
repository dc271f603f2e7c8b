"""A server that offers the content of `offer.json`, with the low-level API of the official Python SDK.

    python python.py [http|sse]

Over HTTP it prints its URL, and ends with its standard input. It runs in an environment of its own, with `mcp` 1.x or
2.x. `Older` and `Newer` contain the differences; everything else is plain JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import socket
import sys
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

types: Any = importlib.import_module("mcp.types")  # by name: type checkers run where it is not installed
lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
exceptions: Any = importlib.import_module("mcp.shared.exceptions")
stdio_server: Any = importlib.import_module("mcp.server.stdio").stdio_server

warnings.simplefilter("ignore")  # it deprecates what older revisions have

OFFER: dict[str, Any] = json.loads((Path(__file__).parent / "offer.json").read_text(encoding="utf-8"))
LEVELS: list[str] = OFFER["levels"]
MODERN = "2026-07-28"

Json = dict[str, Any]
Handler = Callable[["Call", Json], Awaitable[Json]]
HANDLERS: dict[str, Handler] = {}
TOOLS: dict[str, Handler] = {}


class State:
    """The state of the server."""

    cancelled = 0
    roots_changes = 0
    watched = 0
    level = "debug"


class Call:
    """A call in progress: notifications and requests to the client."""

    is_modern = False

    async def log(self, level: str) -> None:
        raise NotImplementedError

    async def progress(self, done: int, total: int, message: str) -> None:
        raise NotImplementedError

    async def ask(self, question: Json) -> Json:
        raise NotImplementedError

    async def changed(self, what: str) -> None:
        raise NotImplementedError

    def fail(self, code: int, message: str, data: Any) -> NoReturn:
        raise NotImplementedError


def handler(method: str) -> Callable[[Handler], Handler]:
    return lambda function: HANDLERS.setdefault(method, function)


def tool(function: Handler) -> Handler:
    return TOOLS.setdefault(function.__name__, function)


def page(params: Json, member: str, items: list[Json]) -> Json:
    start = int(params.get("cursor", "from 0").removeprefix("from "))
    end = start + OFFER["page"]
    return {member: items[start:end], **({"nextCursor": f"from {end}"} if end < len(items) else {})}


def listing(method: str, member: str, name: str) -> None:
    async def lists(_call: Call, params: Json) -> Json:
        return page(params, member, OFFER[name])

    HANDLERS[method] = lists


listing("tools/list", "tools", "tools")
listing("resources/list", "resources", "resources")
listing("resources/templates/list", "resourceTemplates", "templates")
listing("prompts/list", "prompts", "prompts")


@handler("tools/call")
async def call_tool(call: Call, params: Json) -> Json:
    name = params["name"]
    if name in OFFER["results"]:
        result: Json = OFFER["results"][name]
        return result
    if name in OFFER["questions"]:
        return await ask_in_rounds(call, params, OFFER["questions"][name], value_result)
    if name not in TOOLS:
        call.fail(-32602, f"Unknown tool: {name}", {"name": name})
    return await TOOLS[name](call, params.get("arguments") or {})


async def ask_in_rounds(call: Call, params: Json, rounds: list[Json], give: Callable[[Json], Json]) -> Json:
    """Request all input, and return the result made of the answers."""
    if not call.is_modern:
        return give({key: await call.ask(question) for asked in rounds for key, question in asked.items()})
    answers: Json = {**json.loads(params.get("requestState") or "{}"), **(params.get("inputResponses") or {})}
    for asked in rounds:
        if any(key not in answers for key in asked):
            return {"inputRequests": asked, "requestState": json.dumps(answers)}
    return give(answers)


def value_result(value: Any) -> Json:
    text = json.dumps(value, ensure_ascii=False)  # for revisions without structured content
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"value": value}}


@tool
async def echo(_call: Call, arguments: Json) -> Json:
    return value_result(arguments["value"])


@tool
async def progress(call: Call, _arguments: Json) -> Json:
    for done in range(1, 6):
        await call.progress(done, 5, f"step {done}")
    return value_result("done")


@tool
async def wait(call: Call, _arguments: Json) -> Json:
    await call.progress(0, 1, "waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        State.cancelled += 1
        raise
    raise AssertionError


@tool
async def cancelled(_call: Call, _arguments: Json) -> Json:
    return value_result(State.cancelled)


@tool
async def log(call: Call, _arguments: Json) -> Json:
    for level in LEVELS:
        await call.log(level)
    return value_result("logged")


@tool
async def change(call: Call, arguments: Json) -> Json:
    State.watched += arguments["what"] == "test://watched"
    await call.changed(arguments["what"])
    return value_result("changed")


@tool
async def roots_changes(_call: Call, _arguments: Json) -> Json:
    return value_result(State.roots_changes)


@tool
async def broken(call: Call, _arguments: Json) -> Json:
    call.fail(-31999, "I'm a teapot", {"short": True, "stout": [1, None]})


@tool
async def crash(_call: Call, _arguments: Json) -> Json:
    os._exit(3)


@handler("resources/read")
async def read(call: Call, params: Json) -> Json:
    uri = params["uri"]
    if uri == "test://watched":
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"changed {State.watched} time(s)"}]}
    if uri == "test://asked":
        return await ask_in_rounds(
            call,
            params,
            OFFER["questions"]["roots"],
            lambda answers: {"contents": [{"uri": uri, "text": answers["folders"]["roots"][0]["uri"]}]},
        )
    if uri.startswith("test://item/"):
        text = f"item {uri.removeprefix('test://item/')}"
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}
    if uri not in OFFER["contents"]:
        call.fail(-32602 if call.is_modern else -32002, f"Resource not found: {uri}", {"uri": uri})
    return {"contents": OFFER["contents"][uri]}


@handler("prompts/get")
async def get_prompt(call: Call, params: Json) -> Json:
    name: str = params["name"]
    arguments: Json = params.get("arguments") or {}
    if name == "greet":
        text = f"Hello {arguments['name']}, {arguments.get('style', 'plainly')}."
        return {"description": "Greets somebody.", "messages": [user_message(text)]}
    if name == "asked":
        return await ask_in_rounds(
            call,
            params,
            OFFER["questions"]["rounds"],
            lambda answers: {"messages": [user_message(f"I like {answers['second']['content']['color']}.")]},
        )
    if name not in OFFER["messages"]:
        call.fail(-32602, f"Unknown prompt: {name}", {"name": name})
    return {"messages": OFFER["messages"][name]}


def user_message(text: str) -> Json:
    return {"role": "user", "content": {"type": "text", "text": text}}


@handler("completion/complete")
async def complete(_call: Call, params: Json) -> Json:
    value = params["argument"]["value"]
    if params["ref"]["type"] == "ref/prompt":
        values = [style for style in OFFER["styles"] if style.startswith(value)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}
    context: Json = params.get("context", {})
    start = context.get("arguments", {}).get("prefix", "")
    return {"completion": {"values": [f"{start}{value}{n}" for n in range(100)], "total": 150, "hasMore": True}}


@handler("logging/setLevel")
async def set_level(_call: Call, params: Json) -> Json:
    State.level = params["level"]
    return {}


@handler("resources/subscribe")
async def subscribe(_call: Call, _params: Json) -> Json:
    return {}


@handler("resources/unsubscribe")
async def unsubscribe(_call: Call, _params: Json) -> Json:
    return {}


def plain(value: Any) -> Any:
    """Convert a model of the SDK to JSON."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


NAMES = {
    "completion/complete": "Complete",
    "logging/setLevel": "SetLevel",
    "prompts/get": "GetPrompt",
    "prompts/list": "ListPrompts",
    "resources/list": "ListResources",
    "resources/read": "ReadResource",
    "resources/subscribe": "Subscribe",
    "resources/templates/list": "ListResourceTemplates",
    "resources/unsubscribe": "Unsubscribe",
    "tools/call": "CallTool",
    "tools/list": "ListTools",
}
"""Names of the SDK for the methods."""


async def in_session(session: Any, question: Json, id: Any) -> Json:
    """Request input as in older revisions."""
    method, params = question["method"], dict(question.get("params", {}))
    if method == "roots/list":
        return cast(Json, plain(await session.list_roots()))
    if params.get("mode") == "url":
        return cast(Json, plain(await session.elicit_url(params["message"], params["url"], "visit-1", id)))
    if method == "elicitation/create":
        return cast(Json, plain(await session.elicit_form(params["message"], params["requestedSchema"], id)))
    messages = [types.SamplingMessage.model_validate(message) for message in params["messages"]]
    preferences = params.get("modelPreferences")
    answer = await session.create_message(
        messages,
        max_tokens=params["maxTokens"],
        system_prompt=params.get("systemPrompt"),
        temperature=params.get("temperature"),
        stop_sequences=params.get("stopSequences"),
        model_preferences=preferences and types.ModelPreferences.model_validate(preferences),
    )
    return cast(Json, plain(answer))


async def notify_changed(session: Any, what: str) -> None:
    """Announce a change as in older revisions."""
    if what == "tools":
        await session.send_tool_list_changed()
    elif what == "prompts":
        await session.send_prompt_list_changed()
    elif what == "resources":
        await session.send_resource_list_changed()
    else:
        await session.send_resource_updated(what)


class Older(Call):
    """A call in version 1 of the SDK."""

    def __init__(self, context: Any) -> None:
        self.session, self.id, self.meta = context.session, context.request_id, context.meta

    async def log(self, level: str) -> None:
        if LEVELS.index(level) >= LEVELS.index(State.level):
            await self.session.send_log_message(level, {"level": level}, "offer", self.id)

    async def progress(self, done: int, total: int, message: str) -> None:
        if self.meta is not None and self.meta.progressToken is not None:
            await self.session.send_progress_notification(self.meta.progressToken, done, total, message)

    async def ask(self, question: Json) -> Json:
        return await in_session(self.session, question, self.id)

    async def changed(self, what: str) -> None:
        await notify_changed(self.session, what)

    def fail(self, code: int, message: str, data: Any) -> NoReturn:
        raise exceptions.McpError(types.ErrorData(code=code, message=message, data=data))


def older() -> Any:
    server = lowlevel.Server(OFFER["info"]["name"], OFFER["info"]["version"], OFFER["instructions"])

    def register(method: str, function: Handler) -> None:
        request = getattr(types, f"{NAMES[method]}Request")
        result = getattr(types, f"{NAMES[method]}Result", types.EmptyResult)

        async def serve(asked: Any) -> Any:
            params: Json = {} if asked.params is None else plain(asked.params)
            return types.ServerResult(result.model_validate(await function(Older(server.request_context), params)))

        server.request_handlers[request] = serve

    async def roots_changed(_notification: Any) -> None:
        State.roots_changes += 1

    for method, function in HANDLERS.items():
        register(method, function)
    server.notification_handlers[types.RootsListChangedNotification] = roots_changed
    return server


class Newer(Call):
    """A call in version 2 of the SDK."""

    def __init__(self, context: Any, bus: Any) -> None:
        self.context, self.session, self.bus = context, context.session, bus
        self.is_modern = context.protocol_version == MODERN

    async def log(self, level: str) -> None:
        if self.is_modern or LEVELS.index(level) >= LEVELS.index(State.level):
            await self.session.send_log_message(level, {"level": level}, "offer", self.context.request_id)

    async def progress(self, done: int, total: int, message: str) -> None:
        await self.session.report_progress(done, total, message)

    async def ask(self, question: Json) -> Json:
        return await in_session(self.session, question, self.context.request_id)

    async def changed(self, what: str) -> None:
        if not self.is_modern:
            await notify_changed(self.session, what)
            return
        events: Any = importlib.import_module("mcp.server.subscriptions")
        kinds = {
            "tools": events.ToolsListChanged, "prompts": events.PromptsListChanged,
            "resources": events.ResourcesListChanged,
        }  # fmt: skip
        await self.bus.publish(kinds[what]() if what in kinds else events.ResourceUpdated(uri=what))

    def fail(self, code: int, message: str, data: Any) -> NoReturn:
        raise exceptions.MCPError(code, message, data)


def newer() -> Any:
    subscriptions: Any = importlib.import_module("mcp.server.subscriptions")
    bus = subscriptions.InMemorySubscriptionBus()

    async def roots_changed(_context: Any, _params: Any) -> None:
        State.roots_changes += 1

    server = lowlevel.Server(
        OFFER["info"]["name"],
        version=OFFER["info"]["version"],
        title=OFFER["info"]["title"],
        instructions=OFFER["instructions"],
        on_subscriptions_listen=subscriptions.ListenHandler(bus),
        on_roots_list_changed=roots_changed,
    )

    def register(method: str, function: Handler) -> None:
        kind = types.PaginatedRequestParams if method.endswith("/list") else None
        kind = kind or getattr(types, f"{NAMES[method]}RequestParams")
        result = getattr(types, f"{NAMES[method]}Result", types.EmptyResult)

        async def serve(context: Any, params: Any) -> Any:
            said = await function(Newer(context, bus), {} if params is None else plain(params))
            return (types.InputRequiredResult if "inputRequests" in said else result).model_validate(said)

        server.add_request_handler(method, kind, serve)

    for method, function in HANDLERS.items():
        register(method, function)
    return server


CHANGES: Any = lowlevel.NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)


async def main(transport: str) -> None:
    server = newer() if hasattr(types, "SubscriptionsListenRequest") else older()
    if transport != "stdio":
        await serve_http(server, transport)
        return
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options(CHANGES))


async def serve_http(server: Any, transport: str) -> None:
    """Serve on a free port until standard input ends."""
    uvicorn: Any = importlib.import_module("uvicorn")
    routed = streamable(server) if transport == "http" else two_endpoints(server)
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/{'mcp' if transport == 'http' else 'sse'}", flush=True)
    serving = uvicorn.Server(uvicorn.Config(routed, log_level="error", timeout_graceful_shutdown=1))
    running = asyncio.create_task(serving.serve([listening]))
    await asyncio.to_thread(sys.stdin.read)
    serving.should_exit = True
    await running


def streamable(server: Any) -> Any:
    """Return the application with the single endpoint of newer revisions."""
    server.create_initialization_options = partial(server.create_initialization_options, CHANGES)
    if hasattr(server, "streamable_http_app"):
        return server.streamable_http_app()
    manager: Any = importlib.import_module("mcp.server.streamable_http_manager").StreamableHTTPSessionManager(server)
    applications: Any = importlib.import_module("starlette.applications")
    routing: Any = importlib.import_module("starlette.routing")

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    class Endpoint:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await manager.handle_request(scope, receive, send)

    return applications.Starlette(routes=[routing.Route("/mcp", Endpoint())], lifespan=lifespan)


def two_endpoints(server: Any) -> Any:
    """Return the application with the two endpoints of 2024-11-05."""
    events = importlib.import_module("mcp.server.sse").SseServerTransport("/messages/")
    applications: Any = importlib.import_module("starlette.applications")
    routing: Any = importlib.import_module("starlette.routing")

    class Events:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async with events.connect_sse(scope, receive, send) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options(CHANGES))

    routes = [routing.Route("/sse", Events(), methods=["GET"]), routing.Mount("/messages/", events.handle_post_message)]
    return applications.Starlette(routes=routes)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "stdio"))
