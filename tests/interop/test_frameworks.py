"""Frameworks use an older and a new server through `typedmcp proxy`, and the official inspector does.

No model is asked: each script lists and calls the tools through the MCP client of its framework.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop import install
from tests.interop.crossing import PROXY, serving_proxy
from tests.interop.peers import node, printed
from tests.interop.test_inspector import LAUNCHER

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
DECORATED = str(HERE / "servers" / "decorated.py")
SERVERS = {
    "2025-11-25": [str(install.python("py1")), DECORATED, "official"],
    "2026-07-28": [sys.executable, DECORATED, "ours"],
}
"""Commands of servers with the same tools by the revision that they speak with the proxy: mcp 1.x, and ours."""
TARGETS = [("2025-11-25", "stdio"), ("2026-07-28", "http")]
SCRIPTS = {
    "pydantic-ai-2": "pydantic_ai_client.py",
    "adapters": "langchain_client.py",
    "agents": "openai_agents_client.py",
}
"""The script of each framework, by its environment."""

through_the_proxy = pytest.mark.parametrize(("server", "transport"), TARGETS)


@contextmanager
def proxied(server: str, transport: str) -> Generator[list[str]]:
    """Yield the command of the proxy of a server, or the URL of a running one."""
    command = [*PROXY, "--revision", server, "--command", shlex.join(SERVERS[server])]  # the inspector takes a `--`
    if transport == "stdio":
        yield command
    else:
        with serving_proxy([*command, "--http", "0"]) as address:
            yield [f"{address}/mcp"]


def observe(environment: str, server: str, transport: str) -> Any:
    """Return what a framework observes of a server behind the proxy."""
    env = {**os.environ}
    if environment in install.SOURCES:
        env["PYTHONPATH"] = str(install.source(environment))
    with proxied(server, transport) as target:
        return json.loads(printed([str(install.python(environment)), str(HERE / SCRIPTS[environment]), *target], env))


TOOLS = {"add", "broken", "chatty", "picture", "ask_model"}


@through_the_proxy
def test_pydantic_ai_uses_a_server_through_the_proxy(server: str, transport: str) -> None:
    seen = observe("pydantic-ai-2", server, transport)
    assert {name for name, _, _ in seen["tools"]} == TOOLS
    assert seen["add"] in (5, {"result": 5})
    assert seen["picture"]["media_type"] == "image/png"
    assert seen["broken"].startswith("ModelRetry: ")
    assert seen["ask_model"] == "no error: Paris, of course."
    assert (seen["chatty"], seen["logged"]) == ("done", [["info", "working"]])
    assert (seen["notes"], seen["item"]) == ("Buy milk.", "item 7")
    assert seen["review"]["messages"][0]["content"]["content"] == "Please review the naming."


@pytest.mark.parametrize("server", SERVERS)
def test_langchain_uses_a_server_through_the_proxy(server: str) -> None:
    seen = observe("adapters", server, "http")  # it has a session for each call, so a process for each over stdio
    assert {tool[0] for tool in seen["tools"]} == TOOLS
    results = seen["results"]
    assert results["add"]["content"][0]["text"] == "5"
    assert results["picture"]["content"][0]["type"] == "image"
    assert "broken" in json.dumps(results["broken"])
    assert results["chatty"]["content"][0]["text"] == "done"
    # It never sets a log level, and a modern server sends only what is asked for.
    assert seen["logged"] == ([] if server == "2026-07-28" else [["info", "working"]])
    assert (seen["resources"][0][0], seen["item"]) == ("Buy milk.", ["item 7"])
    assert seen["review"][0]["content"] == "Please review the x."


@through_the_proxy
def test_openai_s_agents_use_a_server_through_the_proxy(server: str, transport: str) -> None:
    seen = observe("agents", server, transport)
    assert {*seen["tools"]} == TOOLS
    assert seen["tools"]["add"][1]["required"] == ["a", "b"]
    calls = seen["calls"]
    assert (calls["add"]["text"], calls["chatty"]["text"]) == ("5", "done")
    assert calls["picture"]["image_url"].startswith("data:image/png;base64,iVBOR")
    assert "broken" in calls["broken"]["text"]
    assert (seen["prompts"], seen["resources"]) == (["review"], ["test://notes"])
    assert seen["review"][0]["content"]["text"] == "Please review the naming."
    assert seen["item"][0]["text"] == "item 7"


@pytest.mark.parametrize(
    ("server", "transport", "era"), [("2025-11-25", "stdio", "modern"), ("2026-07-28", "http", "legacy")]
)
def test_the_inspector_uses_a_server_of_the_other_era_through_the_proxy(
    server: str, transport: str, era: str, tmp_path: Path
) -> None:
    def inspect(target: list[str], method: str, *options: str) -> Any:
        how = ["--protocol-era", era, "--format", "json", "--method", method]
        env = {**os.environ, "HOME": str(tmp_path)}  # its own files go to an empty home
        return json.loads(printed([node(), str(LAUNCHER), "--cli", *target, *how, *options], env=env))["result"]

    with proxied(server, transport) as given:
        target = given if transport == "stdio" else ["--transport", "http", "--server-url", *given]
        assert {tool["name"] for tool in inspect(target, "tools/list")["tools"]} >= {"add", "broken", "picture"}
        added = inspect(target, "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3")
        assert added["content"] == [{"type": "text", "text": "5"}]
        assert inspect(target, "resources/read", "--uri", "test://item/7")["contents"][0]["text"] == "item 7"
