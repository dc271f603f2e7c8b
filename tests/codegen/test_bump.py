"""Import of a schema from upstream: files, report, and rejected input."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen.bump import _entry, _finish_import  # pyright: ignore[reportPrivateUsage]
from mcpspec_codegen.comparison.changes import find_changes
from mcpspec_codegen.comparison.reports import write_changes
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.pipeline import find_gaps, load_interface
from mcpspec_codegen.source import STAGED, format_interface, load
from tests.cases import each
from tests.codegen.helpers import (
    NEWEST,
    PREVIOUS,
    ROOT,
    SCHEMA,
    Change,
    Schema,
    codegen,
    newest_schema,
    pin,
    python,
    read_json,
    schema_folder,
    small_folder,
    small_schema,
    snapshot,
    write_json,
)

_LATER = "2031-05-01"
_COMMIT = "c" * 40


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _mend_json_values(defs: Schema) -> None:
    defs["JSONValue"]["anyOf"][2]["type"] = ["string", "number", "boolean", "null"]


def _as_of_later(defs: Schema) -> None:
    """Add, remove and change definitions of every kind."""
    _mend_json_values(defs)
    defs["Sound"] = {"properties": {"hz": {"type": "integer"}}, "required": ["hz"], "type": "object"}
    del defs["Icons"]
    defs["Cursor"]["type"] = "integer"
    defs["Tool"]["properties"]["sound"] = {"$ref": "#/$defs/Sound"}
    defs["Tool"]["properties"]["name"] = {"type": ["string", "null"]}
    del defs["Root"]["properties"]["name"]
    listing: Schema = defs["ListToolsRequest"]
    method = {"const": "ping", "type": "string"}
    defs["PingRequest"] = {**listing, "properties": {**listing["properties"], "method": method}}
    union = defs["ClientRequest"]["anyOf"]
    union.append({"$ref": "#/$defs/PingRequest"})
    union.remove({"$ref": "#/$defs/DiscoverRequest"})
    defs["SubscriptionsListenRequest"]["properties"]["params"] = {"$ref": "#/$defs/RequestParams"}
    defs["TextContent"]["properties"]["version"] = {"const": 2, "type": "integer"}
    defs["PromptReference"]["properties"]["type"]["const"] = "ref/prompts"
    defs["BooleanSchema"]["properties"]["type"] = {"type": "string"}


def _with_prose(schema: Schema) -> Schema:
    definitions = {name: {"description": f"About {name}.", **node} for name, node in schema["$defs"].items()}
    return {**schema, "$defs": definitions}


@dataclass(frozen=True, slots=True)
class Bumped:
    """A schema folder after `bump` of a new revision, and the printed report."""

    schema: Path
    output: Path
    origin: Path
    report: list[str]


@pytest.fixture(scope="module")
def bumped(tmp_path_factory: pytest.TempPathFactory) -> Bumped:
    folder = tmp_path_factory.mktemp("bump")
    schema, output = schema_folder(folder / "schema"), folder / "output"
    origin = write_json(folder / "upstream.json", _with_prose(newest_schema(_as_of_later)))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert codegen(schema, output, "bump", _LATER, str(origin), "--commit", _COMMIT) == 0
    return Bumped(schema, output, origin, printed.getvalue().splitlines())


def test_bump_writes_the_schema_without_prose(bumped: Bumped) -> None:
    written = (bumped.schema / f"{_LATER}.json").read_text(encoding="utf-8")
    assert "About Tool." in bumped.origin.read_text(encoding="utf-8")
    assert written == format_interface(newest_schema(_as_of_later))


def test_bump_pins_the_origin_of_the_schema_and_both_hashes(bumped: Bumped) -> None:
    pinned = read_json(bumped.schema / "PINNED.json")
    assert list(pinned) == [NEWEST, _LATER]
    assert pinned[NEWEST] == read_json(SCHEMA / "PINNED.json")[NEWEST]
    assert pinned[_LATER] == {
        "repository": "modelcontextprotocol/modelcontextprotocol",
        "commit": _COMMIT,
        "path": f"schema/{_LATER}/schema.json",
        "upstream_sha256": _sha256(bumped.origin),
        "sha256": _sha256(bumped.schema / f"{_LATER}.json"),
        "reference": f"https://modelcontextprotocol.io/specification/{_LATER}/schema#{{anchor}}",
    }


def test_bump_regenerates_the_package(bumped: Bumped) -> None:
    assert "class Sound(" in (bumped.output / "mcpspec" / "v2031_05_01" / "structs.py").read_text(encoding="utf-8")


def test_bump_does_not_change_other_files_of_the_schema_folder(bumped: Bumped) -> None:
    for name in ("docs.toml", "supplement.json", f"{NEWEST}.json"):
        assert (bumped.schema / name).read_bytes() == (SCHEMA / name).read_bytes()


@each(
    "section, line",
    [
        ("only words", "  + Sound: object"),
        ("only words", "  + PingRequest: object"),
        ("only words", "  - Icons: object"),
        ("only words", "  ~ Cursor: string => integer"),
        ("compatible", "  + Tool.sound: Sound, optional"),
        ("breaking", "  - Root.name: string, optional  [clients send]"),
        ("breaking", "  ~ Tool.name: + null  [clients get]"),
        ("compatible", "  + ping: client request, PaginatedRequestParams -> EmptyResult"),
        ("breaking", "  - server/discover: client request, RequestParams -> DiscoverResult  [clients send]"),
        (
            "breaking",
            "  ~ subscriptions/listen: params SubscriptionsListenRequestParams => RequestParams  [servers get]",
        ),
        ("compatible", "  + TextContent.version: 2, optional"),
        ("breaking", '  ~ BooleanSchema.type: "boolean" => string  [clients get]'),
        (
            "breaking",
            '  ~ PromptReference.type: "ref/prompt" => "ref/prompts"  [clients send, servers get]',
        ),
    ],
)
def test_bump_reports_additions_removals_and_changes(section: str, line: str, bumped: Bumped) -> None:
    assert bumped.report[0] == f"{_LATER} against {NEWEST}:"
    assert line in _sections("\n".join(bumped.report[1:]))[section]


def _sections(text: str) -> dict[str, list[str]]:
    """Group the lines of a report by their headings."""
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("  "):
            sections[heading].append(line)
        elif line:
            heading = line.partition(":")[0]
            sections.setdefault(heading, [])
    return sections


def test_what_a_person_still_has_to_write_is_listed_after_a_bump(bumped: Bumped) -> None:
    before = find_gaps(schema_folder(bumped.schema.parent / "before"))
    assert before == []
    gaps = find_gaps(bumped.schema)
    assert {gap.version for gap in gaps} == {_LATER}
    texts = [gap.text for gap in gaps]
    assert "docs.toml: no description of Sound" in texts
    assert "docs.toml: no description of Sound.hz" in texts
    carried = "errata.json: ElicitResult, `type` was carried over; if that is right, move it to `versions`"
    assert [text for text in texts if text.startswith("errata.json")] == [carried]
    for table in ("error_codes", "features"):
        inherited = f"supplement.json: no entry in {table}, so that of {NEWEST} is used; add one to confirm it"
        assert inherited in texts


def _mend_form_values(defs: Schema) -> None:
    defs["ElicitResult"]["properties"]["content"]["additionalProperties"]["anyOf"][1]["type"] = _FORM_VALUES


_FORM_VALUES = ["string", "number", "boolean"]


def _move_form_values(defs: Schema) -> None:
    content = defs["ElicitResult"]["properties"]["content"]
    defs["FormValue"] = content["additionalProperties"]
    content["additionalProperties"] = {"$ref": "#/$defs/FormValue"}


def _move_within(defs: Schema) -> None:
    content = defs["ElicitResult"]["properties"].pop("content")
    content["additionalProperties"]["anyOf"].reverse()
    defs["ElicitResult"]["properties"]["values"] = content


def _third_value(defs: Schema) -> None:
    defs["ElicitResult"]["properties"]["content"]["additionalProperties"]["anyOf"][1]["type"] = ["string", "boolean"]


def _rename_definition(defs: Schema) -> None:
    defs["ElicitationOutcome"] = defs.pop("ElicitResult")
    for name, node in defs.items():
        defs[name] = json.loads(json.dumps(node).replace("#/$defs/ElicitResult", "#/$defs/ElicitationOutcome"))


_CARRIED, _MENDED, _UNCLEAR = "carried over: ", "mended by upstream: ", "unclear, so not applied: "


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "form", "value"),
    [
        pytest.param([], _CARRIED, _CARRIED, id="the same defects"),
        pytest.param([_mend_form_values, _mend_json_values], _MENDED, _MENDED, id="both mended"),
        pytest.param([_mend_json_values], _CARRIED, _MENDED, id="one mended"),
        pytest.param([_move_within], _CARRIED, _CARRIED, id="moved inside the definition"),
        pytest.param([_move_form_values], _UNCLEAR, _CARRIED, id="moved to another definition"),
        pytest.param([_rename_definition], _UNCLEAR, _CARRIED, id="in a definition of another name"),
        pytest.param([_third_value], _UNCLEAR, _CARRIED, id="a third value"),
    ],
)
def test_bump_carries_errata_over_and_reports_each(
    changes: list[Change], form: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = schema_folder(tmp_path / "schema"), tmp_path / "output"
    origin = write_json(tmp_path / "upstream.json", newest_schema(*changes))
    assert codegen(schema, output, "bump", _LATER, str(origin)) == 0
    report = capsys.readouterr().out.splitlines()
    assert [line.partition("ElicitResult, `type`")[0] for line in report if "ElicitResult, `type`" in line] == [form]
    assert [line.partition("JSONValue, `type`")[0] for line in report if "JSONValue, `type`" in line] == [value]
    lists = {_CARRIED: "carried_over", _UNCLEAR: "unclear"}
    for entry, state in zip(read_json(schema / "errata.json"), (form, value), strict=True):
        assert entry["versions"] == [NEWEST]
        listed = {name: [_LATER] for name in ("carried_over", "unclear") if name == lists.get(state)}
        assert {name: entry[name] for name in ("carried_over", "unclear") if name in entry} == listed


@pytest.mark.long
def test_a_new_file_in_which_upstream_mended_a_defect_needs_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = schema_folder(tmp_path / "schema"), tmp_path / "output"
    origin = write_json(tmp_path / "upstream.json", newest_schema(_mend_form_values))
    assert codegen(schema, output, "bump", NEWEST, str(origin), "--repin") == 0
    gone = "mended by upstream: ElicitResult, `type`; no other version has it, so the entry is deleted"
    assert gone in capsys.readouterr().out.splitlines()
    assert [entry["definition"] for entry in read_json(schema / "errata.json")] == ["JSONValue"]
    assert codegen(schema, output, "check") == 0


def test_a_bump_that_fails_tells_about_the_errata_that_may_be_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The defect of JSONValue has changed, and the definition cannot be compiled."""

    def change(defs: Schema) -> None:
        defs["JSONValue"]["anyOf"][2] = {"$ref": "#/$defs/JSONValue"}

    schema, origin = schema_folder(tmp_path / "schema"), write_json(tmp_path / "upstream.json", newest_schema(change))
    before = snapshot(tmp_path)
    assert codegen(schema, tmp_path / "output", "bump", _LATER, str(origin)) == 2
    error = capsys.readouterr().err
    assert f"error: {origin}#/$defs/JSONValue: the definition is itself, or one of its own alternatives" in error
    assert "unclear, so not applied: JSONValue, `type`: neither the wrong value" in error
    assert f"nothing was written; if upstream's file is wrong, add the defect for {_LATER} to errata.json" in error
    assert snapshot(tmp_path) == before


