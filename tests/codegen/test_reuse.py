"""Results that are reused in a process: only where all that they depend on is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspec_codegen.pipeline import compile_all
from mcpspec_codegen.reuse import MAX_RESULTS, reuse
from tests.cases import each
from tests.codegen.helpers import NEWEST, Schema, pin, read_json, small_folder, small_schema, write_json


def test_a_step_runs_once_for_equal_inputs_and_callers_own_the_results() -> None:
    runs: list[int] = []

    def step() -> list[str]:
        runs.append(len(runs))
        return ["made"]

    first = reuse(("test", {"a": [1]}), step)
    first.append("changed")
    assert reuse(("test", {"a": [1]}), step) == ["made"]
    assert reuse(("test", {"a": [2]}), step) == ["made"]
    assert len(runs) == 2


def test_a_step_that_fails_runs_again_and_old_results_are_forgotten() -> None:
    def fail() -> str:
        raise LookupError

    with pytest.raises(LookupError):
        reuse("test fails", fail)
    assert reuse("test fails", lambda: "first") == "first"
    _forget_all()
    assert reuse("test fails", lambda: "second") == "second"


def _forget_all() -> None:
    for number in range(MAX_RESULTS):
        reuse(("another", number), lambda: "")


def _refer(folder: Path) -> None:
    pinned = read_json(folder / "PINNED.json")
    pinned[NEWEST]["reference"] = "https://example.com/{anchor}"
    write_json(folder / "PINNED.json", pinned)


def _assume_defaults(folder: Path) -> None:
    supplement = read_json(folder / "supplement.json")
    write_json(folder / "supplement.json", {**supplement, "protocol_defaults": {"Tool": {"title": "tool"}}})


def _order(folder: Path) -> None:
    orders = read_json(folder / "order.json")
    orders[NEWEST] = {"Tool": "title name"}
    write_json(folder / "order.json", orders)


def _add_member(defs: Schema) -> None:
    defs["Tool"]["properties"]["sound"] = {"type": "string"}


def _change_schema(folder: Path) -> None:
    pin(folder, NEWEST, small_schema(_add_member))


@each("change", [_refer, _assume_defaults, _order, _change_schema])
def test_what_is_compiled_again_is_as_if_compiled_anew(change: Callable[[Path], None], tmp_path: Path) -> None:
    folder = small_folder(tmp_path / "schema", small_schema())
    before = compile_all(folder, is_formatted=False)
    assert compile_all(folder, is_formatted=False) == before
    change(folder)
    after = compile_all(folder, is_formatted=False)
    _forget_all()
    assert after == compile_all(folder, is_formatted=False)
    assert after != before
