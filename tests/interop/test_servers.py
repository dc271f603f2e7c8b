"""Our client uses servers of others over stdio: all their features, with exact comparisons."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import subprocess
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import typedmcp
from mcpspec.support.objects import is_object
from tests.cases import each
from tests.interop import install
from tests.interop.servers.started import (
    MODERN,
    OLDER,
    Line,
    Server,
    connected,
    node_server,
    plain,
    processes,
    program_server,
    run,
)
from tests.pairs import pairs
from typedmcp import sync
from typedmcp.client import ChangeEvent, Client, connect, with_defaults
from typedmcp.dialect import structs
from typedmcp.protocol.notifications import LogLevel
from typedmcp.transports.process_parameters import SAFE_ENVIRONMENT
from typedmcp_extensions.tasks import ClientTasks, TaskCalls

pytestmark = pytest.mark.long

SERVERS = Path(__file__).parent / "servers"
MODULES = install.INTEROP / "node" / "node_modules"
OFFICIAL = MODULES / "@modelcontextprotocol"

# Deterministic: the time is always the same, and the log levels follow one after the other.
SETTLED = "Date.prototype.toLocaleTimeString=()=>'noon';let n=0;Math.random=()=>n++%8/8"
EVERYTHING = node_server(
    "everything",
    OFFICIAL / "server-everything" / "dist" / "index.js",
    options=("--import", f"data:text/javascript,{SETTLED.replace('%', '%25')}"),
)
FILESYSTEM = node_server("filesystem", OFFICIAL / "server-filesystem" / "dist" / "index.js")
MEMORY = node_server("memory", OFFICIAL / "server-memory" / "dist" / "index.js")
THINKING = node_server("sequential-thinking", OFFICIAL / "server-sequential-thinking" / "dist" / "index.js")
GIT = Server("git", (str(install.python("servers")), "-m", "mcp_server_git"), MODERN)
TIME = Server(
    "time", (str(install.python("servers")), "-m", "mcp_server_time", "--local-timezone", "Asia/Tokyo"), MODERN
)
TYPESCRIPT = node_server("typescript", SERVERS / "typescript.mjs", str(MODULES), newest=MODERN)
PYTHON_1 = Server("python 1", (str(install.python("py1")), str(SERVERS / "python.py")), OLDER)
PYTHON_2 = Server("python 2", (str(install.python("py2")), str(SERVERS / "python.py")), MODERN)
GO = program_server("go")
JAVA = program_server("java")
RUST = program_server("rust")

ANSWER = structs.CreateMessageResult(
    role="assistant", model="a-model", stop_reason="endTurn", content=structs.TextContent(text="Paris, of course.")
)


def text(result: structs.CallToolResult) -> str:
    """Return the only text of a result."""
    (content,) = result.content
    assert isinstance(content, structs.TextContent)
    return content.text


# Every server

EVERY = [EVERYTHING, FILESYSTEM, MEMORY, THINKING, GIT, TIME, TYPESCRIPT, PYTHON_1, PYTHON_2, GO, JAVA, RUST]
every_server = pytest.mark.parametrize("server", EVERY, ids=str)

FIRST: dict[str, tuple[str, dict[str, Any], str, int]] = {
    "everything": ("echo", {"message": "ü"}, "Echo: ü", 13),
    "filesystem": ("list_directory", {"path": "HOME"}, "[FILE] a.txt", 14),
    "memory": ("read_graph", {}, '{\n  "entities": [],\n  "relations": []\n}', 9),
    "sequential-thinking": (
        "sequentialthinking",
        {"thought": "Hm.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False},
        '"thoughtHistoryLength": 1',
        1,
    ),
    "git": ("git_log", {"repo_path": "HOME"}, "Commit history:\nCommit: ", 12),
    "time": (
        "convert_time",
        {"source_timezone": "UTC", "time": "00:30", "target_timezone": "Asia/Kathmandu"},
        '"time_difference": "+5.75h"',
        2,
    ),
    "typescript": ("text", {}, "Grüße, 世界!", 19),
    "python 1": ("text", {}, "Grüße, 世界!", 19),
    "python 2": ("text", {}, "Grüße, 世界!", 19),
    "go": ("text", {}, "Grüße, 世界!", 19),
    "java": ("text", {}, "Grüße, 世界!", 19),
    "rust": ("text", {}, "Grüße, 世界!", 19),
}
"""For each server a tool, its arguments, a part of its text, and the number of tools."""


def surroundings(server: Server, home: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return arguments and environment for a server in a folder with a committed text."""
    (home / "a.txt").write_text("one\n", encoding="utf-8")
    if server is GIT:
        commit(home, "Begin")
    arguments = {"filesystem": (str(home),), "git": ("--repository", str(home))}
    return arguments.get(server.name, ()), {"MEMORY_FILE_PATH": str(home / "memory.jsonl")}


def first_call(server: Server, home: Path) -> tuple[str, dict[str, Any]]:
    tool, arguments, _, _ = FIRST[server.name]
    return tool, {name: str(home) if value == "HOME" else value for name, value in arguments.items()}


@every_server
def test_the_client_finds_the_server_s_revision_and_ends_its_process(server: Server, tmp_path: Path) -> None:
    async def main() -> None:
        arguments, env = surroundings(server, tmp_path)
        async with connected(server, *arguments, env=env) as client:
            assert client.revision == server.newest
            tool, given = first_call(server, tmp_path)
            assert FIRST[server.name][2] in text(await client.call_tool(tool, given))

    run(main)


@every_server
def test_the_blocking_client_lists_and_calls_and_ends_the_server_s_process(server: Server, tmp_path: Path) -> None:
    arguments, env = surroundings(server, tmp_path)
    tool, given = first_call(server, tmp_path)
    with sync.connect(server.parameters(*arguments, mark=str(tmp_path), **env), timeout=60.0) as client:
        assert len(processes(str(tmp_path))) == Path("/proc/self/environ").exists()
        assert len(list(client.tools())) == FIRST[server.name][3]
        assert FIRST[server.name][2] in text(client.call_tool(tool, given))
    assert processes(str(tmp_path)) == []


@pytest.mark.parametrize("revisions", [[OLDER, MODERN], [MODERN]])
def test_a_client_with_one_revision_does_not_affect_other_clients(revisions: list[str]) -> None:
    async def main() -> None:
        async with connected(TYPESCRIPT, revisions=[OLDER]):
            pass
        async with connect(TYPESCRIPT.parameters(), revisions=revisions) as client:
            assert client.revision == MODERN

    run(main)


@pytest.mark.parametrize("server", [TYPESCRIPT, PYTHON_1, PYTHON_2, GO, JAVA, RUST], ids=str)
def test_a_server_that_starts_slower_than_the_probe_takes_is_still_understood(
    server: Server,
) -> None:
    async def main() -> None:
        async with connected(server, probe=0.01, odd=("late message",)) as client:
            assert plain(await client.call_tool("text")) == OFFER["results"]["text"]

    run(main)


# Servers on the official SDKs: all features, from one description that all of them read

OFFER: dict[str, Any] = json.loads((SERVERS / "offer.json").read_text(encoding="utf-8"))
QUESTIONS: dict[str, list[dict[str, Any]]] = OFFER["questions"]
ROOT = "file:///home/ada/project"

STDIO, HTTP, SSE = "stdio", "http", "sse"
SPOKEN = {
    TYPESCRIPT: (OLDER, MODERN), PYTHON_1: (OLDER,), PYTHON_2: (OLDER, MODERN),
    GO: (OLDER, MODERN), JAVA: (OLDER,), RUST: (OLDER, MODERN),
}  # fmt: skip
SDKS = pairs(
    (server, revision, transport)
    for transport in (STDIO, HTTP, SSE)
    for server, revisions in SPOKEN.items()
    for revision in revisions
    if transport != SSE or (server in (PYTHON_1, PYTHON_2) and revision == OLDER)
)
"""Every server, revision and transport with every other one that it occurs with."""


