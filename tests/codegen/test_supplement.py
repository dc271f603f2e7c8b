"""The facts in `supplement.json` agree with the schemas, and hold for revisions that it does not name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.helpers import NEWEST, codegen, newest_schema, pin, read_json, schema_folder, write_json

_LATER = "2031-05-01"


def _refusal(folder: Path, member: str, value: Any, capsys: pytest.CaptureFixture[str]) -> str:
    path = schema_folder(folder / "schema") / "supplement.json"
    write_json(path, {**read_json(path), member: value})
    assert codegen(folder / "schema", folder / "output", "generate") == 2
    return capsys.readouterr().err


def test_a_name_parameter_must_be_a_required_parameter_of_its_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = _refusal(tmp_path, "name_params", {"tools/call": "title"}, capsys)
    assert "supplement.json#/name_params/tools~1call: tools/call does not require the parameter 'title'" in refusal


def test_the_log_levels_must_be_those_of_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = _refusal(tmp_path, "log_levels", ["debug", "info"], capsys)
    assert "supplement.json#/log_levels: expected the levels alert, critical, debug" in refusal


def test_a_revision_without_an_entry_has_the_features_and_codes_of_the_newest(tmp_path: Path) -> None:
    folder = schema_folder(tmp_path / "schema")
    pin(folder, _LATER, json.dumps(newest_schema()).encode())
    errata = read_json(folder / "errata.json")
    write_json(folder / "errata.json", [*errata, *({**entry, "version": _LATER} for entry in errata)])
    assert codegen(folder, tmp_path / "output", "generate") == 0
    scope: dict[str, Any] = {}
    exec((tmp_path / "output/mcpspec/features.py").read_text(encoding="utf-8"), scope)  # noqa: S102  # just generated
    newest, later = scope["FEATURES"][NEWEST], scope["FEATURES"][_LATER]
    assert later._replace(version=NEWEST) == newest
