"""The work that a schema may cause: hostile schemas end at a limit, which the command line can raise."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcpspec_codegen.budget import MAX_STEPS, SCHEMA_STEPS
from mcpspec_codegen.cycles import find_recursive
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.packages import OwnInterface, load_own
from tests.cases import each
from tests.codegen.helpers import NEWEST, SCHEMA, codegen, write_json
from tests.hostile_schemas import HOSTILE, find_excess

LIMIT = 20_000


def write(folder: Path, definitions: dict[str, Any]) -> Path:
    return write_json(folder / "own.json", {"$defs": definitions})


@each("name", HOSTILE)
def test_the_work_and_the_types_are_in_proportion_to_the_limit(name: str, tmp_path: Path) -> None:
    file = write(tmp_path, HOSTILE[name])
    found: list[OwnInterface] = []

    def attempt() -> None:
        with suppress(SchemaError):
            found.append(load_own(SCHEMA, [file], None, LIMIT))

    assert not find_excess(attempt, 10 * LIMIT), "too much work"
    for interface in found:
        assert json.dumps(interface.interface.document).count("{") < 5 * LIMIT / SCHEMA_STEPS


@each("name", ["allOf, twice", "members, twice"])
def test_definitions_that_are_repeated_are_merged_once(name: str, tmp_path: Path) -> None:
    interface = load_own(SCHEMA, [write(tmp_path, HOSTILE[name])], None, 200 * SCHEMA_STEPS).interface
    assert len(interface.document["$defs"]) == 31


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "compile": lambda file: ["compile", file, "--package", "acme_mcp", "--out", "."],
    "check": lambda file: ["check", file, "--package", "acme_mcp", "--out", "."],
    "diff": lambda file: ["diff", file, file],
    "bundle": lambda file: ["bundle", file, "--out", "."],
}


@each("name", COMMANDS)
def test_a_schema_that_takes_too_much_work_is_rejected_with_its_place_and_a_remedy(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, {"First": {"type": "string"}, "Second~/": {"type": "array", "items": {"type": "null"}}})
    assert codegen(SCHEMA, tmp_path, *COMMANDS[name](str(file)), "--max-steps", "79") == 2
    cause = "takes more than 79 steps to compile: it is too large, or its references repeat too much"
    remedy = "make it smaller, or raise --max-steps"
    assert capsys.readouterr().err == f"error: {file}#/$defs/Second~0~1/items: {cause}; {remedy}\n"


def test_the_limit_is_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write(tmp_path, {f"D{number}": {"type": "string"} for number in range(50)}))
    assert [codegen(SCHEMA, tmp_path, "diff", file, file, "--max-steps", most) for most in ("1000", "5000")] == [2, 0]
    with pytest.raises(SystemExit, match="2"):
        codegen(SCHEMA, tmp_path, "diff", file, file, "--max-steps", "0")
    assert "--max-steps: expected at least 1, got 0" in capsys.readouterr().err


def test_a_schema_of_ten_thousand_parts_is_too_large_by_default(tmp_path: Path) -> None:
    file = write(tmp_path, {f"D{number}": {"type": "string"} for number in range(10_000)})
    with pytest.raises(SchemaError, match=f"more than {MAX_STEPS} steps"):
        load_own(SCHEMA, [file], None)


def test_the_newest_revision_takes_a_tenth_of_the_work_that_is_allowed() -> None:
    load_own(SCHEMA, [SCHEMA / f"{NEWEST}.json"], None, MAX_STEPS // 10)


def test_the_names_that_refer_to_themselves_are_found() -> None:
    for seed in range(300):
        random = Random(seed)
        names = "abcdefgh"[: random.randint(1, 8)]
        graph = {name: {other for other in names if random.random() < 0.2} for name in names}
        closure = {(name, other) for name in names for other in graph[name]}
        for middle, name, other in itertools.product(names, repeat=3):
            if {(name, middle), (middle, other)} <= closure:
                closure.add((name, other))
        assert find_recursive(graph) == {name for name in names if (name, name) in closure}, graph
