"""The types free of revisions do what those of the official package do, on the same values."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

import mcpspec.compat as compat
from mcpspec.compat.names import ALIASES, MISSING
from mcpspec.support.objects import is_array, is_object
from tests import official
from tests.cases import each
from tests.generated.compat import probe
from tests.generated.vectors import REVISIONS, valid_values
from tests.interop.install import INTEROP, python
from tests.paths import SCHEMA

mcp_types = pytest.importorskip("mcp_types", reason="the official package is not in this environment")

LISTED = json.loads((Path(__file__).parent / "official_names.json").read_text(encoding="utf-8"))
SUBMODULES = {name: import_module(f"mcp_types.{name}") for name in ("jsonrpc", "methods", "version")}
NAMES = {
    "mcp.types 1.30": LISTED["mcp_1"],
    "mcp_types 2.3": mcp_types.__all__,
    **{f"mcp_types.{name} 2.3": module.__all__ for name, module in SUBMODULES.items()},
    "projects": [*LISTED["imported"]],
}
CONSTANTS = {
    name: getattr(module, name)
    for module in (mcp_types, SUBMODULES["version"])
    for name in module.__all__
    if name.isupper()
}
RENAMED = json.loads((SCHEMA / "compat.json").read_text(encoding="utf-8"))["renamed"]


@each("source", NAMES)
def test_every_name_is_there_or_is_missing_for_a_stated_reason(source: str) -> None:
    absent = set(NAMES[source]) - set(compat.__all__)
    assert absent <= MISSING.keys()
    assert [name for name in compat.__all__ if not hasattr(compat, name)] == []


def test_the_tables_of_names_are_true() -> None:
    known = {name for names in NAMES.values() for name in names}
    assert MISSING.keys() <= known
    assert MISSING.keys().isdisjoint(compat.__all__)
    assert ALIASES.keys() <= set(compat.__all__)


KNOWN: tuple[str, ...] = CONSTANTS["KNOWN_PROTOCOL_VERSIONS"]
"""The revisions that the official package knows. Ours may have newer ones."""


def as_known(value: Any) -> Any:
    """Return a constant without the revisions that the official package does not know. The latest is another one."""
    if isinstance(value, tuple):
        return tuple(filter(KNOWN.__contains__, cast("tuple[str, ...]", value)))
    return max({*compat.KNOWN_PROTOCOL_VERSIONS} & {*KNOWN}) if value in newer_versions() else value


def newer_versions() -> set[str]:
    return {*compat.KNOWN_PROTOCOL_VERSIONS} - {*KNOWN}


@each("name", sorted(CONSTANTS))
def test_constants_have_the_official_values(name: str) -> None:
    assert as_known(getattr(compat, name)) == CONSTANTS[name]


@cache
def values() -> list[tuple[str, Any]]:
    """List values of all revisions, and upstream's examples, each with the name of its class."""
    found = [(vector.definition, json.loads(vector.text)) for version in REVISIONS for vector in valid_values(version)]
    found += [(path.parent.name, json.loads(path.read_text(encoding="utf-8"))) for path in official.examples()]
    known = set(compat.__all__) - {"Notification", "Request"}  # bases, which lack the type of their parameters
    named = [(RENAMED.get(name, name), value) for name, value in found if not is_array(value)]  # no batches
    return [
        ("JSONRPCError" if name == "JSONRPCResponse" and "error" in value else name, value)
        for name, value in named
        if name in known
    ]


