"""Groups of servers in memory, as processes and over HTTP, some of which fail."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import typedmcp
import typedmcp_hosts
from tests.cases import each
from tests.client.http.scripted_http import Script, serving
from tests.server.scripted import run
from typedmcp.client import Client
from typedmcp.dialect import structs

Failures = list[tuple[str, Exception]]


@dataclass
class Forecast:
    city: str


def weather() -> typedmcp.Server:
    """Return a server with tools, prompts and resources."""
    server = typedmcp.Server("weather", page=2)

    @server.tool
    def forecast(city: str) -> Forecast:
        return Forecast(city)

    @server.tool
    def fail() -> str:
        raise typedmcp.ToolError("no")

    def umlaut() -> str:
        return "grün"

    with pytest.warns(UserWarning, match="some clients reject"):
        server.add_tool(umlaut, name="wetter_ü")

    @server.prompt
    def report(city: str) -> str:
        return f"Report on {city}."

    @server.resource("weather://now")
    def now() -> str:
        return "rain"

    @server.resource("weather://{city}/{day}")
    def at(city: str, day: str) -> str:
        return f"{city}, {day}"

    return server


def returning(text: str) -> Callable[[], str]:
    return lambda: text


def clock() -> typedmcp.Server:
    """Return a server with tools only."""
    server = typedmcp.Server("clock")
    server.add_tool(returning("now"), name="now")
    return server


def files(scheme: str = "file", **found: str) -> typedmcp.Server:
    """Return a server with resources only."""
    server = typedmcp.Server(f"files of {scheme}")
    for name, text in found.items():
        server.add_resource(returning(text), f"{scheme}:///{name}")
    return server


class FailingLists:
    """A server whose lists fail."""

    async def list_tools(self, params: Any, ctx: typedmcp.Context) -> structs.ListToolsResult:
        raise RuntimeError("broken")

    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> structs.CallToolResult:
        return structs.CallToolResult(content=[structs.TextContent(text="works")], result_type="complete")


def ignore(_: Any, __: Any = None) -> None:
    """Ignore an expected failure."""


@asynccontextmanager
async def grouped(
    servers: Any, failures: Failures | None = None, **options: Any
) -> AsyncGenerator[typedmcp_hosts.ClientGroup]:
    """Open a group that collects failures. Without a list any failure fails the test."""
    noted = [] if failures is None else failures

    def note(name: str, error: Exception) -> None:
        noted.append((name, error))

    async with typedmcp_hosts.connect_all(servers, on_failure=note, **options) as group:
        yield group
    if failures is None:
        assert noted == []


# Names


def test_tools_of_all_servers_are_listed_and_called_under_prefixed_names() -> None:
    async def main() -> None:
        async with grouped({"weather": weather(), "clock": clock()}) as group:
            assert list(group.clients) == ["weather", "clock"]
            names = ["weather_forecast", "weather_fail", "weather_wetter_ü", "clock_now"]
            assert [tool.name for tool in await group.list_tools()] == names
            assert [tool.name async for tool in group.tools()] == names
            assert typedmcp.text_of(await group.call_tool("clock_now")) == "now"
            assert typedmcp.text_of(await group.call_tool("weather_wetter_ü")) == "grün"
            assert await group.call_tool("weather_forecast", Forecast("Oslo"), result_type=Forecast) == Forecast("Oslo")
            with pytest.raises(typedmcp.ToolError, match="no"):
                await group.call_tool("weather_fail", raise_on_error=True)

    run(main)


def test_names_have_no_prefix_with_one_server() -> None:
    async def main() -> None:
        off = {"command": "no-such-command", "disabled": True}
        async with grouped({"clock": clock(), "off": off}) as group:
            assert [tool.name for tool in await group.list_tools()] == ["now"]
            assert typedmcp.text_of(await group.call_tool("now")) == "now"
            assert list(group.clients) == ["clock"]

    run(main)


def test_names_do_not_depend_on_which_servers_are_connected() -> None:
    async def main() -> None:
        async with grouped({"clock": clock(), "gone": ["no-such-command"]}, []) as group:
            assert [tool.name for tool in await group.list_tools()] == ["clock_now"]

    run(main)


@each("separator", ["__", ".", "/", ""])
def test_the_separator_can_be_chosen(separator: str) -> None:
    async def main() -> None:
        async with grouped({"a": clock(), "b": clock()}, separator=separator) as group:
            assert [tool.name for tool in await group.list_tools()] == [f"a{separator}now", f"b{separator}now"]
            await group.call_tool(f"b{separator}now", raise_on_error=True)

    run(main)


def named(*names: str) -> typedmcp.Server:
    """Return a server whose tools return the name of the server."""
    server = typedmcp.Server()
    for name in names:
        server.add_tool(returning(name), name=name)
    return server


@each("is_listed", [False, True], ids=["unlisted", "listed"])
def test_the_longest_prefix_wins_unless_another_server_listed_the_tool(is_listed: bool) -> None:
    async def main() -> None:
        servers = {"a": named("b_c", "b_d"), "a_b": named("c"), "a_b_": named("e")}
        failures: Failures = []
        async with grouped(servers, failures) as group:
            if is_listed:
                names = [tool.name for tool in await group.list_tools()]
                assert names == ["a_b_d", "a_b_c", "a_b__e"]
                (shadowed,) = failures
                assert shadowed[0] == "a"
                assert str(shadowed[1]) == "tools: 'b_c' is left out, since a_b has 'a_b_c'"
            assert typedmcp.text_of(await group.call_tool("a_b_c")) == "c"
            assert typedmcp.text_of(await group.call_tool("a_b__e")) == "e"
            if is_listed:
                assert typedmcp.text_of(await group.call_tool("a_b_d")) == "b_d"
            else:
                with pytest.raises(typedmcp.InvalidParamsError):
                    await group.call_tool("a_b_d")

    run(main)


def test_tools_that_the_configuration_switches_off_are_neither_listed_nor_called(script: str) -> None:
    async def use() -> None:
        members = {"command": sys.executable, "args": [script], "disabledTools": ["where"]}
        async with typedmcp_hosts.connect_all(
            {"mcpServers": {"a": members, "b": {**members, "disabledTools": []}}}
        ) as group:
            assert [tool.name for tool in await group.list_tools()] == ["b_where"]
            await group.call_tool("b_where")
            with pytest.raises(
                typedmcp.UsageError, match="'a_where' is switched off by disabledTools of the server 'a'"
            ):
                await group.call_tool("a_where")

    run(use)


def test_an_unknown_name_raises_usage_error_with_the_known_names() -> None:
    async def main() -> None:
        many = named(*(f"t{number:02}" for number in range(30)))
        async with grouped({"clock": clock(), "many": many}) as group:
            with pytest.raises(
                typedmcp.UsageError, match="tools: unknown name 'now'; names begin with clock_ or many_"
            ):
                await group.call_tool("now")
            await group.list_tools()
            with pytest.raises(typedmcp.UsageError, match=r"known: clock_now, many_t00, .*, many_t18 and 11 more"):
                await group.call_tool("now")
            with pytest.raises(typedmcp.UsageError, match="prompts: unknown name"):
                await group.get_prompt("now")
            with pytest.raises(typedmcp.UsageError, match="unknown name 'clock_'"):
                await group.call_tool("clock_")
        async with grouped({}) as group:
            assert await group.list_tools() == []
            with pytest.raises(typedmcp.UsageError, match="the group has no servers"):
                await group.call_tool("now")

    run(main)


def test_a_call_to_a_failed_server_names_its_failure() -> None:
    async def main() -> None:
        async with grouped({"clock": clock(), "gone": ["no-such-command"]}, []) as group:
            with pytest.raises(typedmcp.UsageError, match=r"'gone' is not connected: .*no-such-command") as caught:
                await group.call_tool("gone_x")
            assert caught.value.__cause__ is group.failures["gone"]
            with pytest.raises(typedmcp.UsageError, match="unknown server 'other'; known: clock"):
                await group.read_resource("x:///y", "other")

    run(main)


def test_prompts_are_listed_and_called_under_prefixed_names() -> None:
    async def main() -> None:
        async with grouped({"weather": weather(), "clock": clock()}) as group:
            assert [prompt.name for prompt in await group.list_prompts()] == ["weather_report"]
            prompt = await group.get_prompt("weather_report", {"city": "Oslo"})
            assert typedmcp.text_of(prompt) == "Report on Oslo."

    run(main)


# Resources


def test_resources_and_templates_are_listed_without_prefixes() -> None:
    async def main() -> None:
        servers = {"weather": weather(), "clock": clock(), "files": files(a="1", b="2", c="3")}
        async with grouped(servers) as group:
            uris = ["weather://now", "file:///a", "file:///b", "file:///c"]
            assert [resource.uri for resource in await group.list_resources()] == uris
            assert [each.uri_template for each in await group.list_resource_templates()] == ["weather://{city}/{day}"]

    run(main)


@each("revisions", [["2026-07-28"], ["2025-11-25"]], ids=str)
@each("is_listed", [False, True], ids=["unlisted", "listed"])
def test_a_resource_is_read_from_the_server_that_has_it(is_listed: bool, revisions: list[str]) -> None:
    async def main() -> None:
        servers = {"clock": clock(), "first": files(a="1", b="2"), "second": files(b="3", c="4"), "weather": weather()}
        async with grouped(servers, revisions=revisions) as group:
            if is_listed:
                await group.list_resources()
                await group.list_resource_templates()
            for uri, text in {"file:///a": "1", "file:///b": "2", "file:///c": "4", "weather://x/y": "x, y"}.items():
                assert typedmcp.text_of(await group.read_resource(uri)) == text
            assert typedmcp.text_of(await group.read_resource("file:///b", "second")) == "3"
            with pytest.raises(typedmcp.InvalidParamsError):
                await group.read_resource("file:///c", server="first")
            with pytest.raises(typedmcp.ResourceNotFoundError, match="file:///none"):
                await group.read_resource("file:///none")

    run(main)


class ResourceServer:
    """A server that has every resource, and records the requested URIs."""

    def __init__(self, *templates: str, error: Exception | None = None) -> None:
        self.templates = templates
        self.error = error
        self.requested: list[str] = []

    def list_resources(self, params: Any, ctx: typedmcp.Context) -> structs.ListResourcesResult:
        return structs.ListResourcesResult(resources=[], ttl_ms=0, cache_scope="private", result_type="complete")

    def list_resource_templates(self, params: Any, ctx: typedmcp.Context) -> structs.ListResourceTemplatesResult:
        found = [structs.ResourceTemplate(name=each, uri_template=each) for each in self.templates]
        return structs.ListResourceTemplatesResult(
            resource_templates=found, ttl_ms=0, cache_scope="private", result_type="complete"
        )

    def read_resource(self, params: Any, ctx: typedmcp.Context) -> structs.ReadResourceResult:
        self.requested.append(params.uri)
        if self.error is not None:
            raise self.error
        contents: list[Any] = [structs.TextResourceContents(uri=params.uri, text="x")]
        return structs.ReadResourceResult(contents=contents, ttl_ms=0, cache_scope="private", result_type="complete")


@each(
    "uri, first",
    [
        ("a://x", "a"),
        ("a://x/now", "now"),
        ("a://x/now/y", "a"),
        ("b://x?day=1", "query"),
        ("c://", "any"),
        ("d://x", "any"),
        ("{odd", "any"),
        ("a://" + "/now" * 2000, "now"),
    ],
    ids=lambda value: value[:12],
)
def test_the_server_with_the_most_specific_template_is_tried_first(uri: str, first: str) -> None:
    async def main() -> None:
        servers = {
            "odd": ResourceServer("c://{city", "c://{city}{city}x", "{a*}{b*}{c*}{d*}{e*}/never"),
            "any": ResourceServer("{+uri}"),
            "a": ResourceServer("a://{city}"),
            "now": ResourceServer("a://{city}/now"),
            "query": ResourceServer("b://{city}{?day}"),
        }
        async with grouped(servers) as group:
            await group.list_resource_templates()
            await group.read_resource(uri)
            assert [name for name, server in servers.items() if server.requested] == [first]

    run(main)


def test_a_server_that_fails_to_read_does_not_stop_the_others() -> None:
    async def main() -> None:
        broken, works = ResourceServer(error=typedmcp.RemoteError(-32000, "broken")), ResourceServer()
        async with grouped({"broken": broken, "works": works}) as group:
            assert typedmcp.text_of(await group.read_resource("x:///y")) == "x"
            works.error = typedmcp.ResourceNotFoundError("x:///y")
            with pytest.raises(typedmcp.RemoteError, match="broken"):
                await group.read_resource("x:///y")
            assert len(broken.requested) == len(works.requested) == 2

    run(main)


# Servers that fail


def test_a_server_that_fails_to_list_is_reported_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        failures: Failures = []
        servers = {"bad": typedmcp.ServerConfig(FailingLists(), on_diagnostic=ignore), "clock": clock()}
        async with grouped(servers, failures) as group:
            assert [tool.name for tool in await group.list_tools()] == ["clock_now"]
            assert [(name, type(error)) for name, error in failures] == [("bad", typedmcp.RemoteError)]
            assert group.failures == {}
            assert typedmcp.text_of(await group.call_tool("bad_x")) == "works"
        with caplog.at_level(logging.WARNING, "typedmcp"):
            async with typedmcp_hosts.connect_all(servers) as group:
                await group.list_tools()
        assert [record.getMessage()[:13] for record in caplog.records] == ["server 'bad':"]

    run(main)


def test_an_exception_in_on_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(name: str, error: Exception) -> None:
        raise RuntimeError(name)

    async def main() -> None:
        async with typedmcp_hosts.connect_all({"a": ["no-such-command"], "clock": clock()}, on_failure=fail) as group:
            assert [tool.name for tool in await group.list_tools()] == ["clock_now"]
        assert "on_failure failed" in caplog.text

    run(main)


SERVER = """
import os, sys, typedmcp
server = typedmcp.Server("files")

