"""Programs for other libraries run here after a change of imports, and do what they do there."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from collections.abc import Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest

from mcpspec.support.objects import is_object
from tests.cases import each
from tests.interop.install import python
from tests.ported.programs import CHANGES, MARKS, NAMES, PAGE, name_of, ported, programs, tables
from typedmcp import Client, Server, connect
from typedmcp.dialect import structs

ENVIRONMENTS = {"official": "py2", "fastmcp": "fastmcp-4"}
OLDER = {"fastmcp/sampling": "fastmcp-3"}
"""Environments of programs that use what the newest version no longer has."""
SERVE = Path(__file__).parent / "serve.py"

Step = tuple[str, dict[str, Any]]
"""The name of a tool or a prompt with its arguments, or the URI of a resource."""

SCENARIOS: dict[str, list[Step]] = {
    "official/complex_inputs": [
        ("kinds", {"orchard": {"trees": [{"kind": "apple"}, {"kind": "pear"}]}, "more": ["plum"]}),
    ],
    "official/desktop": [("dir://here", {}), ("sum", {"a": 2, "b": 3})],
    "official/direct_result": [("shout", {"text": "hey"})],
    "official/echo": [
        ("repeat", {"text": "a"}), ("echo://always", {}), ("echo://said/hello", {}), ("prompt echo", {"text": "b"}),
    ],
    "official/icons": [("draw", {"shape": "star"}), ("demo://about", {}), ("prompt painting", {"motif": "rain"})],
    "official/logging_and_progress": [("boil", {"litres": 2})],
    "official/memory": [("remember", {"contents": ["a", "b"]}), ("profile", {})],
    "official/parameter_descriptions": [
        ("label", {"name": "jam"}), ("label", {"name": "jam", "prefix": "Plum", "copies": 2}),
    ],
    "official/quickstart": [("multiply", {"a": 6, "b": 7}), ("farewell://Ada", {})],
    "official/screenshot": [("take_picture", {})],
    "official/simple_echo": [("say", {"text": "a"})],
    "official/text_me": [("textme", {"content": "hi"})],
    "official/unicode": [("hello", {}), ("hello", {"name": "Ähre"}), ("emojis", {}), ("scripts", {})],
    "official/weather_structured": [
        ("report", {"place": "Oban"}),
        ("summary", {"place": "Oban"}),
        ("metrics", {"places": ["Oban", "Bergen"]}),
        ("warnings", {"sea": "North Sea"}),
        ("warnings", {"sea": "Baltic"}),
        ("temperature", {"place": "Oban", "unit": "fahrenheit"}),
        ("statistics", {"place": "Oban", "days": 3}),
    ],
    "fastmcp/context": [("bake", {"loaves": 5}), ("kitchen://recipe", {})],
    "fastmcp/elicitation": [("check_in", {}), ("wake", {}), ("choose", {})],
    "fastmcp/icons": [("paint", {"colour": "red"}), ("signs://7", {}), ("prompt motto", {"place": "Oban"})],
    "fastmcp/lifespan": [("keys", {})],
    "fastmcp/mounting": [("harbour_ships", {}), ("state", {}), ("data://harbour/tide", {})],
    "fastmcp/pagination": [("third", {"query": "a"})],
    "fastmcp/progress": [("press", {"pages": ["a", "b"]})],
    "fastmcp/prompts": [
        ("prompt explain", {"topic": "rain"}),
        ("prompt rehearse", {"part": "Romeo"}),
        ("prompt check_sums", {"numbers": "[4, 8]"}),
    ],
    "fastmcp/quickstart": [("welcome", {"name": "Ada"})],
    "fastmcp/resources": [
        ("library://hours", {}),
        ("library://status", {}),
        ("library://poems/books", {}),
        ("files://a/b/c.txt", {}),
        ("find://rain?limit=5", {}),
        ("find://rain", {}),
    ],
    "fastmcp/sampling": [("haiku", {"topic": "rain"})],
    "fastmcp/tool_results": [("count", {"text": "two words"})],
    "fastmcp/tools": [
        ("find_plants", {"query": "mint"}),
        ("water", {"bed": "north"}),
        ("water", {"bed": "north", "litres": 3.5, "way": "hose"}),
        ("harvest", {"bed": "south"}),
        ("harvest", {"bed": "empty"}),
        ("measure", {"beds": [{"name": "a", "metres": 2}, {"name": "b", "metres": 3.5}]}),
    ],
}  # fmt: skip
"""What clients ask of each program."""


def load(file: Path) -> dict[str, Any]:
    """Run a program for this library, and return its names."""
    module = types.ModuleType(f"ported_{file.parent.name}_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # where dataclasses and Pydantic look for names
    exec(compile(ported(file), str(file), "exec"), vars(module))  # noqa: S102
    return vars(module)


def answer_form(question: structs.ElicitRequestFormParams) -> Mapping[str, Any]:
    """Fill in each field of a form."""
    values = {"string": "Ada", "integer": 3, "number": 3}
    fields = question.requested_schema["properties"]
    return {name: field["enum"][0] if "enum" in field else values[field["type"]] for name, field in fields.items()}


class Outcome:
    """What a client saw: results, log messages, progress, and the lists of the server."""

    def __init__(self) -> None:
        self.results: list[list[Any] | tuple[bool, Any, list[Any]]] = []
        self.logs: list[Any] = []
        self.progress: list[tuple[float, float | None]] = []
        self.lists: dict[str, list[Any]] = {}


async def observe(client: Client, outcome: Outcome, steps: list[Step]) -> None:
    offered = client.server.capabilities
    if offered.tools is not None:
        outcome.lists["tools"] = [_summary_of(tool) async for tool in client.tools()]
    if offered.resources is not None:
        outcome.lists["resources"] = [(each.uri, len(each.icons or ())) async for each in client.resources()]
        outcome.lists["templates"] = [each.uri_template async for each in client.resource_templates()]
    if offered.prompts is not None:
        outcome.lists["prompts"] = [
            (each.name, sorted(argument.name for argument in each.arguments or ())) async for each in client.prompts()
        ]
    outcome.lists = {name: found for name, found in outcome.lists.items() if found}
    for name, arguments in steps:
        outcome.results.append(await perform(client, outcome, name, arguments))


def _summary_of(tool: structs.Tool) -> tuple[str, str, list[str], int]:
    """Return the name, the description, the required arguments and the number of icons of a tool."""
    required: list[str] = tool.input_schema.get("required", [])
    return tool.name, cleandoc(tool.description or ""), sorted(required), len(tool.icons or ())


async def perform(client: Client, outcome: Outcome, name: str, arguments: dict[str, Any]) -> Any:
    if "://" in name:
        contents = (await client.read_resource(name)).contents
        return [_parsed(structs.to_builtins(each).get("text")) for each in contents]
    if name.startswith("prompt "):
        made = await client.get_prompt(name.removeprefix("prompt "), arguments)
        return [(each.role, structs.to_builtins(each.content)["text"]) for each in made.messages]
    result = await client.call_tool(
        name, arguments, on_progress=lambda step: outcome.progress.append((step.progress, step.total))
    )
    blocks = [structs.to_builtins(block) for block in result.content]
    texts = [_parsed(block.get("text") or block.get("data")) for block in blocks]
    return result.is_error, result.structured_content, texts


def _parsed(text: str | None) -> Any:
    """Return JSON parsed: white space differs between libraries."""
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def _text_of_log(data: Any) -> Any:
    """Return the text of a log message, which `fastmcp` sends in an object."""
    return data["msg"] if is_object(data) and "msg" in data else data


def run_scenario(target: Any, steps: list[Step]) -> Outcome:
    outcome = Outcome()

    async def main() -> None:
        async with connect(
            target, elicit=answer_form, sample=lambda params: "rain falls", revisions=["2025-11-25"],
            on_log=lambda message: outcome.logs.append(_text_of_log(message.data)), log_level="debug",
        ) as client:  # fmt: skip
            await observe(client, outcome, steps)

    asyncio.run(asyncio.wait_for(main(), 60))
    return outcome


Result = list[Any] | tuple[bool, Any, list[Any]]
"""Contents of a resource or messages of a prompt; or of a tool: whether it failed, structured content, and blocks."""


def same_result(ours: Result, theirs: Result) -> bool:
    """Return whether two results say the same.

    Text is the same, or ends with ours where a library writes something before it. `MCPServer` sends structured content
    for texts, and one block for each item of a list.
    """
    if not isinstance(ours, tuple) or not isinstance(theirs, tuple):
        return ours == theirs
    if ours[0]:
        return theirs[0] and str(theirs[2][0]).endswith(str(ours[2][0]))
    return bool(ours[1] == theirs[1] if ours[1] is not None else ours[2] == theirs[2])


@each("file", programs(), ids=name_of)
def test_a_program_runs_here_after_a_change_of_imports(file: Path) -> None:
    server = load(file)["mcp"]
    assert isinstance(server, Server)
    outcome = run_scenario(server, SCENARIOS[name_of(file)])
    failed = [result[2] for result in outcome.results if isinstance(result, tuple) and result[0]]
    assert failed == ([["nothing grows there"]] if name_of(file) == "fastmcp/tools" else [])
    assert outcome.lists


@pytest.mark.long
@pytest.mark.parametrize("file", programs(), ids=name_of)
def test_a_program_does_here_what_it_does_with_its_library(file: Path) -> None:
    environment = OLDER.get(name_of(file)) or ENVIRONMENTS[file.parent.name]
    if not python(environment).exists():
        pytest.skip(f"run python -m tests.interop.install {environment}")
    steps = SCENARIOS[name_of(file)]
    ours = run_scenario(load(file)["mcp"], steps)
    theirs = run_scenario([str(python(environment)), str(SERVE), str(file)], steps)
    assert ours.lists == theirs.lists
    assert ours.logs == theirs.logs
    assert ours.progress == theirs.progress
    pairs = list(zip(ours.results, theirs.results, strict=True))
    assert [pair for pair in pairs if not same_result(*pair)] == []


def test_each_program_has_a_scenario_and_each_change_and_name_a_use() -> None:
    files = {name_of(file): file for file in programs()}
    assert SCENARIOS.keys() == files.keys()
    assert CHANGES.keys() <= files.keys()
    used = "\n".join(map(ported, files.values()))
    assert [name for name, (_, own) in NAMES.items() if own not in used] == []


def test_the_program_that_tries_itself_prints_its_results() -> None:
    (file,) = (each for each in programs() if name_of(each) == "official/weather_structured")
    shown = asyncio.run(load(file)["try_it"]())
    assert '"Bergen"' in shown
    assert '"days":3' in shown


def test_the_page_has_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(MARKS[0])[2].partition(MARKS[1])[0].strip() == tables()