def lacking(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Yield the places where the official JSON has something that ours has not, other than null."""
    if is_object(theirs) and is_object(ours):
        for key, value in theirs.items():
            if key in ours:
                yield from lacking(value, ours[key], f"{path}.{key}")
            elif value is not None:
                yield f"{path}.{key}"
    elif is_array(theirs) and is_array(ours) and len(theirs) == len(ours):
        for i, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            yield from lacking(left, right, f"{path}[{i}]")
    elif not is_same(theirs, ours):
        yield f"{path}: {theirs!r}, {ours!r}"


def is_same(theirs: Any, ours: Any) -> bool:
    """Return whether scalars are equal. 1.x of the official package writes URLs and times in another form."""
    if theirs == ours or not (isinstance(theirs, str) and isinstance(ours, str)):
        return bool(theirs == ours)
    try:
        return datetime.fromisoformat(theirs) == datetime.fromisoformat(ours)
    except ValueError:
        return theirs == f"{ours}/"


META_NAMES = {"progress_token": "progressToken"}
"""Members of `_meta` that `mcp_types` renames. Ours have both names, and are listed under that on the wire."""


def on_the_wire(member: Any) -> Any:
    return {META_NAMES.get(key, key): value for key, value in member.items()} if is_object(member) else member


def compare(theirs: list[dict[str, Any] | None]) -> int:
    """Compare what the official classes made of the values with what ours make of them. Return their number."""
    compared = 0
    for (name, value), found in zip(values(), theirs, strict=True):
        if found is None or "rejected" in found:
            continue
        ours = probe.probe(compat, name, value)
        assert ours is not None, name
        assert "rejected" not in ours, (name, value, ours)
        made = getattr(compat, name).model_validate(value)
        differences = [*lacking(found["dumped"], ours["dumped"]), *lacking(found["constructed"], ours["constructed"])]
        for field, member in {**found["attributes"], **found["defaults"]}.items():
            read = probe.plain(getattr(made, field, None))
            differences += [f"attribute {field}{path}" for path in lacking(on_the_wire(member), read)]
        assert not differences, (name, value, differences, found, ours)
        compared += 1
    return compared


def test_values_are_read_written_and_constructed_as_mcp_types_does() -> None:
    compared = compare([probe.probe(mcp_types, name, value) for name, value in values()])
    assert compared > 0.6 * len(values())


@pytest.mark.long
def test_values_are_read_written_and_constructed_as_mcp_types_1_does() -> None:
    if not python("py1").exists():
        pytest.skip(f"{INTEROP.name} lacks mcp 1: `make interop` installs it")
    done = subprocess.run(
        [python("py1"), probe.__file__, "mcp.types"],
        input=json.dumps(values()), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert compare(json.loads(done.stdout)) > 0.5 * len(values())


def test_every_definition_of_every_revision_has_a_class() -> None:
    dropped = json.loads((SCHEMA / "compat.json").read_text(encoding="utf-8"))["dropped"]
    for version in REVISIONS:
        models = import_module(f"mcpspec.v{version.replace('-', '_')}.models")
        names = {name for name in models.__all__ if name[0].isupper() and name not in ("DecodeError", "NULL")}
        assert not [name for name in names - dropped.keys() if not hasattr(compat, RENAMED.get(name, name))]


def test_messages_of_every_revision_decode_into_one_class() -> None:
    for name, value in values():
        kind = getattr(compat, name)
        made = compat.from_builtins(value, kind)
        written = compat.to_builtins(made)
        again = compat.from_builtins(written, kind)
        assert compat.to_builtins(again) == written
        assert compat.decode(compat.encode(made), kind) == again
        assert not [*lacking(value, written)]


def test_an_object_of_the_official_package_is_an_instance_of_the_class_of_the_same_name() -> None:
    text = mcp_types.TextContent(type="text", text="a")
    image = mcp_types.ImageContent(type="image", data="aa", mime_type="image/png")
    derived = type("Derived", (mcp_types.TextContent,), {"__module__": "elsewhere"})(type="text", text="a")
    assert isinstance(text, compat.TextContent)
    assert isinstance(derived, compat.TextContent)
    assert isinstance(text, compat.ContentBlock)
    assert not isinstance(image, compat.TextContent)
    assert isinstance(mcp_types.PaginatedRequestParams(cursor="a"), compat.PaginatedRequestParams)
    assert isinstance(mcp_types.ListToolsRequest(), compat.Request)
    assert not isinstance(text, import_module("mcpspec.v2026_07_28.models").TextContent)
    result = compat.CallToolResult(content=[text, image])
    assert json.loads(compat.encode(result))["content"] == [
        {"type": "text", "text": "a"}, {"type": "image", "data": "aa", "mimeType": "image/png"},
    ]  # fmt: skip


def test_a_class_of_the_same_name_that_is_neither_ours_nor_official_is_no_instance() -> None:
    class TextContent(BaseModel):
        text: str

    assert not isinstance(TextContent(text="a"), compat.TextContent)
    assert not isinstance({"type": "text", "text": "a"}, compat.TextContent)
