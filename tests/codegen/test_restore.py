"""Schemas that a generator has written: what it lost is restored before they are compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen.bump import _entry  # pyright: ignore[reportPrivateUsage]
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.normalise import canonicalise
from mcpspec_codegen.restore import drop_format_patterns, hoist_definitions, restore
from mcpspec_codegen.syntax import check
from tests.codegen.helpers import SCHEMA, Schema, read_json, write_json

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}


def _closed(**members: Any) -> Schema:
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


def _open(**members: Any) -> Schema:
    return {"type": "object", "properties": members, "required": [*members]}


def _restore(own: dict[str, Schema], base: dict[str, Schema] | None = None, **copies: str) -> dict[str, Schema]:
    schema = hoist_definitions({"$defs": own}, "$defs", "own.json")
    check(schema, "own.json")
    given = {"$defs": {name: drop_format_patterns(node) for name, node in schema["$defs"].items()}}
    return restore(canonicalise(given), base or {}, copies, "own.json")


def test_objects_take_unknown_members() -> None:
    given = _closed(name=_TEXT, place=_closed(x=_NUMBER))
    assert _restore({"A": given})["A"] == _open(name=_TEXT, place=_open(x=_NUMBER))
    assert _restore({"A": {"type": "object", "properties": {}, "additionalProperties": False}})["A"] == {
        "type": "object", "additionalProperties": {},
    }  # fmt: skip


def test_a_member_that_may_be_undefined_is_optional() -> None:
    given = _closed(a={"anyOf": [_NUMBER, {}]}, b={"anyOf": [_TEXT, _closed(x=_TEXT), {}]}, c={})
    made = _restore({"A": given})["A"]
    assert made["required"] == ["c"]
    assert made["properties"]["a"] == _NUMBER
    assert made["properties"]["b"] == {"anyOf": [_TEXT, _open(x=_TEXT)]}


def test_a_map_with_some_names_requires_none_of_them() -> None:
    names = {"anyOf": [{"type": "string", "const": name} for name in ("--a", "--b")]}
    given = {
        "type": "object", "propertyNames": names, "additionalProperties": {"anyOf": [_TEXT, {}]},
        "required": ["--a", "--b"],
    }  # fmt: skip
    assert _restore({"A": given})["A"] == {
        "type": "object", "propertyNames": {"enum": ["--a", "--b"]}, "additionalProperties": _TEXT,
    }  # fmt: skip
    given["required"] = ["--c"]
    with pytest.raises(SchemaError, match="unknown property: '--c'"):
        check({"$defs": {"A": given}}, "own.json")


def test_choices_beside_each_other_become_one_object() -> None:
    def choice(name: str) -> Schema:
        most = {"type": "object", "properties": {f"max{name}": {"anyOf": [_NUMBER, {}]}}, "additionalProperties": False}
        return {"anyOf": [_closed(**{name: _NUMBER, "unit": _TEXT}), _closed(unit=_TEXT), {**most, "required": []}]}

    size = {"allOf": [choice("Height"), choice("Width")]}
    assert _restore({"A": _closed(size=size)})["A"]["properties"]["size"] == {
        "type": "object", "required": [],
        "properties": {"Height": _NUMBER, "unit": _TEXT, "maxHeight": _NUMBER, "Width": _NUMBER, "maxWidth": _NUMBER},
    }  # fmt: skip
    sure = {"allOf": [{"anyOf": [_closed(a=_TEXT), _closed(a=_TEXT, b=_TEXT)]}]}
    assert _restore({"A": _closed(size=sure)})["A"]["properties"]["size"]["required"] == ["a"]


def test_copies_of_definitions_become_references() -> None:
    base = {
        "Role": {"enum": ["user", "assistant"]},
        "Icon": _open(src=_TEXT, size={"type": "integer"}),
        "Block": {"anyOf": [{"$ref": "#/$defs/Icon"}, {"$ref": "#/$defs/Role"}]},
    }
    icon = _closed(src=_TEXT, size={**_NUMBER, "minimum": -(2**53 - 1), "maximum": 2**53 - 1})
    roles = {"type": "string", "enum": ["assistant", "user"]}
    own = {
        "Own": _closed(own=_TEXT),
        "A": _closed(one=_closed(own=_TEXT), icons={"type": "array", "items": icon}, block={"anyOf": [roles, icon]}),
    }
    base["Role"] = {"type": "string", **base["Role"]}
    made = _restore(own, base)["A"]["properties"]
    assert made == {
        "one": {"$ref": "#/$defs/Own"},
        "icons": {"type": "array", "items": {"$ref": "#/$defs/Icon"}},
        "block": {"$ref": "#/$defs/Block"},
    }


def test_a_type_that_two_definitions_fit_stays_inline_and_parameters_are_no_result() -> None:
    base = {"First": _open(a=_TEXT), "Second": _open(a=_TEXT)}
    made = _restore({"GetResult": _closed(b=_TEXT), "A": _closed(params=_closed(b=_TEXT), x=_closed(a=_TEXT))}, base)
    assert made["A"]["properties"] == {"params": _open(b=_TEXT), "x": _open(a=_TEXT)}


def test_a_copy_that_differs_in_details_is_stated() -> None:
    own, base = {"A": _closed(tool=_closed(name=_TEXT))}, {"Tool": _open(name=_TEXT, title=_TEXT)}
    assert _restore(own, base, **{"A/tool": "Tool"})["A"]["properties"]["tool"] == {"$ref": "#/$defs/Tool"}
    for copies in ({"A/other": "Tool"}, {"A/tool": "Gone"}):
        with pytest.raises(SchemaError, match="no inline type is there, or"):
            _restore(own, base, **copies)


def test_definitions_within_others_are_found() -> None:
    anything: Schema = {"anyOf": [
        _TEXT, _NUMBER, {"type": "boolean"}, {"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/__any"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/__any"}},
    ]}  # fmt: skip
    own = {name: {**_closed(x={"$ref": "#/$defs/__any"}), "$defs": {"__any": anything}} for name in ("A", "B")}
    before = json.dumps(own)
    assert _restore(own) == {"A": _open(x={}), "B": _open(x={})}
    assert json.dumps(own) == before, "the input stays as it was"
    with pytest.raises(SchemaError, match="two definitions within others are named `__any`, and differ"):
        _restore({**own, "C": {**_closed(), "$defs": {"__any": _TEXT}}})
    with pytest.raises(SchemaError, match="a definition within another has the same name"):
        _restore({**own, "__any": _TEXT})
    with pytest.raises(SchemaError, match="leads to no definition"):
        check({"$defs": {"A": _closed(x={"$ref": "#/$defs/__any"}), "B": own["B"]}}, "own.json")


def test_a_pattern_is_understood_beside_the_format_that_it_spells_out() -> None:
    date: Schema = {"type": "string", "format": "date", "pattern": r"^\d{4}-\d\d-\d\d$"}
    assert _restore({"A": _closed(day=date)})["A"] == _open(day=_TEXT)
    del date["format"]
    assert _restore({"A": _closed(day=date)})["A"] == _open(day=date)


def test_a_member_that_has_to_be_absent_is_a_check() -> None:
    never: Schema = {"not": {}, "description": "moved elsewhere"}
    given = {"type": "object", "properties": {"a": _TEXT, "old": never}, "required": ["a"]}
    assert _restore({"A": given})["A"] == {**_open(a=_TEXT), "checks": [{"properties": {"old": False}}]}
    with pytest.raises(SchemaError, match="unknown property: 'old'"):
        _restore({"A": {**given, "required": ["a", "old"]}})


def test_the_types_of_apps_refer_to_the_protocol_instead_of_repeating_it() -> None:
    from mcpspec.ext.apps.exact import structs as apps
    from mcpspec.v2026_07_28.exact import structs

    assert apps.ContentBlock is structs.ContentBlock
    assert apps.Tool is structs.Tool
    own = [name for name in dir(apps) if name.startswith("McpUi")]
    assert set(read_json(SCHEMA / "ext" / "apps.json")["$defs"]) <= {*own}
    assert not [name for name in own if "Content" in name and name.endswith("Item")]


def test_the_origin_of_a_schema_in_a_package_is_its_version(tmp_path: Path) -> None:
    package = {
        "name": "@acme/apps",
        "version": "2.0.4",
        "repository": {"url": "git+https://host.example/acme/apps.git"},
    }
    write_json(tmp_path / "package.json", package)
    (tmp_path / "dist").mkdir()
    origin = write_json(tmp_path / "dist" / "schema.json", {})
    entry = _entry("ext/apps", str(origin), {}, None)
    assert entry == {
        "repository": "acme/apps", "commit": "@acme/apps@2.0.4", "path": "dist/schema.json",
        "reference": "https://modelcontextprotocol.io/extensions/apps/overview",
    }  # fmt: skip
