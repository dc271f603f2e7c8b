"""Every way to name a server, and what is said about those that are none."""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.command import Done, Inside, in_words, typedmcp
from typedmcp.cli.placing import command_of, placed
from typedmcp.cli.status import Stop
from typedmcp.cli.targets import target_of

LIST = "Prompts\n  packing  city [days]  What to pack.\n"
SERVE = [sys.executable, "-m", "typedmcp", "run", "server.py"]


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the server, as the current one."""
    monkeypatch.chdir(folder)
    return folder


def _configuration(folder: Path, url: str) -> Path:
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
@pytest.mark.parametrize("target", ["server.py:server", "server:server"])
def test_a_server_is_named_by_an_object_in_a_file_or_a_module(inside: Inside, target: str) -> None:
    assert inside("list", target, "prompts") == Done(0, LIST, "")


def test_a_server_is_named_by_a_command_at_the_end_or_as_an_option(here: Path, inside: Inside) -> None:
    assert typedmcp("list", "prompts", "--", *SERVE, cwd=here) == Done(0, LIST, "")
    assert inside("list", "--command", " ".join(SERVE), "prompts") == Done(0, LIST, "")


def test_a_server_is_named_by_an_entry_of_a_configuration(folder: Path, url: str, inside: Inside) -> None:
    path = _configuration(folder, url)
    assert inside("list", "--config", path, "page", "prompts") == Done(0, LIST, "")


def test_a_command_that_is_typed_has_the_whole_environment_and_an_entry_what_its_file_says(
    here: Path, url: str, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "by the shell")
    path = _configuration(here, url)
    for target, given in ((["server.py"], "by the shell"), (["process", "--config", str(path)], "by the file")):
        done = inside("call", *target, "environment", "name=GIVEN")
        assert done.out == f"{given}\n"


@pytest.mark.parametrize(
    ("given", "made"),
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
    assert placed(given) == made


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["list", "--"], "there is no command behind --"),
        (["list", "--command", "a", "--", "b"], "there are two commands: one is enough"),
        (["list", "--command", " "], "--command is empty"),
        (["list", "--command", "a 'b"], '--command "a \'b": no closing quotation'),
    ],
    ids=str,
)
def test_a_command_that_cannot_be_read_is_refused(given: list[str], told: str) -> None:
    with pytest.raises(Stop) as caught:
        placed(given)
    assert str(caught.value) == told


def test_only_a_command_in_its_place_is_a_command() -> None:
    assert command_of("\0npx 'some server'") == ["npx", "some server"]
    assert command_of("npx") is None


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nowhere.py", "no such file: nowhere.py"),
        ("nowhere.py:server", "no such file: nowhere.py"),
        (".", ". is a folder: name a file in it"),
        ("mcp.json", "mcp.json is a configuration: --config mcp.json NAME"),
        ("server.js", "server.js is no Python file: give the command that starts it, behind --"),
        (
            "localhost:8000/mcp",
            "'localhost:8000/mcp' is no server: a URL is (http://…), a file (server.py), a command ",
        ),
    ],
)
def test_what_is_no_target_is_refused(target: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mcp.json", "server.js"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(Stop) as caught:
        target_of(target)
    assert str(caught.value).startswith(told)
    assert caught.value.status == 2


@pytest.mark.parametrize("address", ["https://host/mcp", "HTTP://host", "unix:/tmp/socket", "tcp://host:9"])
def test_an_address_is_taken_as_it_is(address: str) -> None:
    assert target_of(address) == address


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list", "pag", "--config", "mcp.json"], "mcp.json: no server 'pag'; did you mean page?"),
        (["list", "broken", "--config", "mcp.json"], "the variable NO_SUCH_VARIABLE_HERE is not set"),
        (["list", "a", "--config", "none.json"], "none.json: No such file or directory"),
        (["list", "--config", "mcp.json", "--", "x"], "a command and --config: one of the two"),
        (["list", "server.py", "--header", "A: b"], "headers: only for URLs"),
        (["list", "http://127.0.0.1:9/mcp", "--header", "A"], "--header 'A' is no header: 'Name: value'"),
        (["list", "http://127.0.0.1:9/mcp", "--header", "Accept: b"], "the header Accept is the protocol's"),
    ],
    ids=in_words,
)
def test_options_that_make_no_sense_are_refused(
    here: Path, url: str, inside: Inside, arguments: list[str], told: str
) -> None:
    _configuration(here, url)
    done = inside(*arguments)
    assert done.status == 2
    assert told in done.err


def test_headers_reach_a_url(inside: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard: list[bytes] = []

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(1 << 16))
                connection.sendall(
                    b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"
                )

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        done = inside(
            "list", f"http://127.0.0.1:{port}/mcp", "--header", "Authorization: Bearer t", "--header", "X-A:b"
        )
        thread.join()
    assert b"\r\nauthorization: Bearer t\r\nx-a: b\r\n" in heard[0]
    assert done == Done(3, "", "error: server/discover: the server wants to know who asks (401, Bearer)\n")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_a_revision_can_be_insisted_on(url: str, inside: Inside, revision: str) -> None:
    done = inside("inspect", url, "--revision", revision)
    assert f"\n  revision      {revision}\n" in done.out
