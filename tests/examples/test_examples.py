"""Every example runs and prints what it should."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import urlopen

import pytest

import mcpspec
import typedmcp
from tests.cases import each
from tests.examples.running import EXAMPLES, output, run, serving
from tests.redis_server import redis_server
from typedmcp import text_of
from typedmcp.revisions.features import DIALECT, SUPPORTED

T = TypeVar("T")

KEY = "a key that both workers share"


def run_limited(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. Fail if it takes too long."""

    async def limited() -> T:
        return await asyncio.wait_for(main, 60)

    return asyncio.run(limited())


def test_the_readme_lists_exactly_the_examples() -> None:
    named = set(re.findall(r"^\| \[[\w./]+\]\(([\w.]+)\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    assert named == {path.name for path in EXAMPLES.glob("*.py")} | {"apps", "deploy"}


@each("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_has_a_docstring(path: Any) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_one_file_starts_itself_as_the_server() -> None:
    assert output("one_file.py") == [
        "tools: add divide",
        f"revision: {DIALECT}",
        "2 + 3 = 5",
        "1 / 0 fails: True cannot divide by zero",
        "two + 3 fails: True a: expected integer, got string",
    ]


WEATHER = [
    "instructions: Call get_alerts before you recommend going outside.",
    "Bergen: rain, 6 to 9 degrees",
    "Bergen: rain, 5 to 9 degrees",
    'alerts: ["Flooding in low-lying streets"]',
    "unknown city 'Atlantis'; known: Bergen, Cairo, Nuuk",
    'cities: ["Bergen","Cairo","Nuuk"]',
    'Cairo now: {"sky":"sun","low":17,"high":31}',
    "cities with N: ['Nuuk']",
    "resources/read (id 8): resource not found: weather://Atlantis/now (-32602)",
    "user: I am going to Nuuk for 2 days. Check the forecast and the alerts, then tell me what to pack.",
]


def test_the_weather_client_starts_the_weather_server() -> None:
    assert output("weather_client.py") == WEATHER


def test_the_weather_client_calls_the_weather_server_over_http() -> None:
    with serving("weather.py", "http", PORT="0") as url:
        assert output("weather_client.py", f"{url}/mcp") == WEATHER


@each("revision", SUPPORTED)
def test_the_weather_server_serves_clients_of_every_revision(revision: str) -> None:
    async def main() -> None:
        command = [sys.executable, str(EXAMPLES / "weather.py")]
        async with typedmcp.connect(command, revisions=[revision]) as client:
            assert client.revision == revision
            arguments = {"city": "Cairo", "days": 1}
            assert await client.call_tool("get_forecast", arguments, result_type=list[dict[str, Any]]) == [
                {"sky": "sun", "low": 17, "high": 31}
            ]
            assert [template.name async for template in client.resource_templates()] == ["now"]
            too_many = await client.call_tool("get_forecast", {"city": "Cairo", "days": 4})
            assert text_of(too_many).startswith("days: expected integer <= 3")

    run_limited(main())


def test_the_catalogue_uses_the_clients_model_in_old_and_new_revisions() -> None:
    described = '{"name":"teapot","price":24.5,"description":"A teapot that you will want to keep."}'
    lines = [
        "  changed: resources list",
        "  changed: resource catalogue://all",
        '  catalogue://all: ["teapot"]',
        f"  catalogue://product/1: {described}",
    ]
    assert output("catalogue.py") == ["on 2026-07-28", *lines, "on 2025-11-25", *lines]


def test_elicitation_returns_typed_forms() -> None:
    assert output("elicitation.py") == [
        "  A table on Friday: how many guests, and where? {'guests': 2, 'place': 'garden'}",
        "booked: 2 guests, garden, on Friday",
        "  A table on Friday: how many guests, and where? {'guests': 7}",
        "  7 guests need a deposit. Continue? {'value': True}",
        "booked: 7 guests, window, on Friday",
        "  A table on Friday: how many guests, and where? None",
        "not booked",
    ]


def test_progress_is_shown_and_a_call_is_cancelled() -> None:
    done = run("progress.py")
    late = "late message: progress of a call that is not open"  # what was on its way when the client cancelled
    assert {*done.stderr.splitlines()} <= {late}
    *shown, cancelled = done.stdout.splitlines()
    assert shown == [
        "three loaves:",
        "  1 of 3: loaf 1 is done",
        "  2 of 3: loaf 2 is done",
        "  3 of 3: loaf 3 is done",
        "3 loaves",
        "a million:",
    ]
    assert re.fullmatch(r"cancelled after [1-9]\d* of 1000000", cancelled)


def test_a_listener_is_notified_of_tools_and_resources() -> None:
    assert output("notifications.py") == [
        "notes: 'buy milk'",
        "tools: ['write', 'wipe']",
        "notes: 'buy milk\\nand bread'",
        "notes: ''",
        "tools: ['write']",
    ]


def test_middleware_wraps_the_mounted_server() -> None:
    done = run("middleware.py")
    assert done.stdout.splitlines() == [
        "['stock_count', 'stock_take']",
        "lamps left: 2",
        "lamps: 2",
        "beds: no item 'bed'",
    ]
    times = re.sub(r"\d+\.\d ms", "… ms", done.stderr).splitlines()
    calls = ["stock_take", "stock_count", "stock_count"]
    assert times == ["tools/list: … ms", *(f"tools/call {name}: … ms" for name in calls)]


REVISIONS_OVER_HTTP = [
    "  progress 1",
    "Hello! You speak 2024-11-05, without a session id.",
    "  progress 1",
    "Hello! You speak 2025-03-26, with a session id.",
    "  progress 1",
    "Hello! You speak 2025-06-18, with a session id.",
    "  progress 1",
    "Hello! You speak 2025-11-25, with a session id.",
    "  progress 1",
    "  progress 1",
    "Hello! You speak 2026-07-28, without a session id.",
]


def test_the_http_example_calls_every_revision() -> None:
    assert output("sse_and_http.py") == REVISIONS_OVER_HTTP


def test_the_http_example_serves_both_kinds_of_http() -> None:
    async def first_tool(url: str, revision: str) -> str:
        async with typedmcp.connect(url, revisions=[revision]) as client:
            return (await client.list_tools()).tools[0].name

    with serving("sse_and_http.py", "serve", PORT="0") as url:
        assert run_limited(first_tool(f"{url}/sse", "2024-11-05")) == "greet"
        assert run_limited(first_tool(f"{url}/mcp", "2026-07-28")) == "greet"


def test_the_fastapi_example_calls_itself() -> None:
    assert output("fastapi_app.py") == ["2 tasks", '["water the plants","feed the cat"]']


def test_uvicorn_serves_the_fastapi_example() -> None:
    async def add(url: str) -> str:
        async with typedmcp.connect(url) as client:
            return text_of(await client.call_tool("add", {"task": "sleep"}))

    with serving("-m", "uvicorn", "fastapi_app:app", "--port", "0") as url:
        assert run_limited(add(f"{url}/mcp")) == "2 tasks"
        with urlopen(f"{url}/todo") as page:  # noqa: S310  # our own URL
            assert json.load(page) == ["water the plants", "sleep"]


def test_fastapi_takes_and_returns_the_types_of_the_protocol() -> None:
    tool, result, rejected, schemas = output("fastapi_types.py")
    assert ast.literal_eval(tool)[0].keys() == {"name", "description", "inputSchema"}
    assert ast.literal_eval(result) == {"content": [{"type": "text", "text": "HELLO"}]}
    assert rejected == "422 Input should be a valid string"
    assert schemas == "['CallToolRequestParams', 'CallToolResult', 'Tool']"


def test_the_recorder_forwards_messages_and_describes_them() -> None:
    lines = [line.split(" ", 4) for line in output("recorder.py")]
    methods = ["server/discover", "tools/call"]
    assert [line[:4] for line in lines] == [
        [DIALECT, *of, method] for method in methods for of in (["client", "request"], ["server", "result"])
    ]
    assert [line[4].partition("(")[0] for line in lines[2:]] == ["CallToolRequestParams", "CallToolResult"]


def test_the_recorder_passes_bytes_on_unchanged_and_names_undeclared_members(tmp_path: Path) -> None:
    messages = [
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"a","version":"1"},"x-mine":1}}',
        b'{"jsonrpc":"2.0","id":2, "method":"tools/call", "params":{"name":7}}',
        b"nonsense",
    ]
    echo = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"]
    sent = b"\n".join([*messages, b""])
    command = [sys.executable, str(EXAMPLES / "recorder.py"), str(tmp_path / "log"), *echo]
    assert subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True).stdout == sent
    found = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    handshake, call, nonsense = [line for line in found if line["from"] == "client"]
    assert (handshake["revision"], handshake["unknown"]) == ("2025-06-18", ['["x-mine"]'])
    assert call["error"] == "name: expected string, got 7"
    assert nonsense["kind"] == "invalid"


