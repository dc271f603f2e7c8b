"""The official inspector's command line uses our server, over every transport and in both eras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpspec.v2026_07_28.exact import structs
from tests.cases import each
from tests.conformance import server
from tests.interop import install
from tests.interop.peers import COMMAND, PATHS, SERVER, node, printed
from tests.listening import listening
from tests.pairs import FULL_PRODUCTS

pytestmark = pytest.mark.long

LAUNCHER = install.INTEROP / "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@dataclass(frozen=True)
class Way:
    """A transport to the server under test, and an era of the protocol."""

    era: str
    target: list[str]
    home: Path

    def inspected(self, method: str, *options: str) -> Any:
        """Return the result that the inspector prints. Its own files go to an empty home."""
        how = ["--protocol-era", self.era, "--format", "json", "--method", method]
        command = [node(), str(LAUNCHER), "--cli", *self.target, *how, *options]
        return json.loads(printed(command, env={**os.environ, "HOME": str(self.home)}))["result"]

    def refusal(self, method: str, *options: str) -> str:
        """Return the message of the error that the inspector exits with."""
        with pytest.raises(subprocess.CalledProcessError) as ended:
            self.inspected(method, *options)
        error: str = json.loads(ended.value.stderr.splitlines()[-1])["error"]["message"]
        return error


WAYS = ["stdio legacy", "stdio modern", "http legacy", "http modern", "sse legacy"]
FEW = WAYS if FULL_PRODUCTS else ["stdio modern", "http legacy"]
every_way = pytest.mark.parametrize("way", WAYS, indirect=True, scope="module")


@pytest.fixture(scope="module", params=FEW)
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Way]:
    transport, era = request.param.split()
    home = tmp_path_factory.mktemp("home")
    if transport == "stdio":
        yield Way(era, COMMAND, home)
        return
    with listening(SERVER) as server:
        yield Way(era, ["--transport", transport, "--server-url", server.address + PATHS[transport]], home)


@each(
    ("method", "member", "table"),
    [
        ("tools/list", "tools", server.TOOLS),
        ("prompts/list", "prompts", server.PROMPTS),
    ],
)
def test_it_lists_tools_and_prompts(way: Way, method: str, member: str, table: dict[str, Any]) -> None:
    offered = [item for name, (item, _) in table.items() if name not in server.LATE]
    assert way.inspected(method)[member] == structs.to_builtins(offered)


def test_it_lists_resources_and_templates(way: Way) -> None:
    assert way.inspected("resources/list")["resources"] == structs.to_builtins(server.RESOURCES)
    templates = way.inspected("resources/templates/list")["resourceTemplates"]
    assert templates == structs.to_builtins(server.TEMPLATES)


@every_way
def test_it_calls_a_tool(way: Way) -> None:
    result = way.inspected("tools/call", "--tool-name", "test_simple_text")
    assert result["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]


def test_it_passes_arguments(way: Way) -> None:
    result = way.inspected("tools/call", "--tool-name", "test_x_mcp_header", "--tool-arg", "region=north")
    assert result["content"] == [{"type": "text", "text": "Region: north"}]


def test_it_waits_for_a_tool_that_reports_progress(way: Way) -> None:
    result = way.inspected("tools/call", "--tool-name", "test_tool_with_progress")
    assert result["content"] == [{"type": "text", "text": "Done, with progress."}]


def test_it_reads_a_resource(way: Way) -> None:
    uri = "test://static-text"
    contents = way.inspected("resources/read", "--uri", uri)["contents"]
    text = "This is the content of the static text resource."
    assert contents == [{"uri": uri, "mimeType": "text/plain", "text": text}]


def test_it_gets_a_prompt(way: Way) -> None:
    name = ("--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=hello", "arg2=world")
    text = "Prompt with arguments: arg1='hello', arg2='world'"
    messages = way.inspected("prompts/get", *name)["messages"]
    assert messages == [{"role": "user", "content": {"type": "text", "text": text}}]


def test_it_reports_an_unknown_resource(way: Way) -> None:
    uri = "test://no-such-resource"
    assert way.refusal("resources/read", "--uri", uri) == f"resource not found: {uri}"


def test_it_reports_a_missing_capability(way: Way) -> None:
    name = "test_input_required_result_elicitation"
    assert way.refusal("tools/call", "--tool-name", name) == "the client has not declared: elicitation"


def test_it_reports_a_failing_tool(way: Way) -> None:
    message = way.refusal("tools/call", "--tool-name", "test_error_handling")
    assert message == "Tool 'test_error_handling' returned isError:true."


def test_it_sets_the_log_level_in_a_session(way: Way) -> None:
    if way.era == "legacy":
        assert way.inspected("logging/setLevel", "--log-level", "debug") == {}
    else:
        assert "not supported" in way.refusal("logging/setLevel", "--log-level", "debug")


def test_it_shows_a_server_that_the_command_line_has_installed(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(
        "import typedmcp\nserver = typedmcp.Server('weather')\n@server.tool\ndef rain(): ...\n"
    )
    command = [sys.executable, "-m", "typedmcp", "install", "weather.py", "--host", "inspector", "--write"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=60)
    command = [node(), str(LAUNCHER), "--cli", "--server", "weather", "--format", "json", "--method", "tools/list"]
    assert [tool["name"] for tool in json.loads(printed(command, env=environment))["result"]["tools"]] == ["rain"]