@pytest.mark.long
def test_a_defect_that_a_person_lists_for_a_version_to_come_is_corrected(tmp_path: Path) -> None:
    """The remedy of a bump that fails: the entry may name the version before it is pinned."""

    def change(defs: Schema) -> None:
        defs["JSONValue"]["anyOf"][2]["type"] = ["string", "integer"]

    schema, origin = schema_folder(tmp_path / "schema"), write_json(tmp_path / "upstream.json", newest_schema(change))
    entries = read_json(schema / "errata.json")
    entry = next(entry for entry in entries if entry["definition"] == "JSONValue")
    third = {**entry, "wrong": ["string", "integer"], "versions": [_LATER]}
    write_json(schema / "errata.json", [*entries, third])
    assert codegen(schema, tmp_path / "output", "bump", _LATER, str(origin)) == 0


# The draft


def _bump_draft(folder: Path, *changes: Change) -> int:
    origin = write_json(folder / "upstream.json", small_schema(*changes))
    return codegen(folder / "schema", folder / "output", "bump", "draft", str(origin))


def test_bump_compiles_a_draft_that_differs_into_a_package_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", _plain(small_schema())), tmp_path / "output"
    assert _bump_draft(tmp_path, _add_price) == 0
    assert capsys.readouterr().out.startswith(f"draft against {NEWEST}:\ncompatible: 1\n{_PRICE_ADDED}\n")
    assert list(read_json(schema / "PINNED.json")) == [NEWEST, "draft"]
    assert codegen(schema, output, "check") == 0
    package = (output / "mcpspec" / "draft" / "__init__.py").read_text(encoding="utf-8")
    assert package.startswith('"""The unstable draft of MCP.')
    told = python(
        output,
        "import mcpspec\nfrom mcpspec import features\n"
        "print(mcpspec.VERSIONS, mcpspec.LATEST, list(features.FEATURES), features.DRAFT.version)\n"
        "print(mcpspec.revision('draft') is mcpspec.draft, mcpspec.draft.methods.PROTOCOL_VERSION)\n"
        'print(mcpspec.draft.exact.structs.decode(b\'{"name": "a", "inputSchema": {"type": "object"}, "price": 5}\','
        " mcpspec.draft.exact.structs.Tool).price)",
    )
    assert told.splitlines() == [f"('{NEWEST}',) {NEWEST} ['{NEWEST}'] draft", "True draft", "5"]
    capsys.readouterr()
    assert codegen(schema, output, "diff", NEWEST, "draft") == 0
    assert capsys.readouterr().out == f"compatible: 1\n{_PRICE_ADDED}\n"


