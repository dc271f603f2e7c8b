"""The official inspector's command line looks at a server of ours over stdio, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcpspec.v2026_07_28 import structs
from tests.conformance import server
from tests.interop import install
from tests.interop.peers import COMMAND, node, printed

pytestmark = [pytest.mark.long, pytest.mark.parametrize("era", ["legacy", "modern"])]

LAUNCHER = install.INTEROP / "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def inspected(home: Path, era: str, method: str, *options: str) -> Any:
    """The result that the inspector prints. Its own files go to an empty home."""
    command = [node(), str(LAUNCHER), "--cli", *COMMAND, "--protocol-era", era, "--format", "json", "--method", method]
    return json.loads(printed([*command, *options], env={**os.environ, "HOME": str(home)}))["result"]


def refusal(home: Path, era: str, method: str, *options: str) -> str:
    """The message of the error that the inspector ends with."""
    with pytest.raises(subprocess.CalledProcessError) as ended:
        inspected(home, era, method, *options)
    error: str = json.loads(ended.value.stderr.splitlines()[-1])["error"]["message"]
    return error


@pytest.mark.parametrize(
    ("method", "member", "table"),
    [
        ("tools/list", "tools", server.TOOLS),
        ("prompts/list", "prompts", server.PROMPTS),
    ],
)
def test_it_lists_what_is_offered(tmp_path: Path, era: str, method: str, member: str, table: dict[str, Any]) -> None:
    offered = [item for name, (item, _) in table.items() if name not in server.LATE]
    assert inspected(tmp_path, era, method)[member] == structs.to_builtins(offered)


def test_it_lists_resources_and_templates(tmp_path: Path, era: str) -> None:
    assert inspected(tmp_path, era, "resources/list")["resources"] == structs.to_builtins(server.RESOURCES)
    templates = inspected(tmp_path, era, "resources/templates/list")["resourceTemplates"]
    assert templates == structs.to_builtins(server.TEMPLATES)


def test_it_calls_a_tool(tmp_path: Path, era: str) -> None:
    result = inspected(tmp_path, era, "tools/call", "--tool-name", "test_simple_text")
    assert result["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]


def test_it_passes_arguments_on(tmp_path: Path, era: str) -> None:
    result = inspected(tmp_path, era, "tools/call", "--tool-name", "test_x_mcp_header", "--tool-arg", "region=north")
    assert result["content"] == [{"type": "text", "text": "Region: north"}]


def test_it_waits_for_a_tool_that_reports_progress(tmp_path: Path, era: str) -> None:
    result = inspected(tmp_path, era, "tools/call", "--tool-name", "test_tool_with_progress")
    assert result["content"] == [{"type": "text", "text": "Done, with progress."}]


def test_it_reads_a_resource(tmp_path: Path, era: str) -> None:
    uri = "test://static-text"
    contents = inspected(tmp_path, era, "resources/read", "--uri", uri)["contents"]
    text = "This is the content of the static text resource."
    assert contents == [{"uri": uri, "mimeType": "text/plain", "text": text}]


def test_it_gets_a_prompt(tmp_path: Path, era: str) -> None:
    name = ("--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=hello", "arg2=world")
    text = "Prompt with arguments: arg1='hello', arg2='world'"
    messages = inspected(tmp_path, era, "prompts/get", *name)["messages"]
    assert messages == [{"role": "user", "content": {"type": "text", "text": text}}]


def test_it_is_told_of_a_resource_that_there_is_not(tmp_path: Path, era: str) -> None:
    uri = "test://no-such-resource"
    assert refusal(tmp_path, era, "resources/read", "--uri", uri) == f"resource not found: {uri}"


def test_it_is_told_that_a_tool_needs_what_it_has_not_declared(tmp_path: Path, era: str) -> None:
    name = "test_input_required_result_elicitation"
    assert refusal(tmp_path, era, "tools/call", "--tool-name", name) == "the client has not declared: elicitation"


def test_it_sees_a_failure_of_a_tool(tmp_path: Path, era: str) -> None:
    message = refusal(tmp_path, era, "tools/call", "--tool-name", "test_error_handling")
    assert message == "Tool 'test_error_handling' returned isError:true."


def test_it_sets_the_level_of_logging_where_there_is_a_session(tmp_path: Path, era: str) -> None:
    if era == "legacy":
        assert inspected(tmp_path, era, "logging/setLevel", "--log-level", "debug") == {}
    else:
        assert "not supported" in refusal(tmp_path, era, "logging/setLevel", "--log-level", "debug")
