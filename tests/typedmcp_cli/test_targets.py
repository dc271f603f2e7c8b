"""All kinds of TARGET, and errors about wrong ones."""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path

import pytest

from tests.cases import each
from tests.typedmcp_cli.command import CommandResult, InProcess, case_id, typedmcp
from typedmcp.transports.process_parameters import StdioServerParameters
from typedmcp_cli.references import parse_command, place_command
from typedmcp_cli.status import CommandExit
from typedmcp_cli.targets import parse_target

LIST = "Prompts\n  packing  city [days]  Ask for a packing list.\n"
SERVE = [sys.executable, "-m", "typedmcp", "run", "server.py"]


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the server, made the current one."""
    monkeypatch.chdir(folder)
    return folder


def _write_config(folder: Path, url: str) -> Path:
    python, serve = SERVE[0], SERVE[1:]
    servers = {
        "process": {"command": python, "args": serve, "cwd": str(folder), "env": {"GIVEN": "by the file"}},
        "page": {"url": url},
        "broken": {"command": "${NO_SUCH_VARIABLE_HERE}"},
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@pytest.mark.usefixtures("here")
@each("target", ["server.py:server", "server:server"])
def test_a_server_is_named_by_an_object_in_a_file_or_a_module(in_process: InProcess, target: str) -> None:
    assert in_process("list", target, "prompts") == CommandResult(0, LIST, "")


def test_a_server_is_named_by_a_command_at_the_end_or_as_an_option(here: Path, in_process: InProcess) -> None:
    assert typedmcp("list", "prompts", "--", *SERVE, cwd=here) == CommandResult(0, LIST, "")
    assert in_process("list", "--command", " ".join(SERVE), "prompts") == CommandResult(0, LIST, "")


def test_a_server_is_named_by_an_entry_of_a_configuration(folder: Path, url: str, in_process: InProcess) -> None:
    path = _write_config(folder, url)
    assert in_process("list", "--config", path, "page", "prompts") == CommandResult(0, LIST, "")


def test_a_typed_command_gets_the_environment_and_an_entry_only_its_own(
    here: Path, url: str, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "by the shell")
    path = _write_config(here, url)
    for target, given in ((["server.py"], "by the shell"), (["process", "--config", str(path)], "by the file")):
        done = in_process("call", *target, "environment", "name=GIVEN")
        assert done.out == f"{given}\n"


@each(
    "given, made",
    [
        (["call", "greet", "a=1", "--", "npx", "some server"], ["call", "\0npx 'some server'", "greet", "a=1"]),
        (["call", "--json", "greet", "--", "x", "--", "y"], ["call", "\0x -- y", "--json", "greet"]),
        (["list", "--command", "a 'b c'"], ["list", "\0a 'b c'"]),
        (["list", "--command=a b", "tools"], ["list", "\0a b", "tools"]),
        (["list", "server.py"], ["list", "server.py"]),
        (["--help"], ["--help"]),
        ([], []),
    ],
    ids=str,
)
def test_a_command_takes_the_place_of_the_target(given: list[str], made: list[str]) -> None:
    assert place_command(given) == made


@each(
    "given, expected",
    [
        (["list", "--"], "no command after --"),
        (["list", "--command", "a", "--", "b"], "--command and -- both give a command; use one of them"),
        (["list", "--command", " "], "--command is empty"),
        (["list", "--command", "a 'b"], '--command "a \'b": no closing quotation'),
    ],
    ids=str,
)
def test_a_wrong_command_is_rejected(given: list[str], expected: str) -> None:
    with pytest.raises(CommandExit) as caught:
        place_command(given)
    assert str(caught.value) == expected


def test_only_a_marked_target_is_a_command() -> None:
    assert parse_command("\0npx 'some server'") == ["npx", "some server"]
    assert parse_command("npx") is None


@each(
    "target, expected",
    [
        ("nowhere.py", "no such file: nowhere.py"),
        ("nowhere.py:server", "no such file: nowhere.py"),
        (".", ". is a directory; name a file in it"),
        ("mcp.json", "mcp.json is a configuration; use --config mcp.json NAME"),
        ("server.txt", "server.txt is not a Python file; give the command that starts it after --"),
        (
            "localhost:8000/mcp",
            "'localhost:8000/mcp' is not a server; expected a URL (http://…), a file (server.py), a command ",
        ),
    ],
)
def test_a_wrong_target_is_rejected(
    target: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mcp.json", "server.txt"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(CommandExit) as caught:
        parse_target(target)
    assert str(caught.value).startswith(expected)
    assert caught.value.status == 2


@each("address", ["https://host/mcp", "HTTP://host", "unix:/tmp/socket", "tcp://host:9"])
def test_an_address_is_used_as_it_is(address: str) -> None:
    assert parse_target(address) == address


@each(
    "arguments, expected",
    [
        (["list", "pag", "--config", "mcp.json"], "mcp.json: no server 'pag'; did you mean page?"),
        (["list", "broken", "--config", "mcp.json"], "the variable NO_SUCH_VARIABLE_HERE is not set"),
        (["list", "a", "--config", "none.json"], "none.json: No such file or directory"),
        (["list", "--config", "mcp.json", "--", "x"], "a command and --config both name a server; use one of them"),
        (["list", "server.py", "--header", "A: b"], "headers: only for URLs"),
        (["list", "http://127.0.0.1:9/mcp", "--header", "A"], "--header 'A': expected 'Name: value'"),
        (["list", "http://127.0.0.1:9/mcp", "--header", "Accept: b"], "Accept is set by the protocol"),
    ],
    ids=case_id,
)
def test_wrong_options_are_rejected(
    here: Path, url: str, in_process: InProcess, arguments: list[str], expected: str
) -> None:
    _write_config(here, url)
    done = in_process(*arguments)
    assert done.status == 2
    assert expected in done.err


def test_headers_reach_a_url(in_process: InProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        received: list[bytes] = []

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(connection.recv(1 << 16))
                connection.sendall(
                    b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"
                )

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        done = in_process(
            "list", f"http://127.0.0.1:{port}/mcp", "--header", "Authorization: Bearer t", "--header", "X-A:b"
        )
        thread.join()
    assert b"\r\nauthorization: Bearer t\r\nx-a: b\r\n" in received[0]
    text = "error: server/discover: the access token is missing or not valid (401, Bearer); send a token with "
    assert done == CommandResult(3, "", f"{text}--header 'Authorization: Bearer …', or sign in with --oauth\n")


@each("revision", ["2024-11-05", "2025-11-25"])
def test_the_revision_can_be_chosen(url: str, in_process: InProcess, revision: str) -> None:
    done = in_process("inspect", url, "--revision", revision)
    assert f"\n  revision      {revision}\n" in done.out


def test_a_javascript_file_is_run_with_node(tmp_path: Path) -> None:
    file = tmp_path / "server.mjs"
    file.touch()
    parsed = parse_target(str(file))
    assert isinstance(parsed, StdioServerParameters)
    assert (parsed.command, [*parsed.args]) == ("node", [str(file)])