class Sdk(Line):
    """A connection to a server on an official SDK, with its requests and notifications."""

    def __init__(self, server: Server, revision: str) -> None:
        self.asked: list[Any] = []
        self.logged: list[structs.LoggingMessageNotificationParams] = []
        options = {
            "sample": self.sample,
            "elicit": self.elicit,
            "elicit_url": self.consent,
            "on_log": self.logged.append,
            "roots": [ROOT],
            "check_capabilities": server.name != PYTHON_1.name,  # it never declares subscriptions to resources
        }
        # Responses to cancelled calls arrive all the same, and Go leaves out an empty text.
        odd = ("late message", "invalid data") if server is GO else ("late message",)
        super().__init__(server, revision, odd=odd, **options)

    def begin_case(self) -> None:
        """Forget what was asked and logged before."""
        self.asked.clear()
        self.logged.clear()

    async def sample(self, params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
        self.asked.append(plain(params))
        return ANSWER

    def consent(self, params: structs.ElicitRequestURLParams) -> bool:
        self.asked.append(plain(params))
        return True

    def elicit(self, params: Any) -> Any:
        asked = plain(params)
        self.asked.append(asked)
        if params.message == "Who are you?":
            return with_defaults(params, {"age": 36})
        fields = asked.get("requestedSchema", {}).get("properties", {})
        return {name: {"name": "Ada", "color": "green"}[name] for name in fields}

    async def value(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        """Return the structured content of a tool."""
        result = await self.client.call_tool(tool, arguments, **options)
        said: Any = result.structured_content
        return said["value"]


@pytest.fixture(scope="module", params=[line[:2] for line in SDKS if line[2] == STDIO], ids=str)
def opened_sdk(request: pytest.FixtureRequest) -> Generator[Sdk]:
    line = Sdk(*request.param)
    yield line
    line.close()


@pytest.fixture
def sdk(opened_sdk: Sdk) -> Sdk:
    opened_sdk.begin_case()
    return opened_sdk


def test_the_client_receives_the_server_s_name_and_version(sdk: Sdk) -> None:
    known = sdk.client.server
    titled = sdk.server.name != PYTHON_1.name  # which has no place for a title
    info = {name: value for name, value in OFFER["info"].items() if titled or name != "title"}
    assert known.info is not None
    assert structs.to_builtins(known.info) == info
    assert known.instructions == OFFER["instructions"]
    assert known.revision == sdk.revision
    experimental: dict[str, Any] = {"experimental": {}} if sdk.server.name == PYTHON_1.name else {}
    subscribe = sdk.server.name != PYTHON_1.name  # which says so whatever it does
    assert structs.to_builtins(known.capabilities) == {
        **experimental,
        "completions": {},
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": subscribe},
        "tools": {"listChanged": True},
    }


def in_order(what: str, items: list[Any]) -> list[Any]:
    """Return the items of a list in the order of their names."""
    key = {"resources": "uri", "templates": "uriTemplate"}.get(what, "name")
    return sorted(items, key=lambda item: item[key])


@each("what", ["tools", "resources", "templates", "prompts"])
def test_all_pages_of_a_list_arrive_with_all_members(sdk: Sdk, what: str) -> None:
    async def main() -> None:
        name = "resource_templates" if what == "templates" else what
        pages = getattr(sdk.client, name)()
        items: list[Any] = OFFER[what]
        if sdk.server is GO:  # it sorts, and its types have no difference between false and absent
            items = [without_false(item) for item in in_order(what, items)]
        listed = [structs.to_builtins(item) async for item in pages]
        fetch = getattr(sdk.client, f"list_{name}")
        first = await fetch()
        if sdk.server is JAVA:  # it has no pages, and lists in the order of a hash
            assert (in_order(what, listed), first.next_cursor) == (in_order(what, items), None)
            return
        assert listed == items
        second = await fetch(first.next_cursor)
        size = OFFER["page"]
        both = [structs.to_builtins(item) for page in (first, second) for item in getattr(page, name)]
        assert (len(getattr(first, name)), both) == (size, items[: 2 * size])

    sdk.run(main)


def without_false(item: dict[str, Any]) -> dict[str, Any]:
    """Return a prompt without `false` in its arguments."""
    if "arguments" not in item:
        return item
    arguments = [{key: value for key, value in each.items() if value is not False} for each in item["arguments"]]
    return {**item, "arguments": arguments}


@each("tool", OFFER["results"])
def test_a_call_returns_the_content_of_the_tool(sdk: Sdk, tool: str) -> None:
    async def main() -> None:
        assert plain(await sdk.client.call_tool(tool)) == OFFER["results"][tool]

    sdk.run(main)


@each(
    "value",
    [
        None, True, 0, -7, 2.5, 1e100, 2**53, "", "ü\n\u2028\x00\U0001f388", "x" * 300_000,
        [], {}, [[], {"": [None, {"a": {"b": [1, "2"]}}]}],
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_arguments_arrive_unchanged(sdk: Sdk, value: Any) -> None:
    async def main() -> None:
        assert await sdk.value("echo", {"value": value}) == value

    sdk.run(main)


def test_each_of_many_concurrent_calls_gets_its_own_result(sdk: Sdk) -> None:
    async def main() -> None:
        values = await asyncio.gather(*(sdk.value("echo", {"value": n}) for n in range(100)))
        assert values == list(range(100))

    sdk.run(main)


@each("uri", OFFER["contents"])
def test_a_resource_is_read_unchanged(sdk: Sdk, uri: str) -> None:
    async def main() -> None:
        contents = OFFER["contents"][uri]
        if sdk.server is GO:  # it leaves out an empty text, which the schema requires: the client skips such contents
            contents = [each for each in contents if each.get("text") != ""]
        assert plain(await sdk.client.read_resource(uri)) == {"contents": contents}

    sdk.run(main)


def test_a_resource_of_a_template_is_read(sdk: Sdk) -> None:
    async def main() -> None:
        contents = {"uri": "test://item/12", "mimeType": "text/plain", "text": "item 12"}
        assert plain(await sdk.client.read_resource("test://item/12")) == {"contents": [contents]}

    sdk.run(main)


def test_prompts_contain_their_arguments_and_every_kind_of_content(sdk: Sdk) -> None:
    async def main() -> None:
        for arguments, words in (
            ({"name": "Ada"}, "Hello Ada, plainly."),
            ({"name": "Ada", "style": "funny"}, "Hello Ada, funny."),
        ):
            message = {"role": "user", "content": {"type": "text", "text": words}}
            expected = {"description": "Greets somebody.", "messages": [message]}
            assert plain(await sdk.client.get_prompt("greet", arguments)) == expected
        assert plain(await sdk.client.get_prompt("talk")) == {"messages": OFFER["messages"]["talk"]}

    sdk.run(main)


def test_the_client_receives_completions(sdk: Sdk) -> None:
    async def main() -> None:
        prompt = structs.PromptReference(name="greet")
        found = plain(await sdk.client.complete(prompt, "style", "f"))
        assert {"hasMore": False, **found["completion"]} == {"values": OFFER["styles"], "total": 3, "hasMore": False}
        template = structs.ResourceTemplateReference(uri="test://item/{id}")
        completed = await sdk.client.complete(template, "id", "1", {"prefix": "9"})
        assert plain(completed) == {
            "completion": {"values": [f"91{n}" for n in range(100)], "total": 150, "hasMore": True}
        }

    sdk.run(main)


def test_progress_arrives_in_order(sdk: Sdk) -> None:
    async def main() -> None:
        steps: list[Any] = []

        def on_progress(step: structs.ProgressNotificationParams) -> None:
            steps.append((step.progress, step.total, step.message))

        assert await sdk.value("progress", on_progress=on_progress) == "done"
        assert steps == [(done, 5, f"step {done}") for done in range(1, 6)]

    sdk.run(main)


def test_cancelling_a_call_ends_it_in_the_server(sdk: Sdk) -> None:
    async def main() -> None:
        before = await sdk.value("cancelled")
        started = asyncio.Event()
        call = asyncio.create_task(sdk.client.call_tool("wait", on_progress=lambda _: started.set()))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(typedmcp.RequestTimeoutError, match=r"no answer within 0\.2 s"):
            await sdk.client.call_tool("wait", timeout=0.2)
        if sdk.server is JAVA:  # it ignores cancellations
            assert await sdk.value("cancelled") == before
            return
        while await sdk.value("cancelled") != before + 2:  # over HTTP it is told apart from the next call
            await asyncio.sleep(0.01)

    sdk.run(main)


@each("level", ["emergency", "warning", "debug"])
def test_log_messages_arrive_from_the_requested_level_on(sdk: Sdk, level: Any) -> None:
    async def main() -> None:
        await sdk.client.set_log_level(level)
        await sdk.client.call_tool("log")
        await sdk.client.ping()
        levels = OFFER["levels"][OFFER["levels"].index(level) :]
        while sdk.server is RUST and len(sdk.logged) < len(levels):  # in sessions, they come on the session's stream
            await asyncio.sleep(0.01)
        assert [plain(message) for message in sdk.logged] == [
            {"level": each, "data": log_data(sdk, each), "logger": "offer"} for each in levels
        ]

    sdk.run(main)


def log_data(sdk: Sdk, level: str) -> Any:
    """Return the data of a log message, which is a text if the SDK cannot send anything else."""
    return json.dumps({"level": level}, separators=(",", ":")) if sdk.server is JAVA else {"level": level}


# Requests of the official SDKs


def asked(tool: str) -> list[Any]:
    """List the parameters of the requests that a tool makes, in order, without the mode of forms, the default."""
    questions = [question for asked in QUESTIONS[tool] for question in asked.values()]
    return [
        {key: value for key, value in question["params"].items() if (key, value) != ("mode", "form")}
        for question in questions
        if "params" in question
    ]


SAMPLED = plain(ANSWER)
WHO = {"name": "Ada", "age": 36, "plan": "free", "ok": True}


@each(
    ("tool", "answers"),
    [
        ("sample", {"answer": SAMPLED}),
        ("elicit", {"form": {"action": "accept", "content": WHO}}),
        ("visit", {"page": {"action": "accept"}}),
        ("roots", {"folders": {"roots": [{"uri": ROOT}]}}),
        (
            "rounds",
            {
                "first": {"action": "accept", "content": {"name": "Ada"}},
                "second": {"action": "accept", "content": {"color": "green"}},
            },
        ),
        (
            "together",
            {
                "form": {"action": "accept", "content": {"name": "Ada"}},
                "folders": {"roots": [{"uri": ROOT}]},
                "answer": SAMPLED,
            },
        ),
    ],
)
def test_a_tool_gets_the_input_that_it_requests(sdk: Sdk, tool: str, answers: Any) -> None:
    async def main() -> None:
        assert await sdk.value(tool) == answers
        assert sorted(sdk.asked, key=repr) == sorted(asked(tool), key=repr)

    sdk.run(main)


def test_prompts_and_resources_may_request_input_too(sdk: Sdk) -> None:
    async def main() -> None:
        message = {"role": "user", "content": {"type": "text", "text": "I like green."}}
        assert plain(await sdk.client.get_prompt("asked")) == {"messages": [message]}
        contents = {"uri": "test://asked", "text": ROOT}
        assert plain(await sdk.client.read_resource("test://asked")) == {"contents": [contents]}

    sdk.run(main)


def test_servers_of_older_revisions_are_notified_of_changed_roots(sdk: Sdk) -> None:
    async def main() -> None:
        before = await sdk.value("roots_changes")
        await sdk.client.notify_roots_changed()
        expected = before + (0 if sdk.is_modern else 1)
        while sdk.server in (JAVA, RUST) and await sdk.value("roots_changes") != expected:  # they handle it later
            await asyncio.sleep(0.01)
        assert await sdk.value("roots_changes") == expected

    sdk.run(main)


# Changes in servers on the official SDKs


def test_changes_arrive_while_the_client_listens(sdk: Sdk) -> None:
    async def main() -> None:
        watched = "test://watched"
        (before,) = (await sdk.client.read_resource(watched)).contents
        async with sdk.client.listen(tools=True, prompts=True, resources=True, uris=[watched]) as changes:
            if sdk.is_modern:
                assert plain(changes.granted) == {
                    "toolsListChanged": True,
                    "promptsListChanged": True,
                    "resourcesListChanged": True,
                    "resourceSubscriptions": [watched],
                }
            received: list[ChangeEvent] = []
            for what in ("tools", "prompts", "resources", watched):
                await sdk.client.call_tool("change", {"what": what})
                received.append(await anext(changes))
            assert received == [
                ChangeEvent("tools"),
                ChangeEvent("prompts"),
                ChangeEvent("resources"),
                ChangeEvent("resource", watched),
            ]
        (after,) = (await sdk.client.read_resource(watched)).contents
        assert isinstance(before, structs.TextResourceContents)
        assert isinstance(after, structs.TextResourceContents)
        count = int(before.text.split()[1])
        assert after.text == f"changed {count + 1} time(s)"

    sdk.run(main)


def test_only_requested_changes_arrive(sdk: Sdk) -> None:
    async def main() -> None:
        async with sdk.client.listen(prompts=True) as prompts, sdk.client.listen(uris=["test://notes"]) as notes:
            for what in ("tools", "resources", "test://watched", "prompts", "test://notes"):
                await sdk.client.call_tool("change", {"what": what})
            assert await anext(prompts) == ChangeEvent("prompts")
            assert await anext(notes) == ChangeEvent("resource", "test://notes")

    sdk.run(main)


# Revisions of compiled languages


async def use_on(revision: str, client: Client) -> None:
    """Check the revision of a connection, and content that is the same on all."""
    assert client.revision == revision
    assert plain(await client.call_tool("text")) == OFFER["results"]["text"]
    assert (await client.call_tool("failed")).is_error is True
    (greeting,) = (await client.get_prompt("greet", {"name": "Ada"})).messages
    assert plain(greeting) == {"role": "user", "content": {"type": "text", "text": "Hello Ada, plainly."}}
    notes = await client.read_resource("test://notes")
    assert plain(notes) == {"contents": OFFER["contents"]["test://notes"]}
    assert len([tool async for tool in client.tools()]) == len(OFFER["tools"])


@pytest.mark.parametrize(
    ("server", "revision"),
    [(server, revision) for server in (GO, JAVA, RUST) for revision in install.PROGRAMS[server.name].revisions],
    ids=str,
)
def test_a_server_of_a_compiled_language_is_used_on_each_of_its_revisions(server: Server, revision: str) -> None:
    async def main() -> None:
        async with connected(server, revisions=[revision]) as client:
            await use_on(revision, client)

    run(main)


# Errors of the official SDKs

ERRORS = {
    (GO, "tools/call"): ('unknown tool "none"', None),
    (GO, "prompts/get"): ('unknown prompt "none"', None),
    (GO, "resources/read"): ("Resource not found", {"uri": "test://none"}),
    (JAVA, "tools/call"): ("Unknown tool: invalid_tool_name", "Tool not found: none"),
    (JAVA, "prompts/get"): ("Invalid prompt name", "Prompt not found: none"),
    (JAVA, "resources/read"): ("Resource not found", {"uri": "test://none"}),
    (JAVA, "x/y"): ("Method not found: x/y", None),
    (RUST, "x/y"): ("x/y", None),
}
"""Messages and data of errors that an SDK makes itself."""


@each(
    ("method", "params", "code", "message", "data"),
    [
        ("tools/call", {"name": "none"}, -32602, "Unknown tool: none", {"name": "none"}),
        ("tools/call", {"name": "broken"}, -31999, "I'm a teapot", {"short": True, "stout": [1, None]}),
        ("prompts/get", {"name": "none"}, -32602, "Unknown prompt: none", {"name": "none"}),
        ("resources/read", {"uri": "test://none"}, None, "Resource not found: test://none", {"uri": "test://none"}),
        ("x/y", {}, -32601, "Method not found", None),
    ],
    ids=["tool", "broken", "prompt", "resource", "method"],
)
def test_an_error_is_an_exception_with_code_message_and_data(
    sdk: Sdk, method: str, params: dict[str, Any], code: int | None, message: str, data: Any
) -> None:
    async def main() -> None:
        expected = (code, message)
        if code is None:  # TypeScript and Go have the newer code on every revision
            expected = (-32602 if sdk.is_modern or sdk.server in (TYPESCRIPT, GO) else -32002, message)
        if method == "x/y" and sdk.server.name == PYTHON_1.name:  # which does not look whether it is the method
            expected = (-32602, "Invalid request parameters")
        if method == "x/y" and sdk.server is GO:  # over HTTP and on older revisions, it answers with 400 and a text
            with pytest.raises((typedmcp.RemoteError, typedmcp.HttpStatusError), match='"x/y"'):
                await sdk.client.send(method, params)
            return
        said = data
        if (sdk.server, method) in ERRORS and code != -31999:
            wording, said = ERRORS[sdk.server, method]
            expected = (expected[0], wording)
        with pytest.raises(typedmcp.RemoteError, match=rf"{method} \(id \d+\): ") as caught:
            await sdk.client.send(method, params)
        error = caught.value
        assert (error.code, error.message) == expected
        if said is not None:
            assert error.data == said
        if method == "resources/read":
            assert isinstance(error, typedmcp.InvalidParamsError)

    sdk.run(main)


@pytest.mark.parametrize(("server", "revision"), [(TYPESCRIPT, OLDER), (PYTHON_2, MODERN)], ids=str)
def test_a_call_to_a_server_that_dies_raises_an_error_with_its_exit_status(server: Server, revision: str) -> None:
    async def main() -> None:
        async with connected(server, revisions=[revision], restart=False) as client:
            with pytest.raises(typedmcp.ConnectionLostError, match=r"the connection ended: exit status 3"):
                await client.call_tool("crash")
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.ping()

    run(main)


def test_a_server_that_died_is_restarted_with_restart() -> None:
    async def main() -> None:
        async with connected(TYPESCRIPT, odd=("connection error",), restart=True) as client:
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.call_tool("crash")
            assert plain(await client.call_tool("text")) == OFFER["results"]["text"]

    run(main)


# npm's server-everything

EVERYTHING_TOOLS = [
    "echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
    "get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource", "toggle-simulated-logging",
    "toggle-subscriber-updates", "trigger-long-running-operation",
]  # fmt: skip
EVERYTHING_ASKING_TOOLS = [
    "get-roots-list", "trigger-elicitation-request", "trigger-url-elicitation", "trigger-sampling-request",
    "simulate-research-query", "trigger-sampling-request-async", "trigger-elicitation-request-async",
]  # fmt: skip
DOCUMENTS = OFFICIAL / "server-everything" / "dist" / "docs"
TASKS: dict[str, Any] = {"tasks": {"requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}}}


def answer(_params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    return ANSWER


def decline(_params: Any) -> None:
    return None


def test_everything_lists_more_tools_for_clients_with_more_capabilities() -> None:
    callbacks: dict[str, Any] = {"sample": answer, "elicit": decline, "elicit_url": decline}

    async def main() -> None:
        async with connected(EVERYTHING, **callbacks, roots=[], capabilities=TASKS) as client:
            names = [tool.name async for tool in client.tools()]
            assert names == EVERYTHING_TOOLS + EVERYTHING_ASKING_TOOLS
            assert client.server.instructions == (DOCUMENTS / "instructions.md").read_text(encoding="utf-8")

    run(main)


def test_everything_describes_its_tools_resources_and_prompts() -> None:
    async def main() -> None:
        async with connected(EVERYTHING) as client:
            tools = {tool.name: structs.to_builtins(tool) async for tool in client.tools()}
            assert list(tools) == [*EVERYTHING_TOOLS, "simulate-research-query"]
            hints = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
            draft = "http://json-schema.org/draft-07/schema#"
            number = {"type": "number"}
            assert tools["get-sum"] == {
                "name": "get-sum",
                "title": "Get Sum Tool",
                "description": "Returns the sum of two numbers",
                "annotations": hints,
                "inputSchema": {
                    "$schema": draft,
                    "type": "object",
                    "properties": {
                        "a": {**number, "description": "First number"},
                        "b": {**number, "description": "Second number"},
                    },
                    "required": ["a", "b"],
                },
            }
            assert tools["get-structured-content"]["outputSchema"]["required"] == [
                "temperature", "conditions", "humidity",
            ]  # fmt: skip
            documents = [path.name for path in DOCUMENTS.iterdir() if path.is_file()]
            listed = {resource.name: structs.to_builtins(resource) async for resource in client.resources()}
            assert listed == {
                name: {
                    "name": name,
                    "uri": f"demo://resource/static/document/{name}",
                    "mimeType": "text/markdown",
                    "description": f"Static document file exposed from /docs: {name}",
                }
                for name in documents
            }
            assert [structs.to_builtins(template) async for template in client.resource_templates()] == [
                {
                    "name": f"Dynamic {kind} Resource",
                    "uriTemplate": f"demo://resource/dynamic/{kind.lower()}/{{resourceId}}",
                    "mimeType": mime_type,
                    "description": f"{what} dynamic resource fabricated from the {{resourceId}} variable, "
                    "which must be an integer.",
                }
                for kind, mime_type, what in (
                    ("Text", "text/plain", "Plaintext"),
                    ("Blob", "application/octet-stream", "Binary (base64)"),
                )
            ]
            prompts = [structs.to_builtins(prompt) async for prompt in client.prompts()]
            assert [prompt["name"] for prompt in prompts] == [
                "simple-prompt", "args-prompt", "completable-prompt", "resource-prompt",
            ]  # fmt: skip
            assert prompts[1] == {
                "name": "args-prompt",
                "title": "Arguments Prompt",
                "description": "A prompt with two arguments, one required and one optional",
                "arguments": [
                    {"name": "city", "description": "Name of the city", "required": True},
                    {"name": "state", "required": False},
                ],
            }

    run(main)


def words(*texts: str) -> dict[str, Any]:
    """Return a result with only texts."""
    return {"content": [{"type": "text", "text": each} for each in texts]}


def dynamic(kind: str, number: int) -> dict[str, Any]:
    """Return the content of a templated resource of server-everything."""
    about = f"Resource {number}: This is a {'plaintext resource' if kind == 'text' else 'base64 blob'} created at noon"
    said = {"text": about} if kind == "text" else {"blob": base64.b64encode(about.encode()).decode()}
    return {"uri": f"demo://resource/dynamic/{kind}/{number}", "mimeType": "text/plain", **said}


def link(number: int) -> dict[str, Any]:
    kind, what = ("Text", "plaintext resource") if number % 2 == 0 else ("Blob", "plaintext resource")
    return {
        "type": "resource_link",
        "uri": f"demo://resource/dynamic/{kind.lower()}/{number}",
        "name": f"{kind} Resource {number}",
        "description": f"Resource {number}: {what}",
        "mimeType": "text/plain",
    }


LOGO_SIZE = (20, 20)
WEATHER = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
EVERYTHING_CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("echo", {"message": "Grüße 🎈"}, words("Echo: Grüße 🎈")),
    ("get-sum", {"a": 2.5, "b": -4}, words("The sum of 2.5 and -4 is -1.5.")),
    (
        "get-structured-content",
        {"location": "Chicago"},
        {
            "content": [{"type": "text", "text": json.dumps(WEATHER, separators=(",", ":"))}],
            "structuredContent": WEATHER,
        },
    ),
    (
        "get-annotated-message",
        {"messageType": "error"},
        {
            "content": [
                {
                    "type": "text",
                    "text": "Error: Operation failed",
                    "annotations": {"priority": 1, "audience": ["user", "assistant"]},
                }
            ]
        },
    ),
    (
        "get-resource-reference",
        {"resourceType": "Text", "resourceId": 4},
        {
            "content": [
                {"type": "text", "text": "Returning resource reference for Resource 4:"},
                {"type": "resource", "resource": dynamic("text", 4)},
                {"type": "text", "text": f"You can access this resource using the URI: {dynamic('text', 4)['uri']}"},
            ]
        },
    ),
    (
        "get-resource-reference",
        {"resourceType": "Blob", "resourceId": 5},
        {
            "content": [
                {"type": "text", "text": "Returning resource reference for Resource 5:"},
                {"type": "resource", "resource": dynamic("blob", 5)},
                {"type": "text", "text": f"You can access this resource using the URI: {dynamic('blob', 5)['uri']}"},
            ]
        },
    ),
    (
        "get-resource-links",
        {"count": 3},
        {
            "content": [
                {"type": "text", "text": "Here are 3 resource links to resources available in this server:"},
                link(1),
                link(2),
                link(3),
            ]
        },
    ),
]


def test_everything_returns_every_kind_of_content() -> None:
    async def main() -> None:
        async with connected(EVERYTHING) as client:
            for tool, arguments, expected in EVERYTHING_CALLS:
                assert plain(await client.call_tool(tool, arguments)) == expected
            before, image, after = (await client.call_tool("get-tiny-image")).content
            assert (before, after) == (
                structs.TextContent(text="Here's the image you requested:"),
                structs.TextContent(text="The image above is the MCP logo."),
            )
            assert isinstance(image, structs.ImageContent)
            data = base64.b64decode(image.data, validate=True)
            sizes = (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
            assert (image.mime_type, data[:8], sizes) == ("image/png", b"\x89PNG\r\n\x1a\n", LOGO_SIZE)
            annotated = await client.call_tool("get-annotated-message", {"messageType": "debug", "includeImage": True})
            debug, logo = annotated.content
            assert structs.to_builtins(debug)["annotations"] == {"priority": 0.3, "audience": ["assistant"]}
            assert structs.to_builtins(logo) == {
                **structs.to_builtins(image),
                "annotations": {"priority": 0.5, "audience": ["user"]},
            }

    run(main)


def test_everything_gets_only_the_safe_and_the_given_environment_variables() -> None:
    async def main() -> None:
        async with connected(EVERYTHING, env={"GIVEN": "ü"}) as client:
            seen = json.loads(text(await client.call_tool("get-env")))
            del seen["TYPEDMCP_TEST"]
            safe = {name: os.environ[name] for name in SAFE_ENVIRONMENT if name in os.environ}
            assert seen == {**safe, "GIVEN": "ü"}

    run(main)


def test_everything_has_static_and_dynamic_resources() -> None:
    async def main() -> None:
        async with connected(EVERYTHING) as client:
            uri = "demo://resource/static/document/features.md"
            document = (DOCUMENTS / "features.md").read_text(encoding="utf-8")
            assert plain(await client.read_resource(uri)) == {
                "contents": [{"uri": uri, "mimeType": "text/markdown", "text": document}]
            }
            for made in (dynamic("text", 7), dynamic("blob", 8)):
                assert plain(await client.read_resource(made["uri"])) == {"contents": [made]}
            async with client.listen(resources=True) as changes:
                given = {"name": "a.gz", "data": "data:text/plain,packed", "outputType": "resourceLink"}
                uri = "demo://resource/session/a.gz"
                about = {"uri": uri, "mimeType": "application/gzip"}
                called = plain(await client.call_tool("gzip-file-as-resource", given))
                assert called == {"content": [{"type": "resource_link", "name": "a.gz", **about}]}
                assert await anext(changes) == ChangeEvent("resources")
            (contents,) = (await client.read_resource(uri)).contents
            assert isinstance(contents, structs.BlobResourceContents)
            assert gzip.decompress(base64.b64decode(contents.blob)) == b"packed"
            assert structs.to_builtins(contents) == {**about, "blob": contents.blob}
            assert uri in [resource.uri async for resource in client.resources()]

    run(main)


def test_everything_has_prompts_and_completions_for_their_arguments() -> None:
    async def main() -> None:
        async with connected(EVERYTHING) as client:
            for name, arguments, expected in (
                ("simple-prompt", None, "This is a simple prompt without arguments."),
                ("args-prompt", {"city": "Linz"}, "What's weather in Linz?"),
                ("args-prompt", {"city": "Austin", "state": "Texas"}, "What's weather in Austin, Texas?"),
                (
                    "completable-prompt",
                    {"department": "Sales", "name": "Eve"},
                    "Please promote Eve to the head of the Sales team.",
                ),
            ):
                message = {"role": "user", "content": {"type": "text", "text": expected}}
                assert plain(await client.get_prompt(name, arguments)) == {"messages": [message]}
            embedded = await client.get_prompt("resource-prompt", {"resourceType": "Blob", "resourceId": "3"})
            assert structs.to_builtins(embedded.messages[1].content) == {
                "type": "resource",
                "resource": dynamic("blob", 3),
            }
            prompt = structs.PromptReference(name="completable-prompt")
            template = structs.ResourceTemplateReference(uri="demo://resource/dynamic/text/{resourceId}")
            for ref, argument, value, context, values in (
                (prompt, "department", "S", None, ["Sales", "Support"]),
                (prompt, "name", "", {"department": "Sales"}, ["David", "Eve", "Frank"]),
                (prompt, "name", "G", {"department": "Marketing"}, ["Grace"]),
                (template, "resourceId", "12", None, ["12"]),
                (template, "resourceId", "x", None, []),
            ):
                completion = (await client.complete(ref, argument, value, context)).completion
                assert (completion.values, completion.total, completion.has_more) == (values, len(values), False)

    run(main)


def test_everything_reports_progress_and_continues_after_a_cancelled_call() -> None:
    async def main() -> None:
        steps: list[Any] = []
        async with connected(EVERYTHING, odd=("late message", "unexpected message")) as client:
            operation = "trigger-long-running-operation"
            given = {"duration": 0.2, "steps": 4}
            result = await client.call_tool(operation, given, on_progress=lambda p: steps.append((p.progress, p.total)))
            assert plain(result) == words("Long running operation completed. Duration: 0.2 seconds, Steps: 4.")
            assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
            started = asyncio.Event()
            call = asyncio.create_task(
                client.call_tool(operation, {"duration": 0.6, "steps": 6}, on_progress=lambda _: started.set())
            )
            await started.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            with pytest.raises(typedmcp.RequestTimeoutError):
                await client.call_tool(operation, {"duration": 0.3, "steps": 1}, timeout=0.05)
            assert plain(await client.call_tool("echo", {"message": "still"})) == words("Echo: still")

    run(main)


def test_everything_logs_from_the_requested_level_on() -> None:
    async def main() -> None:
        received: list[tuple[str, Any]] = []

        def on_log(message: structs.LoggingMessageNotificationParams) -> None:
            received.append((message.level, message.data))

        async with connected(EVERYTHING, on_log=on_log) as client:
            messages = [
                ("debug", "Debug-level message"), ("info", "Info-level message"), ("notice", "Notice-level message"),
                ("warning", "Warning-level message"), ("error", "Error-level message"),
                ("critical", "Critical-level message"), ("alert", "Alert level-message"),
                ("emergency", "Emergency-level message"),
            ]  # fmt: skip
            levels: list[tuple[LogLevel, list[tuple[str, str]]]] = [("debug", messages), ("error", messages[4:])]
            for level, expected in levels:
                await client.set_log_level(level)
                for _ in messages:
                    await client.call_tool("toggle-simulated-logging")  # which logs one when it is turned on
                    await client.call_tool("toggle-simulated-logging")
                assert received == expected
                received.clear()

    run(main)


def test_everything_sends_updates_of_subscribed_resources() -> None:
    async def main() -> None:
        received: list[Any] = []
        mine, other = "demo://resource/dynamic/text/1", "demo://resource/dynamic/text/2"

        def on_log(message: structs.LoggingMessageNotificationParams) -> None:
            received.append(message.data)

        async with connected(EVERYTHING, on_log=on_log) as client:
            async with client.listen(uris=[mine]) as changes, client.listen(uris=[other]) as others:
                await client.call_tool("toggle-subscriber-updates")
                assert await anext(changes) == ChangeEvent("resource", mine)
                assert await anext(others) == ChangeEvent("resource", other)
                await client.call_tool("toggle-subscriber-updates")
            await client.ping()
            assert sorted(received) == sorted(
                f"Received {what} request{of}: {uri} "
                for what, of in (("Subscribe Resource", " for URI"), ("Unsubscribe Resource", ""))
                for uri in (mine, other)
            )

    run(main)


def test_everything_requests_sampling() -> None:
    async def main() -> None:
        asked: list[Any] = []

        def sample(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
            asked.append(plain(params))
            return ANSWER

        async with connected(EVERYTHING, sample=sample, capabilities=TASKS) as client:
            for tool, prefix in (
                ("trigger-sampling-request", "LLM sampling result: \n"),
                ("trigger-sampling-request-async", "[SYNC] Client executed synchronously:\n"),
            ):
                result = text(await client.call_tool(tool, {"prompt": "Say it", "maxTokens": 7}))
                assert json.loads(result.removeprefix(prefix)) == SAMPLED
                content = {"type": "text", "text": f"Resource {tool} context: Say it"}
                assert asked.pop() == {
                    "messages": [{"role": "user", "content": content}],
                    "systemPrompt": "You are a helpful test server.",
                    "maxTokens": 7,
                    "temperature": 0.7,
                }

    run(main)


FORM = {
    "firstLine": "It was a dark and stormy night.", "integer": 42, "number": 3.14,
    "untitledSingleSelectEnum": "Monica", "untitledMultipleSelectEnum": ["Guitar"],
    "titledSingleSelectEnum": "hero-1", "titledMultipleSelectEnum": ["fish-1"], "legacyTitledEnum": "pet-1",
}  # fmt: skip
"""The defaults of the form of server-everything."""


def test_everything_requests_a_form_that_is_accepted_with_defaults_declined_or_cancelled() -> None:
    async def main() -> None:
        answers: list[Any] = []
        messages: list[str] = []

        def elicit(params: Any) -> Any:
            messages.append(params.message)
            given = answers.pop()
            return with_defaults(params, given) if is_object(given) else given

        async with connected(EVERYTHING, elicit=elicit) as client:
            tool = "trigger-elicitation-request"
            answers.append({"name": "Ada", "check": True})
            done, inputs, raw = (await client.call_tool(tool)).content
            assert done == structs.TextContent(text="✅ User provided the requested information!")
            summary = "- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 42\n- Favorite Number: 3.14"
            assert inputs == structs.TextContent(text=f"User inputs:\n{summary}")
            assert isinstance(raw, structs.TextContent)
            content = {"name": "Ada", "check": True, **FORM}
            assert json.loads(raw.text.removeprefix("\nRaw result: ")) == {"action": "accept", "content": content}
            for answer, said in (
                (None, "❌ User declined to provide the requested information."),
                (structs.ElicitResult(action="cancel"), "⚠️ User cancelled the elicitation dialog."),
            ):
                answers.append(answer)
                first = (await client.call_tool(tool)).content[0]
                assert first == structs.TextContent(text=said)
            assert set(messages) == {"Please provide inputs for the following fields:"}

    run(main)


def test_everything_requests_a_visit_to_a_url_also_before_the_call() -> None:
    async def main() -> None:
        visited: list[str] = []

        def consent(params: structs.ElicitRequestURLParams) -> bool:
            visited.append(params.url)
            return True

        async with connected(EVERYTHING, elicit_url=consent) as client:
            page, before = "https://example.org/page", "https://modelcontextprotocol.io"
            for more, pages in (({}, [page]), ({"errorPath": True}, [before, page])):
                given = {"url": page, "message": "Go there.", "elicitationId": "one", **more}
                result = await client.call_tool("trigger-url-elicitation", given)
                answer = f"✅ User completed the URL elicitation flow.\nElicitation ID: one\nURL: {page}"
                assert result.content[0] == structs.TextContent(text=answer)
                assert visited == pages
                visited.clear()

    run(main)


def test_everything_requests_the_roots_and_again_after_a_change() -> None:
    async def main() -> None:
        received = asyncio.Event()
        folders: list[Any] = [structs.Root(uri="file:///home/ada", name="Home"), "file:///srv"]

        def on_log(message: structs.LoggingMessageNotificationParams) -> None:
            if message.data == "Roots updated: 1 root(s) received from client":
                received.set()

        async with connected(EVERYTHING, roots=lambda: folders, on_log=on_log) as client:
            listed = text(await client.call_tool("get-roots-list"))
            assert listed.startswith(
                "Current MCP Roots (2 total):\n\n"
                "1. Home\n   URI: file:///home/ada\n\n2. Unnamed Root\n   URI: file:///srv\n\n"
            )
            folders[:] = ["file:///elsewhere"]
            await client.notify_roots_changed()
            await received.wait()
            listed = text(await client.call_tool("get-roots-list"))
            assert "(1 total):\n\n1. Unnamed Root\n   URI: file:///elsewhere\n\n" in listed

    run(main)


def test_everything_runs_a_task_that_requests_input() -> None:
    async def main() -> None:
        def elicit(params: Any) -> dict[str, Any]:
            assert params.message.startswith('The research query "python" could have multiple interpretations.')
            choices = plain(params)["requestedSchema"]["properties"]["interpretation"]["oneOf"]
            return {"interpretation": choices[1]["const"]}

        async with connected(EVERYTHING, elicit=elicit, odd=("legacy notification",)) as client:
            params = {"name": "simulate-research-query", "arguments": {"topic": "python", "ambiguous": True}}
            other = (await client.send("tools/call", {**params, "task": {}}))["task"]["taskId"]
            assert (await client.send("tasks/cancel", {"taskId": other}))["status"] == "cancelled"
            created = await client.send("tools/call", {**params, "task": {"ttl": 60_000}})
            task = created["task"]["taskId"]
            assert created["task"]["status"] == "working"
            assert (await client.send("tasks/get", {"taskId": task}))["statusMessage"] == "Gathering sources..."
            result = await client.send("tasks/result", {"taskId": task})
            assert result["content"][0]["text"].startswith("# Research Report: python (snake)\n")
            assert (await client.send("tasks/get", {"taskId": task}))["status"] == "completed"
            listed = (await client.send("tasks/list"))["tasks"]
            assert {each["taskId"]: each["status"] for each in listed} == {task: "completed", other: "cancelled"}

    run(main)


def test_everything_runs_a_task_for_a_client_with_tasks() -> None:
    async def main() -> None:
        def elicit(params: Any) -> dict[str, Any]:
            return {
                "interpretation": plain(params)["requestedSchema"]["properties"]["interpretation"]["oneOf"][1]["const"]
            }

        states: list[str] = []
        tasks = ClientTasks(on_status=lambda task: states.append(task.status))
        async with connected(EVERYTHING, elicit=elicit, extensions=[tasks]) as client:
            arguments = {"topic": "python", "ambiguous": True}
            report = text(await client.call_tool("simulate-research-query", arguments))
            assert report.startswith("# Research Report: python (snake)\n")
            assert {*states} >= {"input_required", "completed"}
            waiting = await client.extension(TaskCalls).begin("simulate-research-query", arguments)
            await client.extension(TaskCalls).cancel(waiting.task_id)
            with pytest.raises(typedmcp.TaskCancelledError):
                await client.extension(TaskCalls).resume(waiting.task_id)

    run(main)


def test_everything_reports_errors() -> None:
    async def main() -> None:
        async with connected(EVERYTHING) as client:
            wrong = await client.call_tool("get-sum", {"a": "one"})
            assert wrong.is_error is True
            assert "Invalid arguments for tool get-sum" in text(wrong)
            for call, code, message in (
                (client.get_prompt("none"), -32602, "MCP error -32602: Prompt none not found"),
                (client.read_resource("demo://none"), -32602, "MCP error -32602: Resource demo://none not found"),
                (client.send("x/y"), -32601, "Method not found"),
            ):
                with pytest.raises(typedmcp.RemoteError) as caught:
                    await call
                assert (caught.value.code, caught.value.message) == (code, message)

    run(main)


# npm's server-filesystem


PNG = base64.b64decode(OFFER["results"]["kinds"]["content"][1]["data"])


def text_result(text: str) -> dict[str, Any]:
    """Return a result of server-filesystem, whose text is also in the structured content."""
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"content": text}}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "sub" / "deep").mkdir(parents=True)
    (home / "a.txt").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    (home / "sub" / "ü.txt").write_text("Grüße 🎈", encoding="utf-8")
    (home / "sub" / "deep" / "b.txt").write_text("b" * 2048, encoding="utf-8")
    (home / "dot.png").write_bytes(PNG)
    (home / "dot.bin").write_bytes(bytes(range(256)))
    return home


def test_filesystem_reads_files_unchanged(files: Path) -> None:
    async def main() -> None:
        a, b = str(files / "a.txt"), str(files / "sub" / "ü.txt")
        async with connected(FILESYSTEM, str(files)) as client:
            for tool, arguments, said in (
                ("read_file", {"path": a}, "one\ntwo\nthree\nfour\n"),
                ("read_text_file", {"path": b}, "Grüße 🎈"),
                ("read_text_file", {"path": a, "head": 2}, "one\ntwo"),
                ("read_text_file", {"path": a, "tail": 3}, "three\nfour\n"),
                ("read_multiple_files", {"paths": [b, a]}, f"{b}:\nGrüße 🎈\n\n---\n{a}:\none\ntwo\nthree\nfour\n\n"),
                ("list_allowed_directories", {}, f"Allowed directories:\n{files}"),
            ):
                assert plain(await client.call_tool(tool, arguments)) == text_result(said)
            image = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
            binary = {
                "type": "resource",
                "resource": {
                    "uri": (files / "dot.bin").as_uri(),
                    "mimeType": "application/octet-stream",
                    "blob": base64.b64encode(bytes(range(256))).decode(),
                },
            }
            (files / "dot.wav").write_bytes(b"RIFF")
            audio = {"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"}
            for name, content in (("dot.png", image), ("dot.bin", binary), ("dot.wav", audio)):
                result = plain(await client.call_tool("read_media_file", {"path": str(files / name)}))
                assert result == {"content": [content], "structuredContent": {"content": [content]}}

    run(main)


def test_filesystem_finds_files(files: Path) -> None:
    async def main() -> None:
        async with connected(FILESYSTEM, str(files)) as client:
            listed = text(await client.call_tool("list_directory", {"path": str(files)}))
            assert sorted(listed.split("\n")) == ["[DIR] sub", "[FILE] a.txt", "[FILE] dot.bin", "[FILE] dot.png"]
            sized = text(await client.call_tool("list_directory_with_sizes", {"path": str(files), "sortBy": "size"}))
            sizes = {path.name: path.stat().st_size for path in files.iterdir() if path.is_file()}
            rows = [f"[FILE] {name:<30} {f'{size} B':>10}" for name, size in sizes.items()]
            *found, empty, total, combined = sized.split("\n")
            assert sorted(row for row in found if row.startswith("[FILE]")) == sorted(rows)
            assert (empty, total) == ("", "Total: 3 files, 1 directories")
            assert combined == f"Combined size: {sum(sizes.values())} B"
            tree = json.loads(text(await client.call_tool("directory_tree", {"path": str(files / "sub")})))
            deep = {"name": "deep", "type": "directory", "children": [{"name": "b.txt", "type": "file"}]}
            assert sorted(tree, key=repr) == sorted([deep, {"name": "ü.txt", "type": "file"}], key=repr)
            search = {"path": str(files), "pattern": "**/*.txt", "excludePatterns": ["**/deep/**"]}
            matches = text(await client.call_tool("search_files", search))
            assert sorted(matches.split("\n")) == [str(files / "a.txt"), str(files / "sub" / "ü.txt")]
            (files / "a.txt").chmod(0o640)
            info = text(await client.call_tool("get_file_info", {"path": str(files / "a.txt")}))
            facts = dict(line.split(": ", 1) for line in info.split("\n"))
            assert (facts["size"], facts["isFile"], facts["isDirectory"]) == ("19", "true", "false")
            assert facts["permissions"] == "640"

    run(main)


def test_filesystem_changes_files_on_disk(files: Path) -> None:
    async def main() -> None:
        a, new = files / "a.txt", files / "new" / "er"
        async with connected(FILESYSTEM, str(files)) as client:
            made = await client.call_tool("create_directory", {"path": str(new)})
            assert plain(made) == text_result(f"Successfully created directory {new}")
            assert new.is_dir()
            content = "ü🎈\u2028\r\n" * 100_000
            large = new / "large.txt"
            written = await client.call_tool("write_file", {"path": str(large), "content": content})
            assert plain(written) == text_result(f"Successfully wrote to {large}")
            assert large.read_bytes() == content.encode()
            assert plain(await client.call_tool("read_text_file", {"path": str(large)})) == text_result(content)
            edit = {"path": str(a), "edits": [{"oldText": "two\n", "newText": "2\n"}]}
            diff = (
                f"```diff\nIndex: {a}\n{'=' * 67}\n--- {a}\toriginal\n+++ {a}\tmodified\n"
                "@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n four\n```\n\n"
            )
            for is_dry, after in ((True, "one\ntwo\nthree\nfour\n"), (False, "one\n2\nthree\nfour\n")):
                assert plain(await client.call_tool("edit_file", {**edit, "dryRun": is_dry})) == text_result(diff)
                assert a.read_text(encoding="utf-8") == after
            moved = await client.call_tool("move_file", {"source": str(a), "destination": str(new / "b.txt")})
            assert plain(moved) == text_result(f"Successfully moved {a} to {new / 'b.txt'}")
            assert not a.exists()
            assert (new / "b.txt").read_text(encoding="utf-8") == "one\n2\nthree\nfour\n"

    run(main)


def test_filesystem_rejects_files_outside_of_its_folders_and_reports_missing_ones(files: Path) -> None:
    async def main() -> None:
        async with connected(FILESYSTEM, str(files)) as client:
            outside, missing = files.parent / "x.txt", files / "none.txt"
            for tool, arguments, words in (
                (
                    "write_file",
                    {"path": str(outside), "content": "x"},
                    f"Access denied - path outside allowed directories: {outside} not in {files}",
                ),
                (
                    "read_text_file",
                    {"path": str(missing)},
                    f"ENOENT: no such file or directory, open '{missing}'",
                ),
                (
                    "edit_file",
                    {"path": str(files / "a.txt"), "edits": [{"oldText": "five", "newText": "5"}]},
                    "Could not find exact match for edit:\nfive",
                ),
            ):
                result = await client.call_tool(tool, arguments)
                assert (result.is_error, text(result)) == (True, words)
            assert not outside.exists()

    run(main)


def test_filesystem_works_in_the_client_s_roots_and_follows_their_changes(files: Path) -> None:
    async def main() -> None:
        folders = [files.as_uri()]

        async def allowed(client: Client, expected: Path) -> None:
            """Wait until the server has requested the roots and uses them."""
            while text(await client.call_tool("list_allowed_directories")) != f"Allowed directories:\n{expected}":
                await asyncio.sleep(0.01)

        async with connected(FILESYSTEM, roots=lambda: folders) as client:
            await allowed(client, files)
            folders[:] = [(files / "sub").as_uri()]
            await client.notify_roots_changed()
            await allowed(client, files / "sub")
            refused = await client.call_tool("read_text_file", {"path": str(files / "a.txt")})
            assert refused.is_error is True
            read = await client.call_tool("read_text_file", {"path": str(files / "sub" / "ü.txt")})
            assert plain(read) == text_result("Grüße 🎈")

    run(main)


# npm's server-memory


ADA = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
ENGINE: dict[str, Any] = {"name": "Engine", "entityType": "machine", "observations": []}
DESCRIBES = {"from": "Ada", "to": "Engine", "relationType": "describes"}
MEMORIES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("create_entities", {"entities": [ADA, ENGINE]}, {"entities": [ADA, ENGINE]}, ([ADA, ENGINE], [])),
    ("create_entities", {"entities": [ADA]}, {"entities": []}, ([ADA, ENGINE], [])),
    ("create_relations", {"relations": [DESCRIBES]}, {"relations": [DESCRIBES]}, ([ADA, ENGINE], [DESCRIBES])),
    (
        "add_observations",
        {"observations": [{"entityName": "Engine", "contents": ["ünbuilt", "brass"]}]},
        {"results": [{"entityName": "Engine", "addedObservations": ["ünbuilt", "brass"]}]},
        ([ADA, {**ENGINE, "observations": ["ünbuilt", "brass"]}], [DESCRIBES]),
    ),
    (
        "delete_observations",
        {"deletions": [{"entityName": "Engine", "observations": ["brass"]}]},
        {"success": True, "message": "Observations deleted successfully"},
        ([ADA, {**ENGINE, "observations": ["ünbuilt"]}], [DESCRIBES]),
    ),
    (
        "delete_relations",
        {"relations": [DESCRIBES]},
        {"success": True, "message": "Relations deleted successfully"},
        ([ADA, {**ENGINE, "observations": ["ünbuilt"]}], []),
    ),
    (
        "delete_entities",
        {"entityNames": ["Engine"]},
        {"success": True, "message": "Entities deleted successfully"},
        ([ADA], []),
    ),
]
"""Tools in turn, with their arguments, their results, and the content of the file afterwards."""


def test_memory_stores_its_graph_in_a_file_and_sends_updates(tmp_path: Path) -> None:
    async def main() -> None:
        kept = tmp_path / "memory.jsonl"
        uri = "memory://knowledge-graph"
        async with connected(MEMORY, env={"MEMORY_FILE_PATH": str(kept)}) as client:
            async with client.listen(uris=[uri]) as changes:
                for tool, arguments, said, (entities, relations) in MEMORIES:
                    assert (await client.call_tool(tool, arguments)).structured_content == said
                    assert await anext(changes) == ChangeEvent("resource", uri)
                    lines = [{"type": "entity", **each} for each in entities]
                    lines += [{"type": "relation", **each} for each in relations]
                    assert [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] == lines
            (contents,) = (await client.read_resource(uri)).contents
            assert isinstance(contents, structs.TextResourceContents)
            assert json.loads(contents.text) == {"entities": [ADA], "relations": []}

    run(main)


def test_memory_searches_its_graph(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(MEMORY, env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}) as client:
            (resource,) = [structs.to_builtins(resource) async for resource in client.resources()]
            assert resource == {
                "uri": "memory://knowledge-graph",
                "name": "knowledge-graph",
                "title": "Knowledge Graph",
                "description": "The full knowledge graph with all entities and relations",
                "mimeType": "application/json",
            }
            await client.call_tool("create_entities", {"entities": [ADA, ENGINE]})
            await client.call_tool("create_relations", {"relations": [DESCRIBES]})
            whole: dict[str, Any] = {"entities": [ADA, ENGINE], "relations": [DESCRIBES]}
            asked: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
                ("read_graph", {}, whole),
                ("search_nodes", {"query": "PROGRAM"}, {"entities": [ADA], "relations": [DESCRIBES]}),
                ("search_nodes", {"query": "none"}, {"entities": [], "relations": []}),
                ("open_nodes", {"names": ["Engine"]}, {"entities": [ENGINE], "relations": [DESCRIBES]}),
            ]
            for tool, arguments, said in asked:
                result = await client.call_tool(tool, arguments)
                assert result.structured_content == said
                assert json.loads(text(result)) == said
            missing = {"observations": [{"entityName": "Bob", "contents": ["x"]}]}
            refused = await client.call_tool("add_observations", missing)
            assert (refused.is_error, text(refused)) == (True, "Entity with name Bob not found")

    run(main)


# npm's server-sequential-thinking


THOUGHTS: list[tuple[dict[str, Any], int, list[str]]] = [
    ({"thoughtNumber": 1}, 3, []),
    ({"thoughtNumber": 2, "isRevision": True, "revisesThought": 1}, 3, []),
    ({"thoughtNumber": 3, "branchFromThought": 1, "branchId": "ü"}, 3, ["ü"]),
    ({"thoughtNumber": 5, "needsMoreThoughts": True}, 5, ["ü"]),
    ({"thoughtNumber": 6, "nextThoughtNeeded": False}, 6, ["ü"]),
]
"""Thoughts, each with the number of thoughts and the branches after it."""


def test_sequential_thinking_counts_thoughts_and_branches() -> None:
    async def main() -> None:
        async with connected(THINKING) as client:
            for count, (thought, total, branches) in enumerate(THOUGHTS, 1):
                given = {"thought": f"Thought {count} 🎈", "totalThoughts": 3, "nextThoughtNeeded": True, **thought}
                expected = {
                    "thoughtNumber": given["thoughtNumber"],
                    "totalThoughts": total,
                    "nextThoughtNeeded": given["nextThoughtNeeded"],
                    "branches": branches,
                    "thoughtHistoryLength": count,
                }
                content = {"type": "text", "text": json.dumps(expected, indent=2, ensure_ascii=False)}
                result = plain(await client.call_tool("sequentialthinking", given))
                assert result == {"content": [content], "structuredContent": expected}
            refused = await client.call_tool("sequentialthinking", {"thought": "Hm."})
            assert refused.is_error is True
            assert "Invalid arguments for tool sequentialthinking" in text(refused)

    run(main)


# mcp-server-time

both_eras = pytest.mark.parametrize("revision", [OLDER, MODERN])


def moment(zone: str, when: datetime) -> dict[str, Any]:
    there = when.astimezone(ZoneInfo(zone))
    return {
        "timezone": zone,
        "datetime": there.isoformat(timespec="seconds"),
        "day_of_week": there.strftime("%A"),
        "is_dst": bool(there.dst()),
    }


@both_eras
def test_time_returns_and_converts_times_and_reports_errors(revision: str) -> None:
    async def main() -> None:
        async with connected(TIME, revisions=[revision]) as client:
            now, convert = [tool async for tool in client.tools()]
            assert (now.name, convert.name) == ("get_current_time", "convert_time")
            assert now.input_schema["properties"]["timezone"]["description"].endswith(
                "Use 'Asia/Tokyo' as local timezone if no timezone provided by the user."
            )
            for source, time, target, difference in (
                ("UTC", "00:30", "Asia/Kathmandu", "+5.75h"),
                ("Asia/Tokyo", "23:59", "America/Phoenix", "-16.0h"),
                ("Asia/Kolkata", "10:30", "UTC", "-5.5h"),
            ):
                given = {"source_timezone": source, "time": time, "target_timezone": target}
                result = await client.call_tool("convert_time", given)
                said: Any = result.structured_content
                when = datetime.fromisoformat(said["source"]["datetime"])
                assert f"{when:%H:%M}" == time
                assert abs((when - datetime.now(when.tzinfo)).total_seconds()) < 2 * 86_400
                expected = {
                    "source": moment(source, when),
                    "target": moment(target, when),
                    "time_difference": difference,
                }
                assert said == expected
                assert json.loads(text(result)) == expected
            before = datetime.now(ZoneInfo("Asia/Tokyo")).replace(microsecond=0)
            answer: Any = (await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})).structured_content
            after = datetime.now(ZoneInfo("Asia/Tokyo"))
            when = datetime.fromisoformat(answer["datetime"])
            assert before <= when <= after
            assert answer == moment("Asia/Tokyo", when)
            wrong = {"source_timezone": "UTC", "time": "25:00", "target_timezone": "UTC"}
            refused = await client.call_tool("convert_time", wrong)
            assert (refused.is_error, text(refused)) == (
                True,
                "Error executing tool convert_time: Invalid time format. Expected HH:MM [24-hour format]",
            )
            with pytest.raises(typedmcp.InvalidParamsError, match="Unknown tool: none"):
                await client.call_tool("none")

    run(main)


# mcp-server-git


@both_eras
def test_git_reads_and_changes_a_repository(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
        first = commit(tmp_path, "Begin")
        (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
        second = commit(tmp_path, "Go on, ü")
        git(tmp_path, "config", "user.name", "Bob")
        git(tmp_path, "config", "user.email", "bob@example.org")

        async with connected(GIT, "--repository", str(tmp_path), revisions=[revision]) as client:

            async def call(tool: str, **arguments: Any) -> str:
                result = await client.call_tool(f"git_{tool}", {"repo_path": str(tmp_path), **arguments})
                assert not result.is_error, text(result)
                return text(result)

            assert [tool.name async for tool in client.tools()] == [
                f"git_{name}"
                for name in (
                    "status", "diff_unstaged", "diff_staged", "diff", "commit", "add", "reset", "log",
                    "create_branch", "checkout", "show", "branch",
                )
            ]  # fmt: skip
            clean = "On branch main\nnothing to commit, working tree clean"
            assert await call("status") == f"Repository status:\n{clean}"
            entries = [
                f"Commit: {hash}\nAuthor: Ada\nDate: 2026-01-02 03:04:05+00:00\nMessage: {message}\n\n"
                for hash, message in ((second, "Go on, ü"), (first, "Begin"))
            ]
            assert await call("log") == "Commit history:\n" + "\n".join(entries)
            assert await call("log", max_count=1) == f"Commit history:\n{entries[0]}"
            assert await call("show", revision=second) == (
                f"commit {second}\nAuthor: Ada <ada@example.org>\nDate:   2026-01-02 03:04:05 +0000\n\n"
                "    Go on, ü\n\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n"
            )
            assert await call("show", revision=f"{first}:a.txt") == "one\n"
            assert await call("diff", target=first) == f"Diff with {first}:\n{git(tmp_path, 'diff', first)}"

            (tmp_path / "a.txt").write_text("one\n2\n", encoding="utf-8")
            (tmp_path / "b.txt").write_text("b\n", encoding="utf-8")
            assert await call("status") == f"Repository status:\n{git(tmp_path, 'status')}"
            assert await call("diff_unstaged") == f"Unstaged changes:\n{git(tmp_path, 'diff')}"
            assert await call("add", files=["a.txt"]) == "Files staged successfully"
            assert await call("diff_staged") == f"Staged changes:\n{git(tmp_path, 'diff', '--cached')}"
            assert "+2" in await call("diff_staged", context_lines=0)
            assert await call("reset") == "All staged changes reset"
            assert git(tmp_path, "diff", "--cached") == ""

            assert await call("create_branch", branch_name="side", base_branch="main") == (
                "Created branch 'side' from 'main'"
            )
            assert await call("checkout", branch_name="side") == "Switched to branch 'side'"
            await call("add", files=["."])
            done = await call("commit", message="On the side")
            third = git(tmp_path, "rev-parse", "side")
            assert done == f"Changes committed successfully with hash {third}"
            assert git(tmp_path, "log", "--format=%an %s", "-1", third) == "Bob On the side"
            assert git(tmp_path, "show", f"{third}:a.txt") == "one\n2"
            assert git(tmp_path, "rev-parse", f"{third}^") == second
            assert await call("branch", branch_type="local") == "  main\n* side"
            assert await call("branch", branch_type="all", not_contains=third) == "  main"

            for tool, arguments, words in (
                ("git_commit", {"message": "Nothing"}, "No changes staged for commit."),
                ("git_checkout", {"branch_name": "none"}, "Ref 'none' did not resolve to an object"),
                ("git_status", {"repo_path": str(tmp_path.parent)}, "is outside the allowed repository"),
            ):
                refused = await client.call_tool(tool, {"repo_path": str(tmp_path), **arguments})
                assert refused.is_error is True
                assert words in text(refused)
            with pytest.raises(typedmcp.InvalidParamsError, match="Unknown tool: git_none"):
                await client.call_tool("git_none")

    run(main)


def commit(folder: Path, message: str) -> str:
    """Commit all files of a folder, and return the hash."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z"}
    committer = {name.replace("AUTHOR", "COMMITTER"): value for name, value in who.items()}
    env = {**os.environ, **who, **committer, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=10).stdout.rstrip("\n")
