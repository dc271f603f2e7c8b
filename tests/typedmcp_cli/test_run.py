"""`run`: finding the server in a file, and serving it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import typedmcp
from tests.cases import each
from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT, InProcess, over_http
from tests.typedmcp_cli.command import typedmcp as command
from typedmcp_cli.loader import find_server
from typedmcp_cli.status import FAILED, USAGE, CommandExit

SERVER = "from typedmcp import Server\n{name} = Server('{name}')\n"
HANDLER = """
from typedmcp.dialect import handlers
class Handler(handlers.ServerStub):
    def list_tools(self, params, ctx): ...
"""
PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
PONG: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "result": {}}


def _write_file(folder: Path, text: str, name: str = "served.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the imported file from the interpreter."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("served")


FOUND = {
    "a Server with a usual name": (SERVER.format(name="mcp"), "", "Server"),
    "the only Server, with any name": (SERVER.format(name="weather"), "", "Server"),
    "one Server under two names": (SERVER.format(name="mcp") + "app = mcp", "", "Server"),
    "a handler": (HANDLER + "handler = Handler()", "", "Handler"),
    "a ServerConfig": (HANDLER + "import typedmcp\nserver = typedmcp.ServerConfig(Handler())", "", "ServerConfig"),
    "an ASGI application": (HANDLER + "import typedmcp\napp = typedmcp.asgi(Handler())", "", "AsgiApp"),
    "a server and its application": (
        SERVER.format(name="server") + "import typedmcp\napp = typedmcp.asgi(server)",
        "",
        "AsgiApp",
    ),
    "a named object": (SERVER.format(name="a") + SERVER.format(name="b"), ":b", "Server"),
    "a usual name before other names": (SERVER.format(name="a") + SERVER.format(name="server"), "", "Server"),
    "not an object with a usual name that is not a server": ("app = 3\n" + SERVER.format(name="mcp"), "", "Server"),
}

REJECTED = {
    "several servers": (
        SERVER.format(name="mcp") + SERVER.format(name="app"),
        "",
        "{0} has several servers; choose {0}:mcp or {0}:app",
    ),
    "an unknown object": (
        SERVER.format(name="weather"),
        ":wether",
        "{} has no 'wether'; did you mean weather?",
    ),
    "a class": (HANDLER, ":Handler", "Handler is a class, not a server; create an object: server = Handler()"),
    "something else": ("number = 3", ":number", "number is not a server; it is of type int"),
}


@each("text, name, kind", FOUND.values(), ids=FOUND)
@pytest.mark.usefixtures("imports")
def test_the_server_in_a_file_is_found(text: str, name: str, kind: str, tmp_path: Path) -> None:
    _, found = find_server(_write_file(tmp_path, text) + name)
    assert type(found).__name__ == kind


@each("text, name, expected", REJECTED.values(), ids=REJECTED)
@pytest.mark.usefixtures("imports")
def test_a_file_without_a_clear_server_is_rejected(text: str, name: str, expected: str, tmp_path: Path) -> None:
    file = _write_file(tmp_path, text)
    with pytest.raises(CommandExit) as caught:
        find_server(file + name)
    assert str(caught.value) == expected.format(file)


def _run_and_send(file: str | Path, *options: str, request: bytes = PING) -> tuple[object, str, int]:
    process = subprocess.run(
        [*COMMAND, "run", str(file), *options],
        input=request,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=30,
        check=False,
    )
    return json.loads(process.stdout) if process.stdout else None, process.stderr.decode(), process.returncode


def test_a_file_that_prints_can_be_served_over_stdio(tmp_path: Path) -> None:
    text = "import sys\nprint('imported')\n" + SERVER.format(name="server")
    assert _run_and_send(_write_file(tmp_path, text)) == (PONG, "imported\n", 0)


def test_a_file_can_import_its_neighbours_and_its_package(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    _write_file(tmp_path, "NAME = 'beside'", "beside.py")
    _write_file(package, "", "__init__.py")
    _write_file(package, "NAME = 'within'", "names.py")
    text = (
        "from typedmcp import Server\nimport beside, sys\nfrom .names import NAME\nprint(beside.NAME, NAME, __name__)\n"
    )
    file = _write_file(package, text + "server = Server(NAME)")
    assert _run_and_send(file) == (PONG, "beside within shop.served\n", 0)


def test_a_file_named_like_a_standard_module_is_served(tmp_path: Path) -> None:
    assert _run_and_send(_write_file(tmp_path, SERVER.format(name="server"), "types.py")) == (PONG, "", 0)


def test_a_file_without_a_server_is_run_as_a_script(tmp_path: Path) -> None:
    text = f"""{HANDLER}
