"""Configurations of several servers, as hosts write them."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import typedmcp
import typedmcp_hosts
from tests.cases import each
from tests.client.http.scripted_http import Request, Script, Wire, serving
from tests.growth import growth
from tests.server.scripted import run
from typedmcp.transports.process_parameters import StdioServerParameters

VARIABLES = {"HOME": "/home/ada", "TOKEN": "secret", "EMPTY": "", "ODD(x86)": "odd", "NESTED": "${TOKEN}"}


def load(servers: Mapping[str, Any], **options: Any) -> dict[str, typedmcp_hosts.ServerEntry]:
    return typedmcp_hosts.load_config({"mcpServers": servers}, variables=VARIABLES, **options)


def entry(**members: Any) -> typedmcp_hosts.ServerEntry:
    return load({"it": members})["it"]


# Reading


def test_a_command_becomes_stdio_server_parameters() -> None:
    made = entry(command="npx", args=["-y", "x"], env={"A": "b"}, cwd="/tmp")  # noqa: S108
    assert made.target == StdioServerParameters("npx", ["-y", "x"], env={"A": "b"}, cwd="/tmp")  # noqa: S108
    assert (made.name, made.disabled, made.problem, made.headers) == ("it", False, None, {})
    assert entry(command="npx").target == StdioServerParameters("npx")


def test_a_url_is_read_with_its_headers() -> None:
    made = entry(url="https://host/mcp", headers={"X-Team": "blue"})
    assert (made.target, made.headers) == ("https://host/mcp", {"X-Team": "blue"})


@each("member", ["type", "transport"])
@each(
    "kind, members",
    [
        ("stdio", {"command": "x"}),
        *((kind, {"url": "https://host"}) for kind in ("http", "streamable-http", "streamableHttp", "sse")),
    ],
)
def test_the_transport_can_be_named(kind: str, members: Any, member: str) -> None:
    assert entry(**members, **{member: kind}).problem is None


def test_a_url_with_the_type_sse_is_tried_as_http_with_sse_first() -> None:
    assert entry(url="https://host/sse", type="sse").sse
    assert entry(url="https://host/sse", transport="sse").sse
    assert not entry(url="https://host/sse").sse


@each(
    "members",
    [
        {"url": "${SECRET}"},
        {"url": "https://host:${SECRET}/mcp"},
        {"url": "https://host/a b/${SECRET}"},
        {"url": "https://host/", "headers": {"Authorization": "${SECRET}\r\nX: y"}},
        {"command": "x", "args": ["${SECRET}\0"]},
        {"command": "/nowhere/${SECRET}"},
        {"command": sys.executable, "cwd": "/nowhere/${SECRET}"},
        {"command": sys.executable, "args": ["-c", "print('${SECRET}')"]},
        {"url": "http://127.0.0.1:1/${SECRET}/mcp"},
        {"url": "http://127.0.0.1:1/${SECRET}/sse", "type": "sse"},
        {"url": "http://${SECRET}.invalid/mcp"},
    ],
)
def test_errors_do_not_show_the_values_of_variables(members: Any) -> None:
    async def main() -> None:
        made = typedmcp_hosts.load_config({"mcpServers": {"it": members}}, variables={"SECRET": "hunter2"})["it"]
        reported: list[typedmcp.Diagnostic] = []
        with pytest.raises((typedmcp.UsageError, typedmcp.ConnectionLostError)) as caught:
            async with made.connect(on_diagnostic=reported.append):
                pass
        shown = "".join([*traceback.format_exception(caught.value), repr(vars(caught.value)), repr(reported)])
        assert "hunter2" not in shown

    asyncio.run(main())


@each("status", [302, 400, 401, 403, 404, 409, 429, 500, 503])
def test_errors_of_calls_do_not_show_the_values_of_variables(status: int) -> None:
    def fail(request: Request, wire: Wire) -> None:
        wire.reply(status, f"not here: {request.target}".encode(), content_type="text/plain", location=request.target)

    async def main() -> None:
        async with serving(Script(tools__call=fail)) as url:
            members = {"url": f"{url}/${{SECRET}}/mcp"}
            made = typedmcp_hosts.load_config({"mcpServers": {"it": members}}, variables={"SECRET": "hunter2"})["it"]
            async with made.connect() as client:
                with pytest.raises(typedmcp.Error) as caught:
                    await client.call_tool("x")
        assert "hunter2" not in "".join([*traceback.format_exception(caught.value), repr(vars(caught.value))])

    run(main)


def test_diagnostics_do_not_show_the_values_of_variables(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: Request, wire: Wire) -> None:
        wire.result(request, {"resultType": "complete", "content": [{"type": request.target}]})

    async def main(**options: Any) -> None:
        async with serving(Script(tools__call=answer)) as url:
            members = {"url": f"{url}/${{SECRET}}/mcp"}
            made = typedmcp_hosts.load_config({"mcpServers": {"it": members}}, variables={"SECRET": "hunter2"})["it"]
            async with made.connect(**options) as client:
                await client.call_tool("x")

    reported: list[typedmcp.Diagnostic] = []
    run(lambda: main(on_diagnostic=reported.append))
    run(main)
    assert len(reported) == 1
    for text in [reported[0].text, caplog.text]:
        assert "/…/mcp" in text
        assert "hunter2" not in text


def test_an_error_that_the_options_change_has_no_values_of_variables() -> None:
    changed: list[str] = []

    def change(error: typedmcp.Error) -> typedmcp.Error:
        changed.append(str(error))
        return typedmcp.ToolError("mine")

    async def main() -> None:
        members = {"url": "http://127.0.0.1:1/${SECRET}/mcp"}
        made = typedmcp_hosts.load_config({"mcpServers": {"it": members}}, variables={"SECRET": "hunter2"})["it"]
        with pytest.raises(typedmcp.ToolError, match="mine"):
            await made.connect(change_error=change).open()

    asyncio.run(main())
    assert changed
    assert not [text for text in changed if "hunter2" in text]


def test_members_that_are_null_are_absent() -> None:
    made = entry(command="x", args=None, env=None, cwd=None, url=None, disabled=None, type=None)
    assert made.target == StdioServerParameters("x")


@each("listed", ["mcpServers", "servers"])
def test_servers_of_a_file_keep_their_names_and_order(tmp_path: Path, listed: str) -> None:
    names = ["z", "a server", "wetter-ü", "気象"]
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"other": 1, listed: {name: {"command": "x"} for name in names}}), encoding="utf-8")
    assert list(typedmcp_hosts.load_config(file)) == names
    assert list(typedmcp_hosts.load_config(str(file))) == names


LENIENT = """\ufeff// Servers
{
  /* VS Code
     allows this */
  "servers": {
    "a": {"url": "https://host//path", "headers": {"X": "/* no, */ ,}"},}, // a
    "b": {"command": "x", "args": ["//", "\\\\", "\\"//", ",]",],},
  },
}
"""


def test_a_file_may_have_comments_trailing_commas_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(LENIENT, encoding="utf-8")
    found = typedmcp_hosts.load_config(file)
    assert (found["a"].target, found["a"].headers) == ("https://host//path", {"X": "/* no, */ ,}"})
    assert found["b"].target == StdioServerParameters("x", ["//", "\\", '"//', ",]"])


@each("text", ["{} /* open", '{"mcpServers": {}} /**', '{"mcpServers": {"open', '{"a": "open \\', "{} /*/"])
def test_a_string_or_comment_that_does_not_end_is_an_error(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(typedmcp.UsageError, match="not valid JSON"):
        typedmcp_hosts.load_config(file)


@each("part", ['\\"', '"\\', '"', "/* ", "/**", "*/", "//", "/", ", ", ",", "[ ", " "])
def test_a_file_is_read_in_linear_time(part: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"

    def load(text: str) -> None:
        file.write_text(f"{{{text}")
        with pytest.raises(typedmcp.UsageError, match="not valid JSON"):
            typedmcp_hosts.load_config(file)

    assert growth(load, part) < 10


@each("text", ['{"mcpServers": {,}}', '{"mcpServers": {"a": {"command": "x", "args": ["y",,]}}}'])
def test_a_comma_without_a_value_before_it_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(typedmcp.UsageError, match="JSON"):
        typedmcp_hosts.load_config(file)


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    made = entry(command="~/bin/server", args=["~/data", "a~", "--at=~"], cwd="~")
    assert made.target == StdioServerParameters(
        "/home/ada/bin/server", ["/home/ada/data", "a~", "--at=~"], cwd="/home/ada"
    )


# Variables


@each(
    "text, value",
    [
        ("${HOME}/x", "/home/ada/x"),
        ("${env:HOME}", "/home/ada"),
        ("${TOKEN}${TOKEN}", "secretsecret"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${NONE:-}", ""),
        ("${NONE:-a b-c:/d}", "a b-c:/d"),
        ("${env:NONE:-x}", "x"),
        ("${HOME:-x}", "/home/ada"),
        ("${ODD(x86)}", "odd"),
        ("${NESTED}", "${TOKEN}"),
        ("$HOME $$ {HOME} $", "$HOME $$ {HOME} $"),
    ],
)
def test_variables_are_replaced_in_every_string(text: str, value: str) -> None:
    made = entry(command=text, args=[text], env={"A": text}, cwd=text)
    assert made.target == StdioServerParameters(value, [value], env={"A": value}, cwd=value or None)
    assert entry(url=f"https://{text}", headers={"A": text}).target == f"https://{value}"
    assert entry(url="https://x", headers={"A": text}).headers == {"A": value}


@each(
    "text, reason",
    [
        ("${NONE}", "the variable NONE is not set"),
        ("${env:NONE}", "the variable NONE is not set"),
        ("${input:key}", "invalid variable ${input:key}; expected ${NAME}, ${NAME:-text} or ${env:NAME}"),
        ("${NONE:-${HOME}}", "invalid variable ${NONE:-${HOME}"),
        ("${HOME", "invalid variable ${HOME"),
        ("${}", "invalid variable ${}"),
    ],
)
def test_an_unset_variable_is_the_problem_of_its_server_only(text: str, reason: str) -> None:
    found = load(
        {"bad": {"url": "https://x", "headers": {"Authorization": f"Bearer {text}"}}, "good": {"command": "x"}}
    )
    assert str(found["bad"].problem).startswith(f"configuration: server 'bad': headers: {reason}")
    with pytest.raises(typedmcp.UsageError, match="server 'bad'"):
        found["bad"].connect()
    assert found["good"].problem is None


def test_variables_come_from_the_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TYPEDMCP_TEST", "ü")
    found = typedmcp_hosts.load_config({"servers": {"it": {"command": "${TYPEDMCP_TEST}"}}})
    assert found["it"].target == StdioServerParameters("ü")


def test_the_repr_of_an_entry_shows_no_secrets() -> None:
    for made in (entry(url="https://x/${TOKEN}", headers={"A": "${TOKEN}"}), entry(command="x", env={"A": "${TOKEN}"})):
        assert "secret" not in repr(made)


# Diagnostics


@each(
    "members, unknown",
    [
        ({"command": "x", "envFile": ".env", "oauth": {}}, ["envFile", "oauth"]),
        ({"command": "x", "headers": {"A": "b"}}, ["headers"]),
        ({"url": "https://x", "args": ["a"], "env": {"A": "${NONE:-}"}}, ["args", "env"]),
    ],
)
def test_unknown_members_are_reported(members: Any, unknown: list[str], caplog: pytest.LogCaptureFixture) -> None:
    reports: list[typedmcp.Diagnostic] = []
    assert load({"it": members}, on_diagnostic=reports.append)["it"].problem is None
    texts = [f"configuration: server 'it': {name}: unknown for a server with a" for name in unknown]
    assert [report.text.rpartition(" ")[0] for report in reports] == texts
    assert {report.kind for report in reports} == {typedmcp.DiagnosticKind.INVALID_DATA}
    with caplog.at_level(logging.WARNING, "typedmcp"):
        load({"it": members})
    assert [record.getMessage().rpartition(" ")[0] for record in caplog.records] == texts


def test_what_hosts_write_is_understood_without_a_report() -> None:
    reports: list[typedmcp.Diagnostic] = []
    found = load(
        {
            "cline": {"command": "x", "autoApprove": ["a"], "timeout": 60, "disabled": False, "type": "stdio"},
            "roo": {"command": "x", "cwd": "/x", "alwaysAllow": [], "disabledTools": ["b"], "watchPaths": ["/x"]},
            "roo-http": {"type": "streamable-http", "url": "https://x", "alwaysAllow": ["a"], "timeout": 3600},
            "cherry": {
                "name": "x",
                "type": "stdio",
                "description": "",
                "isActive": True,
                "command": "x",
                "baseUrl": "",
            },
            "cherry-http": {
                "type": "streamableHttp",
                "baseUrl": "https://x",
                "isActive": False,
                "disabledTools": ["b"],
            },
            "gemini": {"command": "x", "excludeTools": ["b"], "timeout": 5000},
        },
        on_diagnostic=reports.append,
    )
    assert reports == []
    assert [name for name, each in found.items() if each.problem is not None] == []
    assert [name for name, each in found.items() if each.disabled] == ["cherry-http"]
    off = [name for name, each in found.items() if each.disabled_tools == frozenset("b")]
    assert off == ["roo", "cherry-http", "gemini"]


# Errors


@each(
    "members, fault",
    [
        ("x", "expected object, got string"),
        ([], "expected object, got array"),
        (None, "expected object, got null"),
        ({}, "expected command or url, found neither"),
        ({"args": ["x"]}, "expected command or url, found neither"),
        ({"command": "x", "url": "https://x"}, "expected command or url, found both"),
        ({"command": ["x"]}, "command: expected string or null, got array"),
        ({"command": "x", "args": "x"}, "args: expected array or null, got string"),
        ({"command": "x", "args": ["x", 1]}, "args[1]: expected string, got integer"),
        ({"command": "x", "env": {"PORT": [80]}}, "env.PORT: expected string, got array"),
        ({"command": "x", "cwd": 1}, "cwd: expected string or null, got integer"),
        ({"command": "x", "disabled": "no"}, "disabled: expected boolean or null, got string"),
        ({"url": 1}, "url: expected string or null, got integer"),
        ({"command": "x", "disabledTools": "a"}, "disabledTools: expected array or null, got string"),
        ({"url": "https://x", "headers": [["a", "b"]]}, "headers: expected object or null, got array"),
        ({"command": "x", "type": "ws"}, "type: unknown value 'ws'; known: stdio, http, "),
        ({"command": "x", "transport": "http"}, "transport: 'http' needs a url, but the server has a command"),
        ({"url": "https://x", "type": "stdio"}, "type: 'stdio' needs a command, but the server has a url"),
    ],
)
def test_errors_name_file_server_and_member(members: Any, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"good": {"command": "x"}, "bäd": members}}), encoding="utf-8")
    found = typedmcp_hosts.load_config(file)
    assert found["good"].problem is None
    assert str(found["bäd"].problem).startswith(f"{file}: server 'bäd': {fault}")
    with pytest.raises(typedmcp.UsageError, match=re.escape(f"{file}: server 'bäd': {fault}")):
        found["bäd"].connect()


SPELLINGS: dict[str, tuple[Any, Any, list[str]]] = {
    "langchain": ({"transport": "streamable_http", "url": "https://x"}, {"target": "https://x"}, []),
    "Gemini CLI": ({"httpUrl": "https://x"}, {"target": "https://x"}, ["httpUrl"]),
    "Windsurf": ({"serverUrl": "https://x"}, {"target": "https://x"}, ["serverUrl"]),
    "switched off": ({"url": "https://x", "enabled": False}, {"disabled": True}, ["enabled"]),
    "switched on": ({"url": "https://x", "enabled": True}, {"disabled": False}, ["enabled"]),
    "numbers": (
        {"command": "x", "env": {"PORT": 80, "RATE": 0.5, "DEBUG": True, "NAME": "y"}},
        {"target": StdioServerParameters("x", env={"PORT": "80", "RATE": "0.5", "DEBUG": "true", "NAME": "y"})},
        ["env.PORT", "env.RATE", "env.DEBUG"],
    ),
}


@each("name", SPELLINGS)
def test_spellings_of_other_hosts_are_understood_and_reported(name: str) -> None:
    members, expected, reported = SPELLINGS[name]
    reports: list[typedmcp.Diagnostic] = []
    found = load({"it": members}, on_diagnostic=reports.append)["it"]
    assert found.problem is None
    assert {each: getattr(found, each) for each in expected} == expected
    assert [report.text.split(": ")[2] for report in reports] == reported
    assert {report.kind for report in reports} <= {typedmcp.DiagnosticKind.TOLERATED}


@each(
    "text, fault",
    [
        (b"", "Expecting value: line 1 column 1"),
        (b'{\n"mcpServers" 1}', "line 2 column 14"),
        (b"[]", "expected an object, got list"),
        (b"{}", "expected a member mcpServers or servers, found neither"),
        (b'{"mcpServers": []}', "mcpServers: expected an object, got list"),
        (b"\xff\xfe\x00", "can't decode byte"),
        (b"[" * 100_000, "mcp.json: "),
        (None, "No such file or directory"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_file_raises_usage_error_with_its_name(text: bytes | None, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(typedmcp.UsageError, match=re.escape(fault)) as caught:
        typedmcp_hosts.load_config(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_path_that_can_be_none_raises_usage_error_with_it() -> None:
    wrong: list[str] = []
    for path, fault in [("a\0b", "embedded null byte"), ("~no-such-user/mcp.json", "home directory")]:
        try:
            typedmcp_hosts.load_config(path)
        except typedmcp.UsageError as error:
            if fault not in str(error) or not str(error).startswith(path):
                wrong.append(str(error))
    assert wrong == []


# Connecting


def test_an_entry_connects_with_its_own_headers_and_those_of_the_options() -> None:
    async def main() -> None:
        script = Script()
        async with serving(script) as url:
            made = entry(url=url, headers={"X-Team": "blue", "Authorization": "Bearer ${TOKEN}"})
            async with made.connect(headers={"X-Team": "red", "X-Other": "1"}, timeout=5) as client:
                await client.call_tool("x")
        for request in script.requests:
            assert request.headers["authorization"] == "Bearer secret"
            assert (request.headers["x-team"], request.headers["x-other"]) == ("red", "1")

    run(main)