def _plain(schema: Schema) -> bytes:
    return format_interface(schema).encode()


def test_a_draft_that_equals_the_newest_revision_adds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", _plain(small_schema())), tmp_path / "output"
    assert codegen(schema, output, "generate") == 0
    before = snapshot(schema, output)
    capsys.readouterr()
    assert _bump_draft(tmp_path) == 0
    assert capsys.readouterr().out == f"the draft equals {NEWEST}, so there is no package for it\n"
    assert snapshot(schema, output) == before
    assert "has no attribute" in python(
        output, "import mcpspec\ntry: mcpspec.draft\nexcept AttributeError as e: print(e)"
    )
    assert codegen(schema, output, "diff", NEWEST, "draft") == 2
    assert "a draft stays only while it differs from the newest revision" in capsys.readouterr().err


def test_a_draft_can_be_bumped_again_without_repin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, output = small_folder(tmp_path / "schema", _plain(small_schema())), tmp_path / "output"
    assert _bump_draft(tmp_path, _add_price) == 0
    capsys.readouterr()
    assert _bump_draft(tmp_path, _add_price, _mend_json_values) == 0
    report = capsys.readouterr().out
    assert f"draft against {NEWEST}:\n" in report
    assert "draft against its previous file:\nno changes\n" in report
    assert "mended by upstream: JSONValue, `type`" in report
    assert codegen(schema, output, "check") == 0


