"""`run`: which server a file has, and how it is served."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import typedmcp
from tests.cli.command import COMMAND, ENVIRONMENT, Inside, over_http
from tests.cli.command import typedmcp as command
from typedmcp.cli.loading import find
from typedmcp.cli.status import FAILED, USAGE, Stop

SERVER = "from typedmcp import Server\n{name} = Server('{name}')\n"
HANDLER = """
from typedmcp.dialect import handlers
class Handler(handlers.ServerStub):
    def list_tools(self, params, ctx): ...
"""
PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
PONG: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "result": {}}


def _written(folder: Path, text: str, name: str = "served.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves nothing behind of a file that was imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("served")


FOUND = {
    "a Server by its usual name": (SERVER.format(name="mcp"), "", "Server"),
    "the only Server, whatever it is called": (SERVER.format(name="weather"), "", "Server"),
    "one Server under two names": (SERVER.format(name="mcp") + "app = mcp", "", "Server"),
    "a handler": (HANDLER + "handler = Handler()", "", "Handler"),
    "a Service": (HANDLER + "import typedmcp\nserver = typedmcp.Service(Handler())", "", "Service"),
    "an application": (HANDLER + "import typedmcp\napp = typedmcp.asgi(Handler())", "", "App"),
    "what is named": (SERVER.format(name="a") + SERVER.format(name="b"), ":b", "Server"),
    "a usual name before others": (SERVER.format(name="a") + SERVER.format(name="server"), "", "Server"),
    "what has a usual name and is no server": ("app = 3\n" + SERVER.format(name="mcp"), "", "Server"),
}

REFUSED = {
    "several": (
        SERVER.format(name="mcp") + SERVER.format(name="app"),
        "",
        "{0} has several servers; say which: {0}:mcp or {0}:app",
    ),
    "an object that is not there": (
        SERVER.format(name="weather"),
        ":wether",
        "{} has no 'wether'; did you mean weather?",
    ),
    "a class": (HANDLER, ":Handler", "Handler is a class: a server is an object, Handler = Handler()"),
    "something else": ("number = 3", ":number", "number is no server, but int"),
}


@pytest.mark.parametrize(("text", "name", "kind"), FOUND.values(), ids=FOUND)
@pytest.mark.usefixtures("imports")
def test_the_server_in_a_file_is(text: str, name: str, kind: str, tmp_path: Path) -> None:
    _, found = find(_written(tmp_path, text) + name)
    assert type(found).__name__ == kind


@pytest.mark.parametrize(("text", "name", "told"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("imports")
def test_a_file_without_a_clear_server_is_refused(text: str, name: str, told: str, tmp_path: Path) -> None:
    file = _written(tmp_path, text)
    with pytest.raises(Stop) as caught:
        find(file + name)
    assert str(caught.value) == told.format(file)


def _answer(file: str | Path, *options: str, asked: bytes = PING) -> tuple[object, str, int]:
    process = subprocess.run(
        [*COMMAND, "run", str(file), *options],
        input=asked,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=30,
        check=False,
    )
    return json.loads(process.stdout) if process.stdout else None, process.stderr.decode(), process.returncode


def test_a_file_is_served_over_standard_input_and_output_whatever_it_prints(tmp_path: Path) -> None:
    text = "import sys\nprint('imported')\n" + SERVER.format(name="server")
    assert _answer(_written(tmp_path, text)) == (PONG, "imported\n", 0)


def test_a_file_imports_its_neighbours_and_those_of_its_package(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    _written(tmp_path, "NAME = 'beside'", "beside.py")
    _written(package, "", "__init__.py")
    _written(package, "NAME = 'within'", "names.py")
    text = (
        "from typedmcp import Server\nimport beside, sys\nfrom .names import NAME\nprint(beside.NAME, NAME, __name__)\n"
    )
    file = _written(package, text + "server = Server(NAME)")
    assert _answer(file) == (PONG, "beside within shop.served\n", 0)


def test_a_file_that_is_called_like_a_module_of_pythons_is_served(tmp_path: Path) -> None:
    assert _answer(_written(tmp_path, SERVER.format(name="server"), "types.py")) == (PONG, "", 0)


def test_a_file_without_a_server_is_run_as_the_script_that_it_is(tmp_path: Path) -> None:
    text = f"""{HANDLER}
