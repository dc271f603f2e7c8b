"""The scenario for the official Python client: it prints its observations as a JSON document.

    python python_client.py modern|legacy stdio COMMAND [ARGUMENT …]
    python python_client.py modern|legacy http|sse URL

It runs in an environment of its own, with `mcp` 1.x or 2.x. `Older` and `Newer` contain the differences.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, cast

mcp: Any = importlib.import_module("mcp")  # by name: type checkers run where it is not installed
types: Any = importlib.import_module("mcp.types")

warnings.simplefilter("ignore")  # it deprecates what older revisions have

WATCHED = "test://watched-resource"
NAMES = {"name": "Ada", "color": "green", "ok": True, "context": "tea", "username": "ada", "email": "ada@example.org"}
"""The content that the user fills into any form."""
FORMS: dict[str, Any] = {
    **NAMES, "age": 36, "score": 1.5, "status": "pending", "verified": False,
    "untitledSingle": "option2", "titledSingle": "value1", "legacyEnum": "opt2",
    "untitledMulti": ["option1", "option3"], "titledMulti": ["value1", "value2"],
}  # fmt: skip
ANSWER = "Paris, of course."
ROOT = "file:///home/ada/project"

HIDDEN = ("_meta", "resultType", "ttlMs", "cacheScope", "task")
"""Members of results that belong to the protocol and not to the content."""

Step = Callable[["Peer"], Awaitable[Any]]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """Convert a model of the client to JSON, without the members that belong to the protocol."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: plain(member) for key, member in members.items() if key not in HIDDEN}
    if isinstance(value, list):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