def test_the_registry_validator_says_which_revisions_accept_the_tools() -> None:
    files, weather = "\n".join(output("registry_validator.py")).split("weather.json\n")
    assert weather.splitlines() == [f"  {version}: accepted" for version in mcpspec.VERSIONS]
    assert (
        files.count("    tools[0].inputSchema.properties.path: expected object, got true") == len(mcpspec.VERSIONS) - 1
    )
    assert files.splitlines()[-2:] == [f"  {mcpspec.LATEST}: accepted", "    ignores tools[0].icon"]


@each("text", ["{", "[]", '{"tools": 1}', '{"tools": [{"name": "a"}]}'])
def test_the_registry_validator_fails_for_files_that_no_revision_accepts(text: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text(text)
    command = [sys.executable, str(EXAMPLES / "registry_validator.py"), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_the_pydantic_example_validates_arguments() -> None:
    assert output("pydantic_codec.py") == [
        "order: item number",
        "12 × pen",
        "number: Input should be less than or equal to 100",
    ]


def test_the_gateway_forwards_the_same_revision_unchanged_and_converts_others() -> None:
    _, tool, result, _, newer_tool, newer_result = [line.partition(": ")[2] for line in output("gateway.py")]
    assert ast.literal_eval(tool) == {"name": "shout", "inputSchema": {"type": "object"}, "x-price": 0.05}
    content = [{"type": "text", "text": "HELLO"}]
    assert ast.literal_eval(result) == {"content": content, "x-spent": 0.05}
    assert ast.literal_eval(newer_tool) == {"name": "shout", "inputSchema": {"type": "object"}}
    converted = ast.literal_eval(newer_result)
    assert converted.pop("_meta")["io.modelcontextprotocol/serverInfo"]["name"] == "gateway"
    assert converted == {"resultType": "complete", "content": content}


def test_the_custom_transport_compresses() -> None:
    first, last = output("custom_transport.py")
    assert first == "1000 green bottles, hanging on the wall"
    characters, received = map(int, re.findall(r"\d+", last))
    assert 0 < received < characters / 8


@pytest.mark.long
def test_several_workers_share_changes() -> None:
    with redis_server() as redis:
        call, change = output("several_workers.py", MCP_REDIS=redis.url)
    assert re.fullmatch(r"calling http://\S+/mcp on 2025-11-25: announced by worker \d+", call)
    assert re.fullmatch(rf"listening to http://\S+/mcp on {DIALECT}: board://news has changed", change)


def test_the_workers_example_says_how_to_set_redis() -> None:
    (line,) = output("several_workers.py")
    assert line.startswith("Set the URL of Redis")


@pytest.mark.long
def test_the_deployed_application_works_on_every_worker_in_old_and_new_revisions() -> None:
    async def count(url: str, revision: str) -> str:
        steps: list[float] = []
        async with typedmcp.connect(url, revisions=[revision]) as client:
            result = await client.call_tool("count", on_progress=lambda step: steps.append(step.progress))
        assert steps == [1, 2, 3, 4, 5]
        return text_of(result)

    async def main(*urls: str) -> list[str]:
        return await asyncio.gather(*(count(url, r) for url in urls for r in ("2026-07-28", "2025-11-25")))

    command = ["-m", "uvicorn", "app:app", "--port", "0", "--timeout-graceful-shutdown", "5"]
    with redis_server() as redis:
        shared = {"MCP_HOSTS": "127.0.0.1", "MCP_KEY": KEY, "MCP_REDIS": redis.url}
        folder = EXAMPLES / "deploy"
        with serving(*command, folder=folder, **shared) as one, serving(*command, folder=folder, **shared) as other:
            counted = run_limited(main(f"{one}/mcp", f"{other}/mcp"))
    assert all(re.fullmatch(r"worker \d+ counted to five", text) for text in counted)
    assert len(set(counted)) == 2