def test_a_draft_that_became_a_revision_is_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, output = small_folder(tmp_path / "schema", _plain(small_schema())), tmp_path / "output"
    assert _bump_draft(tmp_path, _add_price) == 0
    capsys.readouterr()
    origin = str(tmp_path / "upstream.json")
    assert codegen(schema, output, "bump", _LATER, origin) == 0
    assert f"the draft equals {_LATER}, so there is no package for it" in capsys.readouterr().out.splitlines()
    assert list(read_json(schema / "PINNED.json")) == [NEWEST, _LATER]
    assert not (schema / "draft.json").exists()
    assert not (output / "mcpspec" / "draft").exists()
    assert "draft" not in (schema / "errata.json").read_text(encoding="utf-8")
    assert codegen(schema, output, "check") == 0


def test_bump_rejects_another_file_for_a_pinned_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, origin = schema_folder(tmp_path / "schema"), write_json(tmp_path / "upstream.json", newest_schema())
    before = snapshot(tmp_path)
    assert codegen(schema, tmp_path / "output", "bump", NEWEST, str(origin)) == 2
    error = capsys.readouterr().err
    assert f"error: {origin}#: sha256 {_sha256(origin)} differs from the one pinned for {NEWEST}" in error
    assert snapshot(tmp_path) == before


def _add_price(defs: Schema) -> None:
    defs["Tool"]["properties"]["price"] = {"type": "integer"}


