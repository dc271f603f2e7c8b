"""Every example does what it says."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.request import urlopen

import pytest

import mcpspec
import typedmcp
from tests.examples.running import EXAMPLES, output, run, serving
from tests.redis_server import redis_server
from typedmcp import text_of

T = TypeVar("T")

KEY = "a key that both workers have"


def timed(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; one that hangs fails."""

    async def limited() -> T:
        return await asyncio.wait_for(main, 30)

    return asyncio.run(limited())


def test_the_readme_names_every_example_and_nothing_else() -> None:
    named = set(re.findall(r"^\| \[[\w./]+\]\(([\w.]+)\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    assert named == {path.name for path in EXAMPLES.glob("*.py")} | {"deploy"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_what_it_is(path: Any) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_one_file_is_its_own_server_and_client() -> None:
    assert output("one_file.py") == [
        "the tools: add divide",
        "spoken: 2026-07-28",
        "2 + 3 = 5",
        "1 / 0 fails: True nothing can be divided by zero",
        "two + 3 fails: True a: expected int, got str",
    ]


WEATHER = [
    "instructions: Ask get_alerts before recommending to go outside.",
    "Bergen: rain, 6 to 9 degrees",
    "Bergen: rain, 5 to 9 degrees",
    'alerts: ["Flooding in low-lying streets"]',
    "nothing is known of 'Atlantis'; try one of: Bergen, Cairo, Nuuk",
    'cities: ["Bergen","Cairo","Nuuk"]',
    'Cairo now: {"sky":"sun","low":17,"high":31}',
    "cities with N: ['Nuuk']",
    "resources/read (id 8): resource not found: weather://Atlantis/now (-32602)",
    "user says: I am going to Nuuk for 2 days. Look at the forecast and at the alerts, then tell me what to pack.",
]


def test_the_weather_client_starts_the_weather_server() -> None:
    assert output("weather_client.py") == WEATHER


def test_the_weather_client_calls_the_weather_server_over_http() -> None:
    with serving("weather.py", "http", PORT="0") as url:
        assert output("weather_client.py", f"{url}/mcp") == WEATHER


@pytest.mark.parametrize("revision", mcpspec.VERSIONS)
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
            assert text_of(too_many).startswith("days: expected int <= 3")

    timed(main())


def test_the_catalogue_has_descriptions_written_by_the_clients_model_on_either_kind_of_wire() -> None:
    described = '{"name":"teapot","price":24.5,"description":"A teapot that you will want to keep."}'
    said = [
        "  changed: resources list",
        "  changed: resource catalogue://all",
        '  catalogue://all: ["teapot"]',
        f"  catalogue://product/1: {described}",
    ]
    assert output("catalogue.py") == ["on 2026-07-28", *said, "on 2025-11-25", *said]


def test_forms_come_back_as_what_was_asked_for() -> None:
    assert output("elicitation.py") == [
        "  A table on Friday: for how many, and where? {'guests': 2, 'place': 'garden'}",
        "booked: 2 guests, garden, on Friday",
        "  A table on Friday: for how many, and where? {'guests': 7}",
        "  7 guests need a deposit. Go on? {'value': True}",
        "booked: 7 guests, window, on Friday",
        "  A table on Friday: for how many, and where? None",
        "nothing was booked",
    ]


def test_progress_is_shown_and_a_cancelled_call_is_noticed() -> None:
    *shown, given_up = output("progress.py")
    assert shown == [
        "three loaves:",
        "  1 of 3: loaf 1 is done",
        "  2 of 3: loaf 2 is done",
        "  3 of 3: loaf 3 is done",
        "3 loaves",
        "a million:",
    ]
    assert re.fullmatch(r"given up after [1-9]\d* of 1000000", given_up)


def test_a_listener_hears_of_tools_and_of_the_resource() -> None:
    assert output("notifications.py") == [
        "notes are now: 'buy milk'",
        "tools are now: ['write', 'wipe']",
        "notes are now: 'buy milk\\nand bread'",
        "notes are now: ''",
        "tools are now: ['write']",
    ]


def test_middleware_is_around_the_mounted_server_with_its_database() -> None:
    done = run("middleware.py")
    assert done.stdout.splitlines() == [
        "['stock_count', 'stock_take']",
        "lamps left: 2",
        "lamps: 2",
        "beds: there is no 'bed'",
    ]
    times = re.sub(r"\d+\.\d ms", "… ms", done.stderr).splitlines()
    calls = ["stock_take", "stock_count", "stock_count"]
    assert times == ["tools/list: … ms", *(f"tools/call {name}: … ms" for name in calls)]


REVISIONS_OVER_HTTP = [
    "  progress 1",
    "Hello! I hear you on 2024-11-05, without a session id.",
    "  progress 1",
    "Hello! I hear you on 2025-03-26, in a session.",
    "  progress 1",
    "Hello! I hear you on 2025-06-18, in a session.",
    "  progress 1",
    "Hello! I hear you on 2025-11-25, in a session.",
    "  progress 1",
    "  progress 1",
    "Hello! I hear you on 2026-07-28, without a session id.",
]


def test_every_revision_has_its_kind_of_http() -> None:
    assert output("sse_and_http.py") == REVISIONS_OVER_HTTP


def test_both_kinds_of_http_are_served_until_the_server_is_told_to_end() -> None:
    async def tool_at(url: str, revision: str) -> str:
        async with typedmcp.connect(url, revisions=[revision]) as client:
            return (await client.list_tools()).tools[0].name

    with serving("sse_and_http.py", "serve", PORT="0") as url:
        assert timed(tool_at(f"{url}/sse", "2024-11-05")) == "greet"
        assert timed(tool_at(f"{url}/mcp", "2026-07-28")) == "greet"


def test_the_fastapi_application_serves_itself() -> None:
    assert output("fastapi_app.py") == ["2 things to do", '["water the plants","feed the cat"]']


def test_uvicorn_serves_the_fastapi_application() -> None:
    async def add(url: str) -> str:
        async with typedmcp.connect(url) as client:
            return text_of(await client.call_tool("add", {"task": "sleep"}))

    with serving("-m", "uvicorn", "fastapi_app:app", "--port", "0") as url:
        assert timed(add(f"{url}/mcp")) == "2 things to do"
        with urlopen(f"{url}/todo") as page:  # noqa: S310  # a URL of our own
            assert json.load(page) == ["water the plants", "sleep"]


def test_a_handler_on_pydantic_checks_what_it_is_called_with() -> None:
    assert output("pydantic_codec.py") == [
        "order takes item number",
        "12 × pen",
        "number: Input should be less than or equal to 100",
    ]


def test_a_gateway_keeps_unknown_members_for_the_same_revision_and_translates_for_another() -> None:
    _, tool, answer, _, newer_tool, newer_answer = [line.partition(": ")[2] for line in output("gateway.py")]
    assert ast.literal_eval(tool) == {"name": "shout", "inputSchema": {"type": "object"}, "x-price": 0.05}
    content = [{"type": "text", "text": "HELLO"}]
    assert ast.literal_eval(answer) == {"content": content, "x-spent": 0.05}
    assert ast.literal_eval(newer_tool) == {"name": "shout", "inputSchema": {"type": "object"}}
    translated = ast.literal_eval(newer_answer)
    assert translated.pop("_meta")["io.modelcontextprotocol/serverInfo"]["name"] == "gateway"
    assert translated == {"resultType": "complete", "content": content}


def test_a_transport_of_ones_own_compresses_what_goes_through_it() -> None:
    first, told = output("custom_transport.py")
    assert first == "1000 green bottles, hanging on the wall"
    characters, received = map(int, re.findall(r"\d+", told))
    assert 0 < received < characters / 8


def test_workers_hear_of_each_others_changes() -> None:
    with redis_server() as redis:
        spoken, heard = output("several_workers.py", MCP_REDIS=redis.url)
    assert re.fullmatch(r"speaking 2025-11-25 to http://\S+/mcp: announced by worker \d+", spoken)
    assert re.fullmatch(r"listening on 2026-07-28 to http://\S+/mcp: board://news has changed", heard)


def test_the_example_of_several_workers_says_what_it_needs() -> None:
    (said,) = output("several_workers.py")
    assert said.startswith("Say where Redis is")


def test_the_deployed_application_counts_on_every_worker_for_clients_of_either_kind() -> None:
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
            counted = timed(main(f"{one}/mcp", f"{other}/mcp"))
    assert all(re.fullmatch(r"worker \d+ has counted to five", text) for text in counted)
    assert len(set(counted)) == 2
