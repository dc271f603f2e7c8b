"""The compiler for others, as they use it: the built wheels in an empty environment, outside of the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.helpers import NEWEST
from tests.codegen.test_packages import ACME, LEGACY
from tests.paths import ROOT

pytestmark = pytest.mark.long

SERVER = """\
from __future__ import annotations

import sys

import typedmcp
from acme_mcp import handlers, methods
from acme_mcp import structs as s
from typedmcp import Context


class Acme(handlers.ServerStub[Context]):
    def __init__(self) -> None:
        self.seen_counts: list[int] = []

    def list_tools(self, params: s.PaginatedRequestParams, ctx: Context) -> s.ListToolsResult:
        tool = s.Tool(name="find", input_schema={"type": "object"}, owner="search team")
        return s.ListToolsResult(tools=[tool])

    async def search(self, params: s.SearchRequestParams, ctx: Context) -> s.SearchResult:
        await ctx.notify(methods.NOTIFICATIONS_ACME_INDEXED, s.IndexedNotificationParams(count=1))
        card = s.CardContent(card=f"seen: {sum(self.seen_counts)}")
        return s.SearchResult(hits=[s.Hit(title=params.query, body=card)])

    def seen(self, params: s.SeenNotificationParams, ctx: Context) -> None:
        self.seen_counts.append(params.count)


if __name__ == "__main__":
    if sys.argv[1:]:
        typedmcp.serve(Acme(), "http", port=0, methods=methods)
    else:
        typedmcp.serve(Acme(), methods=methods)
"""

CLIENT = """\
from __future__ import annotations

import asyncio
import sys

import typedmcp
from acme_mcp import methods
from acme_mcp import structs as s
from typedmcp import Client, Diagnostic


async def search(client: Client) -> s.Hit:
    result = await client.send(methods.ACME_SEARCH, {"query": "tea"})
    return result.hits[0]


async def main(revision: str, target: str | list[str]) -> None:
    sent: list[str | None] = []

    def note(diagnostic: Diagnostic) -> None:
        sent.append(diagnostic.method)

    async with typedmcp.connect(target, revisions=[revision], on_diagnostic=note) as client:
        await client.notify(methods.NOTIFICATIONS_ACME_SEEN, s.SeenNotificationParams(count=2))
        await client.notify(methods.NOTIFICATIONS_ACME_SEEN, {"count": 3})
        hit = await search(client)
        for _ in range(3000):  # over HTTP, notifications and calls are requests side by side
            if isinstance(hit.body, s.CardContent) and hit.body.card == "seen: 5":
                break
            await asyncio.sleep(0.02)
            hit = await search(client)
        else:
            raise AssertionError(hit)
        assert "notifications/acme/indexed" in sent, sent
        page = await client.send(methods.TOOLS_LIST) if client.revision == methods.PROTOCOL_VERSION else None
        print(client.revision, hit.title, page.tools[0].owner if page else (await client.list_tools()).tools[0].name)
        try:
            await client.send(methods.ACME_SEARCH, {"query": 1})
        except typedmcp.DecodeError as error:
            print(error)


asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else sys.argv[2:]))
"""

OUTPUT = {
    NEWEST: f"{NEWEST} tea search team\nquery: expected string, got 1\n",
    LEGACY: f"{LEGACY} tea find\nquery: expected string, got 1\n",
}
"""What a client prints, by its revision."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build and install the wheels, and compile the schema with the installed command."""
    uv = shutil.which("uv") or shutil.which(ROOT / ".tools" / "bin" / "uv")
    if uv is None:
        pytest.skip("uv is needed to build the wheels")
    folder = tmp_path_factory.mktemp("elsewhere")
    for project in ("generated", "codegen", "runtime/typedmcp-schemas", ".", "runtime/typedmcp-http"):
        _run(folder, uv, "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(ROOT / project))
    _run(folder, uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    wheels = [
        f"{wheel}[http,pydantic]" if wheel.name.startswith("typedmcp-") else str(wheel)
        for wheel in (folder / "dist").glob("*.whl")
    ]
    python = folder / "venv" / "bin" / "python"
    _run(folder, uv, "pip", "install", "--quiet", "--python", str(python), *wheels)
    (folder / "acme.json").write_text(json.dumps({"$defs": ACME}), encoding="utf-8")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "server_models.py").write_text(_on_models(SERVER), encoding="utf-8")
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")
    command = [str(folder / "venv" / "bin" / "mcpspec-codegen"), "compile", "acme.json", "--extends", NEWEST]
    _run(folder, *command, "--package", "acme_mcp", "--out", ".")
    return folder


def _on_models(server: str) -> str:
    """Return the server on Pydantic models."""
    modules = server.replace("import handlers, methods", "import models_handlers as handlers\n"
        "from acme_mcp import models_methods as methods").replace("import structs", "import models")  # fmt: skip
    return modules.replace("methods=methods", 'methods=methods, codec="pydantic"')


def _run(folder: Path, *command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("server", ["server.py", "server_models.py"])
@pytest.mark.parametrize("revision", OUTPUT)
def test_a_vendors_methods_are_served_and_called_over_stdio(revision: str, server: str, place: Path) -> None:
    python = str(place / "venv" / "bin" / "python")
    assert _run(place, python, "client.py", revision, python, server) == OUTPUT[revision]


@pytest.mark.parametrize("revision", OUTPUT)
def test_a_vendors_methods_are_served_and_called_over_http(revision: str, place: Path) -> None:
    python = str(place / "venv" / "bin" / "python")
    with subprocess.Popen([python, "server.py", "http"], cwd=place, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            (url,) = next(filter(None, (re.findall(r"http://\S+/mcp", line) for line in server.stderr)))
            assert _run(place, python, "client.py", revision, url) == OUTPUT[revision]
        finally:
            server.terminate()


def test_server_client_and_package_type_check_strictly(place: Path) -> None:
    python = str(place / "venv" / "bin" / "python")
    files = ["server.py", "server_models.py", "client.py", "acme_mcp"]
    settings = {"typeCheckingMode": "strict", "include": files}
    (place / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    _run(place, sys.executable, "-m", "pyright", "-p", ".", "--pythonpath", python)
    _run(place, sys.executable, "-m", "mypy", "--strict", "--python-executable", python, *files)