_PRICE_ADDED = "  + Tool.price: integer, optional"


def test_bump_accepts_another_file_for_a_pinned_version_with_repin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    pin(schema, _LATER, small_schema(_mend_json_values))
    origin = write_json(tmp_path / "upstream.json", small_schema(_mend_json_values, _add_price))
    assert codegen(schema, output, "bump", _LATER, str(origin), "--repin", "--commit", _COMMIT) == 0
    report = capsys.readouterr().out
    assert report.startswith(f"{_LATER} against {NEWEST}:\n")
    _, _, since = report.partition(f"\n{_LATER} against its previous file:\n")
    assert _PRICE_ADDED in since.splitlines()
    assert codegen(schema, output, "check") == 0
    pinned = read_json(schema / "PINNED.json")[_LATER]
    assert pinned["commit"] == _COMMIT
    assert pinned["upstream_sha256"] == _sha256(origin)
    assert pinned["sha256"] == _sha256(schema / f"{_LATER}.json")
    assert "price: int" in (output / "mcpspec" / "v2031_05_01" / "structs.py").read_text(encoding="utf-8")


def test_bump_of_the_oldest_revision_reports_the_changes_to_its_previous_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = small_folder(tmp_path / "schema", small_schema())
    origin = write_json(tmp_path / "upstream.json", small_schema(_add_price))
    assert codegen(schema, tmp_path / "output", "bump", NEWEST, str(origin), "--repin") == 0
    assert _PRICE_ADDED in capsys.readouterr().out.splitlines()


def test_bump_with_the_file_that_is_pinned_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = small_folder(tmp_path / "schema", format_interface(small_schema()).encode())
    origin = Path(shutil.copy(schema / f"{NEWEST}.json", tmp_path / "upstream.json"))
    before = snapshot(schema)
    assert codegen(schema, tmp_path / "output", "bump", NEWEST, str(origin)) == 0
    assert snapshot(schema) == before
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")] == []


def test_bump_imports_an_extension(tmp_path: Path) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    sound = {"type": "object", "properties": {"hz": {"type": "integer"}}}
    origin = write_json(tmp_path / "upstream.json", {"$defs": {"Sound": sound}})
    assert codegen(schema, output, "bump", "ext/sound", str(origin)) == 0
    assert list(read_json(schema / "PINNED.json")) == [NEWEST, "ext/sound"]
    assert (schema / "ext" / "sound.json").is_file()
    assert (output / "mcpspec" / "ext" / "sound" / "structs.py").is_file()
    assert f'LATEST: Final = "{NEWEST}"' in (output / "mcpspec" / "__init__.py").read_text(encoding="utf-8")


