"""`list`, `inspect`, `call`, `read` and `prompt`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspec.v2026_07_28 import structs
from tests.cli.command import Done, Inside, in_words, typedmcp


def test_list_shows_what_there_is_in_columns(folder: Path) -> None:
    done = typedmcp("list", "server.py", cwd=folder)
    assert done.status == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == "Tools"
    assert "  forecast     city [days] [unit] [tags]  The weather to come." in lines
    assert lines[lines.index("Resources") + 1] == "  cities://all              All cities."
    assert lines[lines.index("Templates") + 1] == "  weather://{city}/now    The weather at the moment."
    assert lines[lines.index("Prompts") + 1] == "  packing  city [days]  What to pack."
    assert not any(line.endswith(" ") for line in lines)


def test_list_shows_one_kind_alone(url: str, inside: Inside) -> None:
    done = inside("list", url, "prompts")
    assert done.out == "Prompts\n  packing  city [days]  What to pack.\n"


def test_list_as_json_is_the_lists_of_the_protocol(url: str, inside: Inside) -> None:
    found = inside("list", url, "--json").json
    assert [*found] == ["tools", "resources", "resourceTemplates", "prompts"]
    for name, kind in (
        ("tools", structs.Tool),
        ("resources", structs.Resource),
        ("resourceTemplates", structs.ResourceTemplate),
        ("prompts", structs.Prompt),
    ):
        decoded: Any = structs.from_builtins(found[name], list[kind])  # type: ignore[valid-type]
        assert structs.to_builtins(decoded) == found[name]


def test_inspect_shows_capabilities_instructions_and_schemas(url: str, inside: Inside) -> None:
    done = inside("inspect", url)
    assert done.status == 0
    assert done.out.startswith("weather 1.0\n  revision      2026-07-28\n  capabilities  logging, ")
    assert "\nAsk for alerts first.\n" in done.out
    assert (
        "\ntool forecast\n  The weather to come.\n    city  string           required  Where it is to be.\n" in done.out
    )
    assert "    days  integer          = 3       How many days, beginning with today.\n" in done.out
    assert '    unit  "C" | "F"        = "C"\n    tags  array of string  = []\n' in done.out
    assert "\n    numbers  array of number  required\n    gives result  number  required\n" in done.out
    assert "\nresource images://logo\n    name  logo\n    type  image/png\n" in done.out
    assert done.out.endswith("\nprompt packing\n  What to pack.\n    city  required\n    days\n")


ODD = """
import json, sys
schemas = [{"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}] * 6}}}, {"properties": 3}]
tools = [{"name": f"tool{n}", "inputSchema": {"type": "object", **schema}} for n, schema in enumerate(schemas)]
server = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
results = {"initialize": {"protocolVersion": "2025-11-25", **server}, "tools/list": {"tools": tools}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("command", ["list", "inspect"])
def test_schemas_that_make_no_sense_are_shown_as_far_as_they_do(command: str, inside: Inside) -> None:
    done = inside(command, "--revision", "2025-11-25", "--", sys.executable, "-c", ODD)
    assert done.status == 0
    assert "tool0" in done.out
    assert "tool1" in done.out


def test_inspect_as_json_says_who_the_server_is_and_what_it_has(url: str, inside: Inside) -> None:
    found = inside("inspect", url, "--json").json
    assert found["protocolVersion"] == "2026-07-28"
    assert found["serverInfo"] == {"name": "weather", "version": "1.0"}
    assert found["instructions"] == "Ask for alerts first."
    assert found["capabilities"]["tools"] == {"listChanged": True}
    assert {"tools", "resources", "resourceTemplates", "prompts"} <= found.keys()


def test_a_tool_is_called_with_arguments_that_its_schema_tells_apart(folder: Path) -> None:
    done = typedmcp("call", "server.py", "forecast", "city=3", "days=2", "tags=a", "tags=b", cwd=folder)
    assert done == Done(0, "'3', 2 days, C, ['a', 'b']\n", "asked about 3\n")


@pytest.mark.parametrize("stdin", [False, True], ids=["in an argument", "on standard input"])
def test_arguments_may_be_json_to_which_others_are_added(url: str, stdin: bool) -> None:
    text = '{"city": "Oslo", "days": 1}'
    arguments = ["--json-args", "-" if stdin else text, "unit=F"]
    done = typedmcp("call", url, "forecast", *arguments, stdin=text if stdin else "")
    assert done.out == "'Oslo', 1 days, F, []\n"


def test_a_call_as_json_is_the_result_of_the_protocol(url: str, inside: Inside) -> None:
    done = inside("call", url, "total", "numbers:=[1, 2.5]", "--json")
    result = structs.from_builtins(done.json, structs.CallToolResult)
    assert result.structured_content == {"result": 3.5}


def test_a_tool_that_fails_says_why_on_standard_error(url: str, inside: Inside) -> None:
    assert inside("call", url, "fail") == Done(1, "", "it rained\n")
    done = inside("call", url, "fail", "--json")
    assert (done.status, done.json["isError"], done.json["content"][0]["text"]) == (1, True, "it rained")


def test_an_error_that_is_the_answer_is_a_document_too(url: str, inside: Inside) -> None:
    done = inside("read", url, "weather://", "--json")
    assert done.status == 1
    assert done.json["error"]["code"] == -32602
    assert done.err.startswith("error: the server answered: resource not found: weather://")


def test_arguments_that_the_server_refuses_are_a_failure_of_the_tool(url: str, inside: Inside) -> None:
    done = inside("call", url, "forecast", "--json-args", "{}")
    assert done.status == 1
    assert "city" in done.err


def test_log_messages_go_to_standard_error_from_the_level_that_is_asked_for(url: str, inside: Inside) -> None:
    done = inside("call", url, "slow", "steps=2")
    assert done == Done(0, "done\n", "warning: stairs: finished 0\nwarning: stairs: finished 1\n")
    done = inside("call", url, "slow", "steps=1", "--log-level", "debug")
    assert 'debug: {"finished":0}\n' in done.err
    assert inside("call", url, "slow", "steps=1", "--log-level", "error").err == ""


def test_an_image_is_summarised_or_saved_and_its_caption_printed(url: str, tmp_path: Path) -> None:
    summary = "[image/png, 9 bytes; --output FILE saves it]\n"
    assert typedmcp("call", url, "chart").out == f"a chart\n{summary}"
    file = tmp_path / "chart.png"
    done = typedmcp("call", url, "chart", "count=2", "--output", file)
    assert done.out == "a chart\n"
    assert done.err == f"9 bytes saved to {file}\n9 bytes saved to {tmp_path / 'chart-2.png'}\n"
    assert file.read_bytes() == b"picture 0"
    assert (tmp_path / "chart-2.png").read_bytes() == b"picture 1"


def test_data_may_be_written_to_standard_output(url: str) -> None:
    assert typedmcp("read", url, "images://logo", "-o", "-") == Done(0, "logo", "")


def test_texts_are_saved_where_there_is_nothing_else(url: str, inside: Inside, tmp_path: Path) -> None:
    done = inside("read", url, "weather://Bergen/now", "-o", tmp_path / "now.txt")
    assert done.out == ""
    assert (tmp_path / "now.txt").read_text() == "Bergen: rain"


def test_a_file_that_cannot_be_written_is_named(url: str, inside: Inside) -> None:
    done = inside("read", url, "images://logo", "-o", "nowhere/logo.png")
    assert done == Done(2, "", "error: cannot write nowhere/logo.png: No such file or directory\n")


def test_a_resource_is_printed_as_it_is(url: str, inside: Inside) -> None:
    assert inside("read", url, "cities://all").out == '["Bergen","Cairo"]\n'


def test_a_prompt_is_printed_message_by_message(url: str, inside: Inside) -> None:
    done = inside("prompt", url, "packing", "city=Bergen", "days=2")
    assert done.out == "user:\nI am going to Bergen for 2 days.\n"
    found = inside("prompt", url, "packing", "city=Bergen", "--json").json
    assert structs.from_builtins(found, structs.GetPromptResult).messages[0].role == "user"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["call", "URL", "forcast"], "no tool 'forcast'; did you mean forecast?"),
        (["call", "URL", "forecast", "cty=a"], "forecast takes no 'cty'; did you mean city?"),
        (["call", "URL", "forecast"], "forecast needs city (string): city=…"),
        (["call", "URL", "forecast", "city=a", "days=some"], "days: expected integer, got 'some'"),
        (["prompt", "URL", "pack"], "no prompt 'pack'; did you mean packing?"),
        (["prompt", "URL", "packing", "city:=3"], "city: arguments of prompts are texts: city=…"),
    ],
    ids=in_words,
)
def test_what_the_server_does_not_have_is_not_asked_for(
    url: str, inside: Inside, arguments: list[str], told: str
) -> None:
    assert inside(*[url if part == "URL" else part for part in arguments]) == Done(2, "", f"error: {told}\n")


def test_a_resource_that_is_not_there_has_neighbours(url: str, inside: Inside) -> None:
    done = inside("read", url, "cities://al")
    assert done.status == 1
    assert done.err.endswith("resource not found: cities://al (-32602); did you mean cities://all?\n")


def test_a_resource_that_a_template_stands_for_was_named_right(url: str, inside: Inside) -> None:
    done = inside("read", url, "weather://Atlantis/now")
    assert done.status == 1
    assert done.err.startswith("error: the server answered: resource not found: weather://Atlantis/now (-32602)")
    assert "; there are " not in done.err


def test_a_server_that_asks_is_declined_where_nobody_sits_at_a_terminal(url: str) -> None:
    done = typedmcp("call", url, "ask")
    assert done == Done(0, "decline []\n", "question: declined, since there is no terminal: Who are you?\n")