if __name__ == "__main__":
    import sys, typedmcp
    print(sys.argv, file=sys.stderr)
    typedmcp.serve(Handler(), name="script")
"""
    file = _write_file(tmp_path, text)
    assert _run_and_send(file) == (PONG, f"[{file!r}]\n", 0)
    done = command("run", file, "--transport", "http")
    assert (done.status, done.err) == (
        2,
        f"error: {file} has no server object; it is a script: python {file}\n",
    )


@each(
    "text, expected, status",
    [
        (
            "x = 1",
            "error: {} has no server; expected a typedmcp.Server, or a handler called server, mcp, app or handler\n",
            2,
        ),
        ("1 / 0", "ZeroDivisionError: division by zero\nerror: {} cannot be imported\n", 1),
        ("def f(:", "SyntaxError: invalid syntax\nerror: {} cannot be imported\n", 1),
        ("import no_such_module", "No module named 'no_such_module'\nerror: {} cannot be imported\n", 1),
    ],
)
def test_errors_of_a_file_are_reported(text: str, expected: str, status: int, tmp_path: Path) -> None:
    file = _write_file(tmp_path, text)
    done = command("run", file)
    assert done.status == status
    assert done.err.endswith(expected.format(file))
    assert "loader.py" not in done.err
    assert "importlib" not in done.err


@each(
    "arguments, expected",
    [
        (["nowhere.py"], "no such file: nowhere.py"),
        (["nowhere"], "'nowhere' is neither a file nor module:object"),
        (["no_such_module:server"], "no_such_module cannot be imported"),
        (["nowhere.py", "--port", "80"], "--port requires --transport http"),
        (["nowhere", "--reload"], "'nowhere' is neither a file nor module:object"),
        (["page.md"], "page.md is not a Python file"),
        (["page.md:server"], "page.md is not a Python file"),
        (["page.md", "--reload"], "page.md is not a Python file"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_file_that_cannot_be_served_is_rejected(
    arguments: list[str], expected: str, tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    _write_file(tmp_path, "# A page", "page.md")
    done = in_process("run", *arguments)
    assert done.status in (FAILED, USAGE)
    assert done.err.endswith(f"error: {expected}\n")


def test_an_http_server_has_the_given_host_port_and_path(tmp_path: Path) -> None:
    file = _write_file(tmp_path, SERVER.format(name="weather") + "@weather.tool\ndef f() -> str: return 'f'\n")
    with (
        over_http(Path(file), "--host", "127.0.0.1", "--path", "/weather") as origin,
        typedmcp.sync.connect(f"{origin}/weather") as client,
    ):
        assert [tool.name for tool in client.tools()] == ["f"]


def test_a_port_in_use_is_a_failure(tmp_path: Path) -> None:
    file = _write_file(tmp_path, SERVER.format(name="server"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("run", file, "--transport", "http", "--port", str(taken.getsockname()[1]))
    assert done.status == 1
    assert "address already in use" in done.err


APPLICATIONS = {
    "alone": HANDLER + "import typedmcp\napp = typedmcp.asgi(Handler(), path='/own')",
    "beside its server": "import typedmcp\n"
    + SERVER.format(name="server")
    + "app = typedmcp.asgi(server, path='/own')",
    "beside a server with another name": "import typedmcp\n"
    + SERVER.format(name="mcp")
    + "app = typedmcp.asgi(mcp, path='/own')",
}


@each("kind", APPLICATIONS)
def test_an_asgi_application_is_served_with_its_own_options(kind: str, tmp_path: Path) -> None:
    file = _write_file(tmp_path, APPLICATIONS[kind])
    assert _run_and_send(file)[0] == PONG
    recording = tmp_path / "messages.jsonl"
    with (
        over_http(Path(file), "--record", str(recording)) as origin,
        typedmcp.sync.connect(f"{origin}/own") as client,
    ):
        assert client.revision
    assert '"server/discover"' in recording.read_text(encoding="utf-8")


@each("option", ["--path=/x", "--allowed-host=x", "--allowed-origin=https://x", "--token-env=X"])
def test_an_asgi_application_takes_no_other_options(option: str, tmp_path: Path) -> None:
    file = _write_file(tmp_path, APPLICATIONS["beside its server"])
    done = command("run", file, "--transport", "http", option)
    assert (done.status, done.err) == (
        2,
        f"error: {option.partition('=')[0]}: {file} has an ASGI application with options of its own; pass it to "
        f"asgi(…), or name the server, as in {file}:server\n",
    )


def test_the_log_level_applies_to_the_server(tmp_path: Path) -> None:
    file = _write_file(
        tmp_path,
        SERVER.format(name="server")
        + "import logging, atexit\natexit.register(logging.getLogger('x').info, 'ended')\n",
    )
    assert _run_and_send(file)[1] == ""
    assert _run_and_send(file, "--log-level", "info")[1] == "INFO: x: ended\n"


def test_a_server_of_another_package_is_rejected(tmp_path: Path) -> None:
    _write_file(tmp_path, "class FastMCP:\n    def list_tools(self): ...\n", "fastmcp.py")
    file = _write_file(tmp_path, "from fastmcp import FastMCP\nmcp = FastMCP()\n")
    done = command("run", f"{file}:mcp")
    assert done.status == 2
    assert done.err == "error: mcp is a server of the package fastmcp; give the command that starts it after --\n"


def _post(origin: str, **headers: str) -> int:
    request = urllib.request.Request(f"{origin}/mcp", PING, {"Content-Type": "application/json", **headers})  # noqa: S310
    try:
        return urllib.request.urlopen(request, timeout=10).status  # type: ignore[no-any-return]  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_hosts_and_origins_can_be_allowed_over_http(tmp_path: Path) -> None:
    file = _write_file(tmp_path, SERVER.format(name="server"))
    page = "https://app.example.com"
    with over_http(Path(file), "--allowed-host", "mcp.example.com", "--allowed-origin", page) as origin:
        assert _post(origin, Host="mcp.example.com", Origin=page) != 421
        assert _post(origin, Host="mcp.example.com") == _post(origin)
        assert _post(origin, Host="evil.test") == 421
        assert _post(origin, Origin="https://evil.test") == 403


def test_a_token_from_the_environment_is_required_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write_file(tmp_path, SERVER.format(name="server"))
    done = command("run", file, "--transport", "http", "--token-env", "NO_SUCH_TOKEN")
    assert (done.status, done.err) == (2, "error: --token-env: the variable NO_SUCH_TOKEN is not set\n")
    monkeypatch.setitem(ENVIRONMENT, "WEATHER_TOKEN", "secret-token")
    with over_http(Path(file), "--token-env", "WEATHER_TOKEN") as origin:
        assert _post(origin) == 401
        with typedmcp.sync.connect(f"{origin}/mcp", auth="secret-token") as client:
            client.ping()


@each("option, value", [("--allowed-host", "x"), ("--allowed-origin", "https://x"), ("--token-env", "X")])
def test_options_for_http_require_http(option: str, value: str, in_process: InProcess) -> None:
    done = in_process("run", "server.py", option, value)
    assert (done.status, done.err) == (2, f"error: {option} requires --transport http\n")


@each("level, shown", [("warning", False), ("info", True)])
def test_requests_are_logged_from_the_level_info_and_rejected_ones_always(
    level: str, shown: bool, tmp_path: Path
) -> None:
    file = _write_file(tmp_path, SERVER.format(name="server"))
    arguments = ["--transport", "http", "--port", "0", "--host", "0.0.0.0", "--log-level", level]  # noqa: S104
    with subprocess.Popen(
        [*COMMAND, "run", file, *arguments], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as server:
        assert server.stderr is not None
        head: list[str] = []
        for line in server.stderr:
            head.append(line)
            if "running on" in line:
                break
        found = re.search(r"running on http://0\.0\.0\.0:(\d+)/mcp ", head[-1])
        assert found
        assert any("--allowed-host" in line for line in head)
        _post(f"http://127.0.0.1:{found[1]}")
        _post(f"http://127.0.0.1:{found[1]}", Host="evil.test")
        server.terminate()
        log = server.communicate(timeout=30)[1]
    assert "WARNING: typedmcp.access: 127.0.0.1 POST /mcp rejected with 421: the host 'evil.test'" in log
    assert (re.search(r"INFO: typedmcp.access: 127.0.0.1 POST /mcp \d+ [\d.]+ ms ping", log) is not None) is shown


@each("command", [["run", "FILE"], ["run", "FILE", "--reload"]])
def test_frames_are_written_to_standard_error(command: list[str], tmp_path: Path) -> None:
    file = _write_file(tmp_path, SERVER.format(name="server"))
    command = [*COMMAND, *(file if part == "FILE" else part for part in command), "--frames"]
    done = subprocess.run(command, input=PING, capture_output=True, env=ENVIRONMENT, timeout=30, check=True)
    assert json.loads(done.stdout) == PONG
    client, server = done.stderr.decode().splitlines()
    assert client == f"client: {PING.decode().strip()}"
    assert server.startswith("server: ")
    assert json.loads(server.removeprefix("server: ")) == PONG