@each("version", ["Draft", "2031-5-1", "2031-02-30", "2031-01-0\u0661", "ext/", "ext/Sound", "../2031-05-01", ""])
def test_bump_rejects_an_invalid_version(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, origin = schema_folder(tmp_path / "schema"), write_json(tmp_path / "upstream.json", newest_schema())
    before = snapshot(tmp_path)
    assert codegen(schema, tmp_path / "output", "bump", version, str(origin)) == 2
    assert "expected a date such as 2026-07-28, `draft`, or `ext/<name>`" in capsys.readouterr().err
    assert snapshot(tmp_path) == before


@each("origin", ["nowhere.json", "http://127.0.0.1:1/a.json", "https://127.0.0.1:1/a.json", "https://[", "."])
def test_bump_rejects_an_unreadable_origin(origin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = schema_folder(tmp_path / "schema")
    before = snapshot(tmp_path)
    assert codegen(schema, tmp_path / "output", "bump", _LATER, origin) == 2
    assert f"error: {origin}#: " in capsys.readouterr().err
    assert snapshot(tmp_path) == before


def _recurse(defs: Schema) -> None:
    defs["Cursor"] = {"$ref": "#/$defs/Cursor"}


def test_bump_to_a_revision_that_cannot_be_compiled_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    assert codegen(schema, output, "generate") == 0
    origin = write_json(tmp_path / "upstream.json", small_schema(_mend_json_values, _recurse))
    before = snapshot(tmp_path)
    assert codegen(schema, output, "bump", _LATER, str(origin)) == 2
    assert "#/$defs/Cursor: the definition is itself" in capsys.readouterr().err
    assert snapshot(tmp_path) == before


@each(
    "definitions",
    [
        pytest.param({"A": {"type": "object"}}, id="no message"),
        pytest.param({"A": {"type": "object"}, "ClientRequest": {"anyOf": []}}, id="an empty union"),
    ],
)
@each("version", [_LATER, "draft"])
def test_a_revision_has_requests_of_the_client(
    definitions: Schema, version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = small_folder(tmp_path / "schema", small_schema())
    origin = write_json(tmp_path / "upstream.json", {"$defs": definitions})
    before = snapshot(tmp_path)
    assert codegen(schema, tmp_path / "output", "bump", version, str(origin)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {origin}#")
    assert "`ClientRequest`" in error or "`anyOf` is empty" in error
    assert snapshot(tmp_path) == before


def _rename_result(defs: Schema) -> None:
    """Rename a request, but not its result."""
    defs["FindRequest"] = defs.pop("ListToolsRequest")
    defs["ClientRequest"] = {"anyOf": [{"$ref": "#/$defs/FindRequest"}]}


def test_a_result_that_no_schema_states_is_a_gap_until_a_person_confirms_it(tmp_path: Path) -> None:
    schema, origin = (
        small_folder(tmp_path / "schema", small_schema()),
        write_json(tmp_path / "upstream.json", small_schema(_rename_result)),
    )
    assert codegen(schema, tmp_path / "output", "bump", _LATER, str(origin)) == 0
    line = "tools/list: no FindResult is defined, so its result is EmptyResult; before it was ListToolsResult"
    assert [gap.text for gap in find_gaps(schema) if line in gap.text]
    supplement = read_json(schema / "supplement.json")
    write_json(schema / "supplement.json", {**supplement, "empty_results": {_LATER: ["tools/list"]}})
    assert [gap.text for gap in find_gaps(schema) if "EmptyResult" in gap.text] == []


# Interruptions


_INTERRUPT = """
import itertools, os, shutil, sys
from pathlib import Path
from mcpspec_codegen.bump import _replace

old, new, folder = map(Path, sys.argv[1:])
changes = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}

def crash_before(number, work):
    left = itertools.count(number - 1, -1)

    def hook(event, arguments):
        writes = event in changes or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if writes and str(arguments[0]).startswith(str(work)) and next(left) == 0:
            os._exit(9)

    sys.addaudithook(hook)

for number in itertools.count(1):
    work = folder / str(number)
    shutil.copytree(old, work)
    if (child := os.fork()) == 0:
        crash_before(number, work)
        _replace(work, new)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(number, status)
    if status != 9:
        break
"""


def _relative(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): data for path, data in snapshot(folder).items()}


def _is_complete(folder: Path) -> bool:
    """Return whether the schemas can be loaded. If not, the error tells to bump again."""
    if not (folder / STAGED).exists():
        return bool(load(folder))
    with pytest.raises(SchemaError, match="`make bump` was interrupted; run it again"):
        load(folder)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the interrupted import runs in a fork")
def test_an_import_that_is_interrupted_at_any_file_is_undone_or_completed_by_the_next(tmp_path: Path) -> None:
    """A process ends before its first, second, … change in the folder. The import also removes a schema."""
    old = schema_folder(tmp_path / "old", PREVIOUS, NEWEST)
    pin(old, "draft", small_schema())
    new = tmp_path / "new"
    shutil.copytree(old, new)
    pin(new, _LATER, small_schema(_mend_json_values))
    pinned = read_json(new / "PINNED.json")
    (new / "draft.json").unlink()
    write_json(new / "PINNED.json", {version: entry for version, entry in pinned.items() if version != "draft"})
    write_json(new / "errata.json", [])
    (tmp_path / "work").mkdir()
    told = python(ROOT / "codegen", _INTERRUPT, str(old), str(new), str(tmp_path / "work")).split("\n")
    outcomes = [line.split() for line in told if line]
    assert len(outcomes) > 8
    assert [status for _, status in outcomes] == [*["9"] * (len(outcomes) - 1), "0"]
    ends: set[str] = set()
    for number, _ in outcomes:
        work = tmp_path / "work" / number
        is_complete = _is_complete(work)
        _finish_import(work)
        found = _relative(work)
        assert found in (_relative(old), _relative(new))
        ends.add(f"{'new' if found == _relative(new) else 'old'} {'complete' if is_complete else 'completed'}")
        assert _is_complete(work)
    assert ends == {"old complete", "new completed", "new complete"}


def test_a_bump_after_an_interrupted_one_gives_what_one_bump_gives(tmp_path: Path) -> None:
    origin = write_json(tmp_path / "upstream.json", small_schema(_mend_json_values))
    for name in ("one", "two"):
        schema = small_folder(tmp_path / name, small_schema())
        if name == "two":  # interrupted before a file was moved to its place
            (schema / STAGED).mkdir()
            changed = [
                path for path, data in _relative(tmp_path / "one").items() if data != _relative(schema).get(path)
            ]
            for path in changed:
                shutil.copy(tmp_path / "one" / path, schema / STAGED / path)
            assert {"PINNED.json", f"{_LATER}.json"} <= {*changed}
        assert codegen(schema, tmp_path / "output", "bump", _LATER, str(origin)) == 0
    assert _relative(tmp_path / "two") == _relative(tmp_path / "one")


_HEX = "b0f60ba5409db7a6582440a7b473cc0398890f15"
_KNOWN = {"repository": "a/b", "commit": "k" * 40, "path": "known.json", "reference": "https://a.org/#{anchor}"}


@each(
    "origin, source",
    [
        pytest.param(
            f"https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol/{_HEX}/schema/{_LATER}/schema.json",
            ("modelcontextprotocol/modelcontextprotocol", _HEX, f"schema/{_LATER}/schema.json"),
            id="upstream",
        ),
        pytest.param(
            f"https://raw.githubusercontent.com/modelcontextprotocol/ext-tasks/{_HEX}/schema/draft/schema.json",
            ("modelcontextprotocol/ext-tasks", _HEX, "schema/draft/schema.json"),
            id="an extension",
        ),
        pytest.param(f"https://mirror.example/a/b/{_HEX}/s.json", ("a/b", _HEX, "s.json"), id="a mirror"),
    ],
)
def test_repository_commit_and_path_are_read_off_a_raw_url(origin: str, source: tuple[str, str, str]) -> None:
    for known in ({}, _KNOWN):
        entry = _entry(_LATER, origin, known, None)
        assert (entry["repository"], entry["commit"], entry["path"]) == source


@each("origin", ["upstream.json", f"https://raw.githubusercontent.com/a/b/main/schema/{_LATER}/schema.json"])
def test_the_commit_is_an_argument_if_the_origin_names_none(origin: str) -> None:
    official = ("modelcontextprotocol/modelcontextprotocol", f"schema/{_LATER}/schema.json")
    for commit, expected in ((_COMMIT, _COMMIT), (None, "unknown")):
        entry = _entry(_LATER, origin, {}, commit)
        assert (entry["repository"], entry["path"], entry["commit"]) == (*official, expected)


def test_pinned_facts_of_a_version_stay_unless_others_are_given() -> None:
    assert _entry(_LATER, "upstream.json", _KNOWN, None) == _KNOWN
    assert _entry(_LATER, "upstream.json", _KNOWN, _COMMIT) == {**_KNOWN, "commit": _COMMIT}


def test_another_file_without_a_commit_is_not_pinned_to_the_previous_commit(tmp_path: Path) -> None:
    schema = small_folder(tmp_path / "schema", small_schema())
    origin = write_json(tmp_path / "upstream.json", small_schema(_add_price))
    pinned = read_json(schema / "PINNED.json")
    pinned[NEWEST]["commit"] = "a commit of the previous file"
    write_json(schema / "PINNED.json", pinned)
    if codegen(schema, tmp_path / "output", "bump", NEWEST, str(origin), "--repin") == 0:
        assert read_json(schema / "PINNED.json")[NEWEST]["commit"] != pinned[NEWEST]["commit"]


@pytest.fixture(scope="module")
def diff() -> dict[str, list[str]]:
    """Return the output of `diff` for two revisions."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert codegen(SCHEMA, Path("nowhere"), "diff", PREVIOUS, NEWEST) == 0
    return _sections(printed.getvalue())


@each(
    "section, line",
    [
        ("only words", "  + DiscoverRequest: object"),
        ("only words", "  + ResultType: string"),
        ("only words", "  - InitializeRequest: object"),
        ("breaking", "  + CallToolResult.resultType: string  [servers send]"),
        ("breaking", "  + ListToolsResult.ttlMs: integer (at least 0)  [servers send]"),
        ("breaking", "  - CallToolRequestParams.task: TaskMetadata, optional  [clients send]"),
        (
            "breaking",
            "  ~ CancelledNotificationParams.requestId: required now  [both send]",
        ),
        ("compatible", "  + server/discover: client request, RequestParams -> DiscoverResult"),
        ("breaking", "  - initialize: client request, InitializeRequestParams -> InitializeResult  [clients send]"),
        (
            "breaking",
            "  - ping: client or server request, RequestParams, optional -> EmptyResult  [both send]",
        ),
        ("breaking", "  ~ notifications/progress: sent by both => server  [clients send, servers get]"),
        ("compatible", "  + HEADER_MISMATCH: -32020"),
        ("breaking", "  - URL_ELICITATION_REQUIRED: -32042  [both get]"),
        ("breaking", '  - ElicitRequest.jsonrpc: "2.0"  [servers send, clients get]'),
    ],
)
def test_diff_reports_the_changes_between_two_revisions(section: str, line: str, diff: dict[str, list[str]]) -> None:
    assert line in diff[section]


def test_diff_omits_what_did_not_change(diff: dict[str, list[str]]) -> None:
    told = {line.split()[1].rstrip(":") for lines in diff.values() for line in lines}
    assert told.isdisjoint({"INVALID_PARAMS", "INVALID_REQUEST", "Tool", "Tool.name", "TextContent.type"})


def test_diff_of_a_version_with_itself_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert codegen(SCHEMA, Path("nowhere"), "diff", NEWEST, NEWEST) == 0
    assert capsys.readouterr().out == ""


@each("fail_on, status", [("breaking", 1), ("compatible", 1), ("any", 1)])
def test_diff_fails_on_changes_that_one_names(fail_on: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert codegen(SCHEMA, Path("nowhere"), "diff", PREVIOUS, NEWEST, "--json", "--fail-on", fail_on) == status
    found = json.loads(capsys.readouterr().out)
    assert (found["old"], found["new"]) == (PREVIOUS, NEWEST)
    assert found["counts"]["breaking"] == sum(change["verdict"] == "breaking" for change in found["changes"]) > 0
    assert codegen(SCHEMA, Path("nowhere"), "diff", NEWEST, NEWEST, "--fail-on", fail_on) == 0


@each("versions", [("2020-01-01", NEWEST), (NEWEST, "2020-01-01"), (NEWEST, "ext/nothing")])
def test_diff_with_an_unknown_version_is_an_error(
    versions: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = next(version for version in versions if version != NEWEST)
    assert codegen(SCHEMA, Path("nowhere"), "diff", *versions) == 2
    place = f"{SCHEMA / 'PINNED.json'}#/{unknown.replace('/', '~1')}"
    assert capsys.readouterr().err.startswith(f"error: {place}: no such version is pinned; known: ")


def _without_jsonrpc(defs: Schema) -> None:
    defs["ListToolsRequest"]["required"].remove("jsonrpc")


def _closed(defs: Schema) -> None:
    defs["Icon"]["additionalProperties"] = False


def _open(defs: Schema) -> None:
    defs["Icon"]["additionalProperties"] = {}


def _shorter(defs: Schema) -> None:
    defs["Icon"]["properties"]["src"]["maxLength"] = 2000


def _optional(defs: Schema) -> None:
    defs["Icon"]["required"].remove("src")


@each(
    "change, named",
    [
        pytest.param(_optional, "Icon.src", id="a field that is optional now"),
        pytest.param(_shorter, "Icon.src", id="a bound"),
        pytest.param(_without_jsonrpc, "ListToolsRequest.jsonrpc", id="a constant that is optional now"),
        pytest.param(_closed, "Icon", id="an object that is closed now"),
        pytest.param(_open, "Icon", id="an object that is open now"),
    ],
)
def test_diff_reports_every_change_of_the_accepted_values(change: Change, named: str, tmp_path: Path) -> None:
    schema = small_folder(tmp_path / "schema", small_schema())
    before = load_interface(schema, NEWEST)
    pin(schema, NEWEST, small_schema(change))
    report = write_changes(find_changes(before, load_interface(schema, NEWEST)))
    lines: list[Any] = [line.split()[:2] for line in report]
    assert ["~", f"{named}:"] in lines