class Peer:
    """The client under test, with the notifications and requests that it has received."""

    session: Any
    watched = WATCHED
    """The resource that the client subscribes to."""
    forms = FORMS
    """The content that the user fills into forms."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.logged: list[Any] = []
        self.changed: list[str] = []

    # Responses

    async def sample(self, _context: Any, params: Any) -> Any:
        self.asked.append(plain(params))
        content = types.TextContent(type="text", text=ANSWER)
        return types.CreateMessageResult(role="assistant", content=content, model="a-model")

    async def elicit(self, _context: Any, params: Any) -> Any:
        asked = plain(params)
        self.asked.append(asked)
        if asked.get("mode") == "url":
            return types.ElicitResult(action="accept")
        content = {name: self.forms[name] for name in asked["requestedSchema"]["properties"] if name in self.forms}
        return types.ElicitResult(action="accept", content=content)

    async def list_roots(self, _context: Any) -> Any:
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="project")])

    async def log(self, params: Any) -> None:
        self.logged.append([params.level, params.data, params.logger])

    async def hear(self, message: Any) -> None:
        message = getattr(message, "root", message)
        method = getattr(message, "method", "")
        if method == "notifications/resources/updated":
            self.changed.append(str(message.params.uri))
        elif method.endswith("list_changed"):
            self.changed.append(method.split("/")[1])

    @property
    def callbacks(self) -> dict[str, Any]:
        return {
            "sampling_callback": self.sample,
            "elicitation_callback": self.elicit,
            "list_roots_callback": self.list_roots,
            "logging_callback": self.log,
            "message_handler": self.hear,
        }

    # Actions

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        return plain(await self.session.call_tool(name, arguments or {}, **options))

    async def text(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
        return "".join(block["text"] for block in (await self.call(name, arguments, **options))["content"])

    async def read(self, uri: str) -> Any:
        return plain(await self.session.read_resource(self.uri(uri)))["contents"]

    def uri(self, text: str) -> Any:
        return text


def sse(url: str) -> Any:
    return importlib.import_module("mcp.client.sse").sse_client(url)


class Older(Peer):
    """`mcp` 1.x: one session class, a URI type, and cancellation by hand."""

    @asynccontextmanager
    async def connected(self, _mode: str, transport: str, target: list[str]) -> AsyncGenerator[Any, None]:
        if transport == "stdio":
            stdio: Any = importlib.import_module("mcp.client.stdio")
            streams = stdio.stdio_client(mcp.StdioServerParameters(command=target[0], args=target[1:]))
        elif transport == "http":
            http: Any = importlib.import_module("mcp.client.streamable_http")
            streams = http.streamable_http_client(*target)
        else:
            streams = sse(*target)
        async with streams as (read, write, *_), mcp.ClientSession(read, write, **self.callbacks) as self.session:
            yield plain(await self.session.initialize())

    def uri(self, text: str) -> Any:
        return importlib.import_module("pydantic").AnyUrl(text)

    async def cancel(self, call: asyncio.Task[Any]) -> None:
        params = types.CancelledNotificationParams(requestId=self.session._request_id - 1, reason="enough")
        await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        call.cancel()

    async def request(self, method: str) -> Any:
        root = types.Request(method=method, params=None)
        return await self.session.send_request(types.ClientRequest.model_construct(root=root), types.EmptyResult)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None, None]:
        await self.session.subscribe_resource(self.uri(self.watched))
        yield
        await self.session.unsubscribe_resource(self.uri(self.watched))

    async def logging(self, level: str) -> list[Any]:
        await self.session.set_logging_level(level)
        return await self._logged({})

    async def _logged(self, options: dict[str, Any]) -> list[Any]:
        self.logged.clear()
        await self.call("test_logging_tool", **options)
        await asyncio.sleep(0.1)
        return list(self.logged)


class Newer(Older):
    """`mcp` 2.x: a client that negotiates, and subscribes to changes and logs as in the newest revision."""

    is_modern: bool
    modern_mode = "auto"
    """How the client negotiates the newest revision: "auto", or the revision itself."""

    @asynccontextmanager
    async def connected(self, mode: str, transport: str, target: list[str]) -> AsyncGenerator[Any, None]:
        self.is_modern = mode == "modern"
        if transport == "stdio":
            server = mcp.StdioServerParameters(command=target[0], args=target[1:])
        else:
            server = target[0] if transport == "http" else sse(*target)
        client = mcp.Client(server, mode=self.modern_mode if self.is_modern else "legacy", cache=None, **self.callbacks)
        async with client as self.session:
            yield {
                "protocolVersion": client.protocol_version,
                "serverInfo": plain(client.server_info),
                "capabilities": plain(client.server_capabilities),
                "instructions": client.instructions,
            }

    def uri(self, text: str) -> Any:
        return text

    async def cancel(self, call: asyncio.Task[Any]) -> None:
        call.cancel()

    async def request(self, method: str) -> Any:
        return await self.session.session.send_request(types.Request(method=method, params=None), types.EmptyResult)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None, None]:
        if not self.is_modern:
            async with super().listening():
                yield
            return
        wanted = {"tools_list_changed": True, "prompts_list_changed": True, "resource_subscriptions": [self.watched]}
        async with self.session.listen(**wanted) as subscription:
            hearing = asyncio.create_task(self._hear_all(subscription))
            yield
            hearing.cancel()

    async def _hear_all(self, subscription: Any) -> None:
        self.changed.clear()
        names = {"ToolsListChanged": "tools", "PromptsListChanged": "prompts"}
        async for event in subscription:
            self.changed.append(names.get(type(event).__name__) or event.uri)

    async def hear(self, message: Any) -> None:
        if not self.is_modern:  # otherwise the subscription tells
            await super().hear(message)

    async def logging(self, level: str) -> list[Any]:
        if not self.is_modern:
            return await super().logging(level)
        return await self._logged({"meta": {"io.modelcontextprotocol/logLevel": level}})


# The steps of the scenario


@step
async def lists(peer: Peer) -> Any:
    session = peer.session
    return {
        "tools": plain(await session.list_tools())["tools"],
        "resources": plain(await session.list_resources())["resources"],
        "templates": plain(await session.list_resource_templates())["resourceTemplates"],
        "prompts": plain(await session.list_prompts())["prompts"],
    }


@step
async def calls(peer: Peer) -> Any:
    names = ("simple_text", "image_content", "audio_content", "embedded_resource", "multiple_content_types")
    return {name: await peer.call(f"test_{name}") for name in (*names, "structured_content", "error_handling")}


@step
async def reads(peer: Peer) -> Any:
    uris = ("test://static-text", "test://static-binary", "test://template/123/data")
    return {uri: await peer.read(uri) for uri in uris}


@step
async def prompts(peer: Peer) -> Any:
    wanted: dict[str, dict[str, str]] = {
        "test_simple_prompt": {},
        "test_prompt_with_arguments": {"arg1": "hello", "arg2": "world"},
        "test_prompt_with_embedded_resource": {"resourceUri": "test://example"},
        "test_prompt_with_image": {},
        "test_input_required_result_prompt": {},
    }
    return {
        name: plain(await peer.session.get_prompt(name, arguments))["messages"] for name, arguments in wanted.items()
    }


@step
async def completions(peer: Peer) -> Any:
    template = getattr(types, "ResourceTemplateReference")  # noqa: B009  # no attribute of a module that is Any
    of_prompt = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    of_template = template(type="ref/resource", uri="test://template/{id}/data")
    return {
        "prompt": plain(await peer.session.complete(of_prompt, {"name": "arg1", "value": "par"}))["completion"],
        "template": plain(await peer.session.complete(of_template, {"name": "id", "value": "12"}))["completion"],
    }


@step
async def progress(peer: Peer) -> Any:
    seen: list[Any] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        seen.append([done, total, message])

    await peer.call("test_tool_with_progress", progress_callback=hear)
    return seen


@step
async def cancelling(peer: Any) -> Any:
    before = await peer.text("test_cancelled_waits")
    running = asyncio.Event()

    async def hear(*_progress: Any) -> None:
        running.set()

    call = asyncio.create_task(peer.session.call_tool("test_wait", {}, progress_callback=hear))
    await running.wait()
    await peer.cancel(call)
    with suppress(asyncio.CancelledError):
        await call
    return {"before": before, "after": await changed_text(peer, "test_cancelled_waits", before)}


async def changed_text(peer: Peer, tool: str, before: str) -> str:
    """Call a tool until its text differs from `before`, since notifications take time. Returns the last text."""
    for _ in range(100):
        if (now := await peer.text(tool)) != before:
            return now
        await asyncio.sleep(0.02)
    return before


@step
async def asking(peer: Peer) -> Any:
    arguments = {"test_sampling": {"prompt": "Say something"}, "test_elicitation": {"message": "Who are you?"}}
    names = (
        "test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
        "test_input_required_result_elicitation", "test_input_required_result_sampling",
        "test_input_required_result_list_roots", "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
        "test_input_required_result_capabilities",
    )  # fmt: skip
    seen: dict[str, Any] = {}
    for name in names:
        peer.asked.clear()
        seen[name] = {"text": await peer.text(name, arguments.get(name)), "asked": list(peer.asked)}
    return seen


@step
async def logging(peer: Any) -> Any:
    return {level: await peer.logging(level) for level in ("debug", "info", "error")}


@step
async def changes(peer: Any) -> Any:
    before = [contents["text"] for contents in await peer.read(WATCHED)]
    async with peer.listening():
        await asyncio.sleep(0.1)
        for what in ("tool", "prompt", "resource"):
            await peer.call(f"test_trigger_{what}_change")
        await asyncio.sleep(0.3)  # enough for one too many to be heard as well
        heard = list(peer.changed)
    await peer.call("test_trigger_resource_change")
    await asyncio.sleep(0.2)
    after_leaving = peer.changed[len(heard) :]
    tools = plain(await peer.session.list_tools())["tools"]
    late = [tool["name"] for tool in tools if "late" in tool["name"]]
    after = [contents["text"] for contents in await peer.read(WATCHED)]
    return {"heard": heard, "after_leaving": after_leaving, "late": late, "watched": before + after}


@step
async def errors(peer: Any) -> Any:
    attempts: dict[str, Callable[[], Awaitable[Any]]] = {
        "tool": lambda: peer.call("no_such_tool"),
        "argument": lambda: peer.call("test_sampling"),
        "prompt": lambda: peer.session.get_prompt("no_such_prompt", {}),
        "resource": lambda: peer.read("test://no-such-resource"),
        "method": lambda: peer.request("no/such/method"),
    }
    return {name: await refused(attempt) for name, attempt in attempts.items()}


@step
async def rounds(peer: Any) -> Any:
    """Make the rounds one by one, if the revision has them."""
    if not getattr(peer, "is_modern", False):
        return None
    one = "test_input_required_result_elicitation"
    two = "test_input_required_result_multi_round"
    return {"one": await by_hand(peer, one), "two": await by_hand(peer, two), "tampered": await tampered(peer)}


async def by_hand(peer: Any, name: str) -> list[Any]:
    """Call a tool and answer each round. Returns the requested keys, and the final text."""
    seen: list[Any] = []
    options: dict[str, Any] = {}
    while True:
        result = await peer.session.session.call_tool(name, {}, allow_input_required=True, **options)
        if not isinstance(result, types.InputRequiredResult):
            return [*seen, plain(result)["content"][0]["text"]]
        seen.append(sorted(result.input_requests))
        answers = {key: await peer.elicit(None, request.params) for key, request in result.input_requests.items()}
        options = {"input_responses": answers, "request_state": result.request_state}


async def tampered(peer: Any) -> Any:
    """Return the error for a modified request state."""
    name = "test_input_required_result_tampered_state"
    result = await peer.session.session.call_tool(name, {}, allow_input_required=True)
    altered = ("B" if result.request_state[0] == "A" else "A") + result.request_state[1:]
    return await refused(lambda: peer.session.session.call_tool(name, {}, request_state=altered))


async def refused(attempt: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return {"answered": plain(await attempt())}
    except Exception as error:
        found: Any = getattr(error, "error", None)
        if found is None:
            raise
        return {"code": found.code, "message": found.message, "data": found.data}


async def main(mode: str, transport: str, target: list[str]) -> None:
    peer = Newer() if hasattr(mcp, "Client") else Older()
    async with AsyncExitStack() as stack:
        about = await stack.enter_async_context(peer.connected(mode, transport, target))
        seen = {"client": f"mcp {version('mcp')}", "about": about}
        for name, function in STEPS.items():
            try:
                seen[name] = await asyncio.wait_for(function(peer), 20)
            except Exception as error:
                seen[name] = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
