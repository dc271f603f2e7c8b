"""`list`, `inspect`, `call`, `read` and `prompt`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspec.v2026_07_28.exact import structs
from tests.cases import each
from tests.spoken import MODERN_REVISION
from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT, CommandResult, InProcess, case_id, typedmcp


def test_list_shows_features_in_columns(folder: Path) -> None:
    done = typedmcp("list", "server.py", cwd=folder)
    assert done.status == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == "Tools"
    assert "  forecast     city [days] [unit] [tags]  Forecast the weather." in lines
    assert lines[lines.index("Resources") + 1] == "  cities://all              All cities."
    assert lines[lines.index("Templates") + 1] == "  weather://{city}/now  text/plain  Get the current weather."
    assert lines[lines.index("Prompts") + 1] == "  packing  city [days]  Ask for a packing list."
    assert not any(line.endswith(" ") for line in lines)


def test_list_shows_only_the_chosen_kind(url: str, in_process: InProcess) -> None:
    done = in_process("list", url, "prompts")
    assert done.out == "Prompts\n  packing  city [days]  Ask for a packing list.\n"


def test_list_as_json_has_the_lists_of_the_protocol(url: str, in_process: InProcess) -> None:
    found = in_process("list", url, "--json").json
    assert [*found] == ["tools", "resources", "resourceTemplates", "prompts"]
    for name, kind in (
        ("tools", structs.Tool),
        ("resources", structs.Resource),
        ("resourceTemplates", structs.ResourceTemplate),
        ("prompts", structs.Prompt),
    ):
        decoded: Any = structs.from_builtins(found[name], list[kind])  # type: ignore[valid-type]
        assert structs.to_builtins(decoded) == found[name]


def test_inspect_shows_capabilities_instructions_and_schemas(url: str, in_process: InProcess) -> None:
    done = in_process("inspect", url)
    assert done.status == 0
    assert done.out.startswith("weather 1.0\n  revision      2026-07-28\n  capabilities  logging, ")
    assert "\nCheck for alerts first.\n" in done.out
    assert (
        "\ntool forecast\n  Forecast the weather.\n    city  string           required  The name of the city.\n"
        in done.out
    )
    assert "    days  integer          = 3       How many days, starting today.\n" in done.out
    assert '    unit  "C" | "F"        = "C"\n    tags  array of string  = []\n' in done.out
    assert "\n    numbers  array of number  required\n    returns result  number  required\n" in done.out
    assert "\nresource images://logo\n    name  logo\n    type  image/png\n" in done.out
    assert done.out.endswith("\nprompt packing\n  Ask for a packing list.\n    city  required\n    days\n")


ODD = """
import json, sys
schemas = [{"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}] * 6}}}, {"properties": 3}]
tools = [{"name": f"tool{n}", "inputSchema": {"type": "object", **schema}} for n, schema in enumerate(schemas)]
server = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
results = {"initialize": {"protocolVersion": "2025-11-25", **server}, "tools/list": {"tools": tools}}
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        response = {"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}
        print(json.dumps(response), flush=True)
"""


@each("command", ["list", "inspect"])
def test_odd_schemas_are_shown_as_far_as_possible(command: str, in_process: InProcess) -> None:
    done = in_process(command, "--revision", "2025-11-25", "--", sys.executable, "-c", ODD)
    assert done.status == 0
    assert "tool0" in done.out
    assert "tool1" in done.out


def test_inspect_as_json_has_the_server_and_its_features(url: str, in_process: InProcess) -> None:
    found = in_process("inspect", url, "--json").json
    assert found["protocolVersion"] == "2026-07-28"
    assert found["serverInfo"] == {"name": "weather", "version": "1.0"}
    assert found["instructions"] == "Check for alerts first."
    assert found["capabilities"]["tools"] == {"listChanged": True}
    assert {"tools", "resources", "resourceTemplates", "prompts"} <= found.keys()


def test_a_tool_is_called_with_arguments_read_by_its_schema(folder: Path) -> None:
    done = typedmcp("call", "server.py", "forecast", "city=3", "days=2", "tags=a", "tags=b", cwd=folder)
    assert done == CommandResult(0, "'3', 2 days, C, ['a', 'b']\n", "asked about 3\n")


@each("stdin", [False, True], ids=["in an argument", "on standard input"])
def test_key_value_pairs_are_added_to_json_arguments(url: str, stdin: bool) -> None:
    text = '{"city": "Oslo", "days": 1}'
    arguments = ["--json-args", "-" if stdin else text, "unit=F"]
    done = typedmcp("call", url, "forecast", *arguments, stdin=text if stdin else "")
    assert done.out == "'Oslo', 1 days, F, []\n"


def test_a_call_as_json_prints_the_result_of_the_protocol(url: str, in_process: InProcess) -> None:
    done = in_process("call", url, "total", "numbers:=[1, 2.5]", "--json")
    result = structs.from_builtins(done.json, structs.CallToolResult)
    assert result.structured_content == {"result": 3.5}


def test_a_failed_tool_prints_its_text_on_standard_error(url: str, in_process: InProcess) -> None:
    assert in_process("call", url, "fail") == CommandResult(1, "", "it rained\n")
    done = in_process("call", url, "fail", "--json")
    assert (done.status, done.json["isError"], done.json["content"][0]["text"]) == (1, True, "it rained")


def test_an_error_response_is_a_json_document_too(url: str, in_process: InProcess) -> None:
    done = in_process("read", url, "weather://", "--json")
    assert done.status == 1
    assert done.json["error"]["code"] == -32602
    assert done.err.startswith("error: the server returned an error: resource not found: weather://")


def test_arguments_that_the_server_rejects_fail_the_tool(url: str, in_process: InProcess) -> None:
    done = in_process("call", url, "forecast", "--json-args", "{}")
    assert done.status == 1
    assert "city" in done.err


def test_log_messages_of_the_chosen_level_go_to_standard_error(url: str, in_process: InProcess) -> None:
    done = in_process("call", url, "slow", "steps=2")
    assert done == CommandResult(0, "done\n", "warning: stairs: finished 0\nwarning: stairs: finished 1\n")
    done = in_process("call", url, "slow", "steps=1", "--log-level", "debug")
    assert 'debug: {"finished":0}\n' in done.err
    assert in_process("call", url, "slow", "steps=1", "--log-level", "error").err == ""


def test_an_image_is_summarised_or_saved_and_text_is_printed(url: str, tmp_path: Path) -> None:
    summary = "[image/png, 9 bytes; save with --output FILE]\n"
    assert typedmcp("call", url, "chart").out == f"a chart\n{summary}"
    file = tmp_path / "chart.png"
    done = typedmcp("call", url, "chart", "count=2", "--output", file)
    assert done.out == "a chart\n"
    assert done.err == f"saved 9 bytes to {file}\nsaved 9 bytes to {tmp_path / 'chart-2.png'}\n"
    assert file.read_bytes() == b"picture 0"
    assert (tmp_path / "chart-2.png").read_bytes() == b"picture 1"


def test_data_can_be_written_to_standard_output(url: str) -> None:
    assert typedmcp("read", url, "images://logo", "-o", "-") == CommandResult(0, "logo", "")


def test_text_is_saved_if_there_is_only_text(url: str, in_process: InProcess, tmp_path: Path) -> None:
    done = in_process("read", url, "weather://Bergen/now", "-o", tmp_path / "now.txt")
    assert done.out == ""
    assert (tmp_path / "now.txt").read_text() == "Bergen: rain"


def test_a_file_that_cannot_be_written_is_named_in_the_error(url: str, in_process: InProcess) -> None:
    done = in_process("read", url, "images://logo", "-o", "nowhere/logo.png")
    assert done == CommandResult(2, "", "error: cannot write nowhere/logo.png: No such file or directory\n")


def test_a_text_resource_is_printed_as_it_is(url: str, in_process: InProcess) -> None:
    assert in_process("read", url, "cities://all").out == '["Bergen","Cairo"]\n'


def test_a_prompt_is_printed_message_by_message(url: str, in_process: InProcess) -> None:
    done = in_process("prompt", url, "packing", "city=Bergen", "days=2")
    assert done.out == "user:\nI am going to Bergen for 2 days.\n"
    found = in_process("prompt", url, "packing", "city=Bergen", "--json").json
    assert structs.from_builtins(found, structs.GetPromptResult).messages[0].role == "user"


@each(
    "arguments, expected",
    [
        (["call", "URL", "forcast"], "no tool 'forcast'; did you mean forecast?"),
        (["call", "URL", "forecast", "cty=a"], "forecast has no argument 'cty'; did you mean city?"),
        (["call", "URL", "forecast"], "forecast requires city (string); add city=…"),
        (["call", "URL", "forecast", "city=a", "days=some"], "days: expected integer, got 'some'"),
        (["prompt", "URL", "pack"], "no prompt 'pack'; did you mean packing?"),
        (["prompt", "URL", "packing", "city:=3"], "city: arguments of prompts are strings; use city=…"),
    ],
    ids=case_id,
)
def test_wrong_names_and_arguments_are_rejected_before_the_request(
    url: str, in_process: InProcess, arguments: list[str], expected: str
) -> None:
    assert in_process(*[url if part == "URL" else part for part in arguments]) == CommandResult(
        2, "", f"error: {expected}\n"
    )


def test_the_error_for_an_unknown_resource_names_similar_ones(url: str, in_process: InProcess) -> None:
    done = in_process("read", url, "cities://al")
    assert done.status == 1
    assert done.err.endswith("resource not found: cities://al (-32602); did you mean cities://all?\n")


def test_a_uri_that_matches_a_template_gets_no_suggestion(url: str, in_process: InProcess) -> None:
    done = in_process("read", url, "weather://Atlantis/now")
    assert done.status == 1
    assert done.err.startswith(
        "error: the server returned an error: resource not found: weather://Atlantis/now (-32602)"
    )
    assert "; known: " not in done.err


def test_elicitation_is_declined_without_a_terminal(url: str) -> None:
    done = typedmcp("call", url, "ask")
    assert done == CommandResult(0, "decline []\n", "question: declined, because there is no terminal: Who are you?\n")


# Tasks

_TASKS = """
import asyncio
import typedmcp
from typedmcp import Context, ToolError
from typedmcp_extensions.tasks import ServerTasks

server = typedmcp.Server("jobs", extensions=[ServerTasks(poll_interval=0.02)])


@server.tool(task="required")
async def compress(files: int, ctx: Context) -> str:
    await ctx.progress(files, 3, "\\x1b[2J smaller")
    await asyncio.sleep(0.3)
    return f"{files} files"


@server.tool(task="required")
async def spoil() -> str:
    raise ToolError("the disk is full")


@server.tool(task="required")
async def wait() -> str:
    print("started", flush=True)
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise
    return ""
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The file of a server whose tools need tasks."""
    file = tmp_path / "jobs.py"
    file.write_text(_TASKS, encoding="utf-8")
    return file


def test_a_tool_that_needs_a_task_is_polled_and_its_state_is_shown(jobs: Path, in_process: InProcess) -> None:
    done = in_process("call", jobs, "compress", "files=2", "--revision", MODERN_REVISION)
    assert (done.status, done.out) == (0, "2 files\n"), done.err
    lines = done.err.splitlines()
    assert all(line.startswith("task ") for line in lines)
    assert any(line.endswith(r": working: 2 of 3: \x1b[2J smaller") for line in lines)
    assert in_process("call", jobs, "compress", "files=2", "--json", "--revision", MODERN_REVISION).json["content"] == [
        {"type": "text", "text": "2 files"}
    ]


def test_a_tool_that_fails_in_its_task_fails_the_command(jobs: Path, in_process: InProcess) -> None:
    done = in_process("call", jobs, "spoil", "--revision", MODERN_REVISION)
    assert (done.status, done.out) == (1, "")
    assert done.err.endswith("the disk is full\n")


def test_an_interrupted_command_cancels_its_task(jobs: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "call", str(jobs), "wait", "--revision", MODERN_REVISION],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as command:
        assert command.stderr is not None
        while "started" not in command.stderr.readline():
            assert command.poll() is None
        command.send_signal(signal.SIGINT)
        _, rest = command.communicate(timeout=60)
    assert "cancelled" in rest
    assert command.returncode == 130


def test_a_tool_that_needs_a_task_says_so_on_a_revision_without_tasks(jobs: Path, in_process: InProcess) -> None:
    done = in_process("call", jobs, "compress", "files=2", "--revision", "2025-06-18")
    assert done.status == 1
    assert "runs as a task only" in done.err