if __name__ == "__main__":
    import sys, typedmcp
    print(sys.argv, file=sys.stderr)
    typedmcp.serve(Handler(), name="script")
"""
    file = _written(tmp_path, text)
    assert _answer(file) == (PONG, f"[{file!r}]\n", 0)
    done = command("run", file, "--transport", "http")
    assert (done.status, done.err) == (
        2,
        f"error: {file} has no server, and serves by itself when it is run: python {file}\n",
    )


@pytest.mark.parametrize(
    ("text", "told", "status"),
    [
        ("x = 1", "error: {} has no server: a typedmcp.Server, or a handler called server, mcp, app or handler\n", 2),
        ("1 / 0", "ZeroDivisionError: division by zero\nerror: {} cannot be imported\n", 1),
        ("def f(:", "SyntaxError: invalid syntax\nerror: {} cannot be imported\n", 1),
        ("import no_such_module", "No module named 'no_such_module'\nerror: {} cannot be imported\n", 1),
    ],
)
def test_what_is_wrong_with_a_file_is_told(text: str, told: str, status: int, tmp_path: Path) -> None:
    file = _written(tmp_path, text)
    done = command("run", file)
    assert done.status == status
    assert done.err.endswith(told.format(file))
    assert "loading.py" not in done.err
    assert "importlib" not in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.py"], "no such file: nowhere.py"),
        (["nowhere"], "'nowhere' is neither a file nor module:object"),
        (["no_such_module:server"], "no_such_module cannot be imported"),
        (["nowhere.py", "--port", "80"], "--port is for HTTP: --transport http"),
        (["nowhere", "--reload"], "'nowhere' is neither a file nor module:object"),
        (["page.md"], "page.md is no Python file"),
        (["page.md:server"], "page.md is no Python file"),
        (["page.md", "--reload"], "page.md is no Python file"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_no_file_to_serve_is_refused(
    arguments: list[str], told: str, tmp_path: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    _written(tmp_path, "# A page", "page.md")
    done = inside("run", *arguments)
    assert done.status in (FAILED, USAGE)
    assert done.err.endswith(f"error: {told}\n")


def test_a_server_over_http_has_its_host_port_and_path(tmp_path: Path) -> None:
    file = _written(tmp_path, SERVER.format(name="weather") + "@weather.tool\ndef f() -> str: return 'f'\n")
    with (
        over_http(Path(file), "--host", "127.0.0.1", "--path", "/weather") as origin,
        typedmcp.sync.connect(f"{origin}/weather") as client,
    ):
        assert [tool.name for tool in client.tools()] == ["f"]


def test_a_port_that_is_taken_is_a_failure(tmp_path: Path) -> None:
    file = _written(tmp_path, SERVER.format(name="server"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("run", file, "--transport", "http", "--port", str(taken.getsockname()[1]))
    assert done.status == 1
    assert "address already in use" in done.err


def test_an_application_is_for_servers_of_its_kind(tmp_path: Path) -> None:
    file = _written(tmp_path, HANDLER + "import typedmcp\napp = typedmcp.asgi(Handler())")
    assert _answer(file)[0] == PONG
    done = command("run", file, "--transport", "http")
    assert (done.status, done.err) == (2, f"error: {file} is an ASGI application: a server such as uvicorn runs it\n")


def test_what_a_server_logs_is_shown_from_a_level_up(tmp_path: Path) -> None:
    file = _written(
        tmp_path,
        SERVER.format(name="server")
        + "import logging, atexit\natexit.register(logging.getLogger('x').info, 'ended')\n",
    )
    assert _answer(file)[1] == ""
    assert _answer(file, "--log-level", "info")[1] == "INFO: x: ended\n"


def test_a_server_of_another_package_is_told_apart(tmp_path: Path) -> None:
    _written(tmp_path, "class FastMCP:\n    def list_tools(self): ...\n", "fastmcp.py")
    file = _written(tmp_path, "from fastmcp import FastMCP\nmcp = FastMCP()\n")
    done = command("run", f"{file}:mcp")
    assert done.status == 2
    assert done.err == "error: mcp is a server of the package fastmcp: start it with its own command, behind --\n"
