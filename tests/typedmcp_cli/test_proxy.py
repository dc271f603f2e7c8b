"""`typedmcp proxy` offers servers to clients that they were not made for."""

from __future__ import annotations

import json
import stat
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp as library
from tests.cases import each
from tests.helpers import run
from tests.listening import running_on
from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT, InProcess, typedmcp

SERVER = """
import typedmcp
server = typedmcp.Server("old")
@server.tool
def add(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}
@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    return str(await ctx.list_roots())
if __name__ == "__main__":
    server.run(revisions=["2024-11-05"])
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of a server of 2024-11-05."""
    made = tmp_path / "old.py"
    made.write_text(SERVER)
    return made


@contextmanager
def proxying(*arguments: object) -> Generator[str]:
    """Run the proxy over HTTP at a free port, and return its address."""
    with running_on([*COMMAND, "proxy", "--http", "0", *map(str, arguments)], ENVIRONMENT) as url:
        yield url.removesuffix("/mcp")


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310  # it is ours
        return json.load(response)


@pytest.mark.long
def test_a_host_uses_a_server_of_another_revision_through_the_proxy(file: Path, tmp_path: Path) -> None:
    audit = tmp_path / "calls.jsonl"
    proxy = [*COMMAND, "proxy", "--audit", str(audit), "--report", "--", sys.executable, str(file)]
    done = typedmcp("call", "add", "a=1", "b=2", "--json", "--revision", "2026-07-28", "--", *proxy)
    assert done.status == 0, done.err
    assert json.loads(json.loads(done.out)["content"][0]["text"]) == {"sum": 3}
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert stat.S_IMODE(audit.stat().st_mode) == 0o600
    called = next(record for record in records if record["method"] == "tools/call")
    assert (called["name"], called["outcome"], called["server"]) == ("add", "ok", "server")
    assert "arguments" not in called


@pytest.mark.long
def test_several_servers_are_offered_over_http_and_the_configuration_is_loaded_again(
    file: Path, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": [str(file)]}

    def write(*names: str) -> None:
        config.write_text(json.dumps({"mcpServers": dict.fromkeys(names, entry)}))

    async def names_of(url: str, **options: Any) -> set[str]:
        async with library.connect(url, **options) as client:
            return {tool.name async for tool in client.tools()}

    async def main(address: str) -> None:
        assert await names_of(f"{address}/mcp") == {"a_add", "a_ask", "b_add", "b_ask"}
        assert await names_of(f"{address}/sse", revisions=["2024-11-05"], sse=True) == {
            "a_add", "a_ask", "b_add", "b_ask",
        }  # fmt: skip
        async with library.connect(f"{address}/mcp") as client, client.listen(tools=True) as changes:
            write("b", "c")
            await anext(changes)
            assert {tool.name async for tool in client.tools()} == {"b_add", "b_ask", "c_add", "c_ask"}

    write("a", "b")
    with proxying("--config", config, "--reload") as address:
        assert get(f"{address}/health") == {"status": "ok"}
        assert get(f"{address}/ready") == {"status": "ok", "servers": {"a": "ok", "b": "ok"}}
        run(main(address))


@pytest.mark.long
def test_the_proxy_requires_the_token_of_its_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PROXY_TOKEN", "abc")

    async def main(address: str) -> None:
        with pytest.raises(library.AuthorizationRequiredError):
            await library.connect(f"{address}/mcp")
        async with library.connect(f"{address}/mcp", auth="abc") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 1})).content

    with proxying("--token-env", "PROXY_TOKEN", "--", sys.executable, file) as address:
        run(main(address))


@each(
    "arguments, text",
    [
        ([], "no server; expected TARGET"),
        (["x.py", "--host", "::1"], "--host requires --http PORT"),
        (["http://localhost:1/mcp", "--reload"], "--reload requires --config FILE"),
        (["http://localhost:1/mcp", "--audit", "/no/such/folder/a"], "--audit /no/such/folder/a: No such file"),
        (["http://localhost:1/mcp", "--http", "0", "--port", "1"], "use --http PORT"),
    ],
)
def test_arguments_that_make_no_sense_are_explained(arguments: list[str], text: str, in_process: InProcess) -> None:
    done = in_process("proxy", *arguments)
    assert done.status == 2
    assert text in done.err