@server.tool
def where(name: str = "") -> str:
    return f"{name} {os.environ.get('WHERE')} {os.getcwd()} {sys.argv[1:]}"

@server.resource("files://{path*}")
def read(path: str) -> str:
    return path

if sys.argv[1:2] == ["http"]:
    server.run("http", port=int(sys.argv[2]))
else:
    server.run()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "server ü.py"
    path.write_text(SERVER, encoding="utf-8")
    return str(path)


@pytest.fixture
def url(script: str) -> Generator[str]:
    """Run a server over HTTP in a process, and give its URL."""
    command = [sys.executable, "-W", "error", script, "http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = (re.search(r"running on (http://\S+/mcp)", line) for line in process.stderr)
            yield next(url[1] for url in found if url)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_a_group_of_a_file_connects_to_processes_and_urls_and_records_failures(
    script: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPT", script)
    config: dict[str, Any] = {
        "dateien ü": {
            "command": sys.executable,
            "args": ["-W", "error", "${SCRIPT}", "a b", "${NONE:-ö}"],
            "env": {"WHERE": "here", "PYTHONIOENCODING": "utf-8"},
            "cwd": str(tmp_path),
        },
        "web": {"type": "http", "url": url, "headers": {"X-Team": "${NONE:-blau}"}},
        "missing": {"command": "no-such-command-ü"},
        "nowhere": {"command": sys.executable, "cwd": str(tmp_path / "none")},
        "exits": {"command": sys.executable, "args": ["-c", "import sys; sys.exit(3)"]},
        "refused": {"url": "http://127.0.0.1:1/mcp"},
        "no address": {"url": "localhost:8000"},
        "unset": {"command": "x", "args": ["${NONE}"]},
        "off": {"command": "no-such-command", "disabled": True},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": config}), encoding="utf-8")
    failures: Failures = []

    async def main() -> None:
        async with grouped(file, failures, reconnects=1) as group:
            assert list(group.clients) == ["dateien ü", "web"]
            assert [tool.name for tool in await group.list_tools()] == ["dateien ü_where", "web_where"]
            output = typedmcp.text_of(await group.call_tool("dateien ü_where", {"name": "Ålesund"}))
            assert output == f"Ålesund here {tmp_path} ['a b', 'ö']"
            assert " ['http', " in typedmcp.text_of(await group.call_tool("web_where"))
            assert typedmcp.text_of(await group.read_resource("files://ä/b", "web")) == "ä/b"
            assert set(group.failures) == {"missing", "nowhere", "exits", "refused", "no address", "unset"}
            assert group.failures == dict(failures)
            for name, fault in {
                "missing": "no-such-command-ü", "exits": "exit status 3",
                "no address": "invalid address", "unset": "args: the variable NONE is not set",
            }.items():  # fmt: skip
                assert fault in str(group.failures[name])

    run(main)


# Opening and closing


def test_servers_are_connected_concurrently(tmp_path: Path) -> None:
    """Each server ends when all of them have started."""

    async def main() -> None:
        wait = "while len(os.listdir()) < 8: time.sleep(0.01)"
        code = f"import os, sys, time; open(sys.argv[1], 'w')\n{wait}\nsys.exit(3)"
        servers = {
            name: typedmcp.StdioServerParameters(sys.executable, ["-S", "-c", code, name], cwd=tmp_path)
            for name in map(str, range(8))
        }
        async with grouped({"clock": clock(), **servers}, []) as group:
            assert list(group.clients) == ["clock"]
            assert len(group.failures) == 8
            assert all("exit status 3" in str(error) for error in group.failures.values())

    run(main)


def test_cancelling_open_closes_the_open_connections(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened, closed = asyncio.Event(), list[Client]()
    opening, close = Client.open, Client.close

    async def open_and_tell(self: Client) -> None:
        await opening(self)
        opened.set()

    async def close_and_note(self: Client) -> None:
        await close(self)
        closed.append(self)

    monkeypatch.setattr(Client, "open", open_and_tell)
    monkeypatch.setattr(Client, "close", close_and_note)
    code = "import os, sys; print(os.getpid(), file=open(sys.argv[1], 'w')); sys.stdin.read()"
    pid_file = tmp_path / "pid"

    async def main() -> None:
        group = typedmcp_hosts.connect_all({"hangs": [sys.executable, "-c", code, str(pid_file)], "clock": clock()})
        task = asyncio.create_task(group.open())
        await opened.wait()
        while not (pid_file.exists() and pid_file.read_text()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(closed) == 2
        assert group.failures == {}
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)
        with pytest.raises(typedmcp.UsageError, match="the group has been closed"):
            await group.open()

    run(main)


def test_a_client_that_fails_to_close_does_not_stop_the_others_from_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    close = Client.close

    async def fail(self: Client) -> None:
        await close(self)
        if self.server.info is not None and self.server.info.name == "clock":
            raise RuntimeError("cannot close")

    monkeypatch.setattr(Client, "close", fail)

    async def main() -> None:
        failures: Failures = []
        async with grouped({"clock": clock(), "weather": weather()}, failures) as group:
            weather_client = group.clients["weather"]
        assert [(name, str(error)) for name, error in failures] == [("clock", "cannot close")]
        with pytest.raises(typedmcp.ConnectionLostError):
            await weather_client.ping()

    run(main)


def test_a_group_can_be_opened_with_await_and_closed_twice() -> None:
    async def main() -> None:
        group = await typedmcp_hosts.connect_all({"clock": clock()})
        await group.open()
        await group.call_tool("now")
        await group.close()
        await group.close()
        with pytest.raises(typedmcp.ConnectionLostError):
            await group.call_tool("now")

    run(main)


# Configurations


def test_targets_entries_and_members_can_be_mixed(script: str) -> None:
    async def main() -> None:
        entry = typedmcp_hosts.ServerEntry("entry", clock())
        servers: dict[str, Any] = {
            "a": [sys.executable, script],
            "b": typedmcp.StdioServerParameters(sys.executable, [script]),
            "c": clock(),
            "d": entry,
            "e": {"command": sys.executable, "args": [script]},
        }
        nested = {"servers": {"x": servers["e"]}}
        async with grouped(servers) as group:
            assert list(group.clients) == ["a", "b", "c", "d", "e"]
            assert len(await group.list_tools()) == 5
        async with grouped(typedmcp_hosts.load_config(nested)) as group:
            await group.call_tool("where", raise_on_error=True)
        async with grouped(nested) as group:
            await group.call_tool("where", raise_on_error=True)

    run(main)


def test_an_unreadable_configuration_raises_usage_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(typedmcp.UsageError, match="No such file"):
        typedmcp_hosts.connect_all(tmp_path / "none.json")
    file = tmp_path / "list.json"
    file.write_text("[]")
    with pytest.raises(typedmcp.UsageError, match="expected an object, got list"):
        typedmcp_hosts.connect_all(file)


def test_an_entry_that_is_not_valid_fails_alone() -> None:
    async def main() -> None:
        entries = {"bad": {"command": "x", "args": 1}, "weather": weather()}
        async with typedmcp_hosts.connect_all(entries, on_failure=ignore) as group:
            assert list(group.clients) == ["weather"]
            assert "server 'bad': args: expected array or null, got integer" in str(group.failures["bad"])

    run(main)


def test_an_unknown_option_of_connect_all_raises_type_error() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="colour"):
            await typedmcp_hosts.connect_all({"clock": clock()}, colour="red")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    run(main)


def test_headers_of_an_entry_override_those_of_the_options() -> None:
    async def main() -> None:
        scripts = [Script(), Script()]
        async with serving(scripts[0]) as first, serving(scripts[1]) as second:
            config = {
                "first": {"url": first, "headers": {"AUTHORIZATION": "Bearer own", "X-Team": "blue"}},
                "second": {"url": second},
                "clock": clock(),
            }
            async with grouped(config, headers={"x-team": "red", "X-Other": "1"}, auth="common"):
                pass
        sent = [
            [script.requests[0].headers[name] for name in ("authorization", "x-team", "x-other")] for script in scripts
        ]
        assert sent == [["Bearer own", "blue", "1"], ["Bearer common", "red", "1"]]

    run(main)


def test_options_for_urls_apply_to_urls_only() -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        options: dict[str, Any] = {
            "auth": "token",
            "headers": {"A": "b"},
            "reconnects": 1,
            "on_diagnostic": reports.append,
        }
        config = {"clock": clock(), "x": {"url": "http://127.0.0.1:1", "colour": "red"}}
        async with grouped(config, [], revisions=["2025-11-25"], **options) as group:
            assert group.clients["clock"].revision == "2025-11-25"
            assert isinstance(group.failures["x"], typedmcp.ConnectionLostError)
        assert [report.text for report in reports] == [
            "configuration: server 'x': colour: unknown for a server with a url"
        ]

    run(main)


def test_text_of_a_server_cannot_forge_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Evil:
        def list_tools(self, params: Any, ctx: typedmcp.Context) -> Any:
            raise typedmcp.RemoteError(-32000, "no\nWARNING: forged\x1b[2J\u202e")

    async def main() -> None:
        with caplog.at_level(logging.WARNING, "typedmcp"):
            async with typedmcp_hosts.connect_all({"evil": Evil()}) as group:
                await group.list_tools()
        (record,) = caplog.records
        message = record.getMessage()
        assert len(message.splitlines()) == 1
        assert "forged" in message
        assert message.isprintable()

    run(main)


def test_a_server_that_is_slow_to_start_joins_the_group_later() -> None:
    may_answer = asyncio.Event()

    class Slow(Script):
        async def answer(self, request: Any, wire: Any) -> None:
            await may_answer.wait()
            await super().answer(request, wire)

    async def main() -> None:
        failures: Failures = []
        async with serving(Slow()) as url:
            group = typedmcp_hosts.connect_all(
                {"slow": url, "weather": weather()},
                on_failure=lambda name, error: failures.append((name, error)),
                wait_seconds=0.0,
            )
            async with group:
                while not group.clients:
                    await asyncio.sleep(0.01)
                assert list(group.clients) == ["weather"]
                assert "weather_forecast" in [tool.name for tool in await group.list_tools()]
                text = "not connected within 0 s (wait_seconds); it joins the group when it is"
                assert ("slow", text) in [(name, str(error)) for name, error in failures]
                assert group.failures == {}
                with pytest.raises(typedmcp.UsageError, match="'slow' is not connected yet"):
                    await group.call_tool("slow_echo")
                may_answer.set()
                while "slow" not in group.clients:
                    await asyncio.sleep(0.01)
                assert list(group.clients) == ["slow", "weather"]

    run(main)


def test_a_group_that_is_closed_waits_for_no_server() -> None:
    class Silent(Script):
        async def answer(self, request: Any, wire: Any) -> None:
            await asyncio.Event().wait()

    async def main() -> None:
        async with serving(Silent()) as url:
            group = typedmcp_hosts.connect_all({"silent": url}, on_failure=ignore, wait_seconds=0.0)
            async with asyncio.timeout(30), group:
                assert not group.clients

    run(main)
