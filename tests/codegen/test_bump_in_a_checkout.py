"""After a bump of a schema that nobody has seen, a whole checkout is green without another step.

The tests change a copy of the checkout as `make bump` does, and run the tests of the types there, and some tests of the
runtime.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspec import VERSIONS
from tests.codegen.helpers import Change, Schema, newest_schema, write_json
from tests.pairs import FULL_PRODUCTS
from tests.paths import ROOT
from typedmcp.revisions.features import DIALECT, SUPPORTED

pytestmark = pytest.mark.long

LATER = "2031-05-01"


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _const(value: str) -> Schema:
    return {"const": value, "type": "string"}


def _object(**properties: Schema) -> Schema:
    return {"properties": properties, "required": [*properties], "type": "object"}


_TEXT: Schema = {"type": "string"}


def _add_method(defs: Schema) -> None:
    defs["RenameToolRequestParams"] = _object(_meta=_ref("RequestMetaObject"), name=_TEXT, newName=_TEXT)
    envelope = {"jsonrpc": _const("2.0"), "id": _ref("RequestId")}
    params = _ref("RenameToolRequestParams")
    defs["RenameToolRequest"] = _object(**envelope, method=_const("tools/rename"), params=params)
    defs["RenameToolResult"] = {**_object(resultType=_TEXT, name=_TEXT), "additionalProperties": {}}
    defs["RenameToolResultResponse"] = _object(**envelope, result=_ref("RenameToolResult"))
    defs["ClientRequest"]["anyOf"].append(_ref("RenameToolRequest"))
    defs["ServerResult"]["anyOf"].append(_ref("RenameToolResult"))


def _add_notification(defs: Schema) -> None:
    params = _object(name=_TEXT)
    method = _const("notifications/tools/renamed")
    defs["ToolRenamedNotification"] = _object(jsonrpc=_const("2.0"), method=method, params=params)
    defs["ServerNotification"]["anyOf"].append(_ref("ToolRenamedNotification"))


def _add_content(defs: Schema) -> None:
    defs["VideoContent"] = _object(type=_const("video"), data=_TEXT, mimeType=_TEXT)
    defs["ContentBlock"]["anyOf"].append(_ref("VideoContent"))


def _rename_member(owner: str, old: str, new: str) -> Change:
    def change(defs: Schema) -> None:
        node = defs[owner]
        node["properties"] = {new if key == old else key: value for key, value in node["properties"].items()}
        node["required"] = [new if key == old else key for key in node["required"]]

    return change


def _remove_definition(defs: Schema) -> None:
    del defs["ToolAnnotations"], defs["Tool"]["properties"]["annotations"]


def _add_required_member(defs: Schema) -> None:
    defs["Implementation"]["properties"]["vendor"] = _TEXT
    defs["Implementation"]["required"].append("vendor")


def _add_optional_member(defs: Schema) -> None:
    defs["Resource"]["properties"]["sha256"] = _TEXT


def _change_bound(defs: Schema) -> None:
    defs["ModelPreferences"]["properties"]["costPriority"]["maximum"] = 10


def _add_error_code(defs: Schema) -> None:
    defs["QuotaExceededError"] = json.loads(json.dumps(defs["HeaderMismatchError"]).replace("-32020", "-32029"))


def _add_enum_value(defs: Schema) -> None:
    defs["LoggingLevel"]["enum"].append("trace")


def _add_union(defs: Schema) -> None:
    defs["Circle"] = _object(kind=_const("circle"), radius={"type": "number"})
    defs["Square"] = _object(kind=_const("square"), side={"type": "number"})
    defs["Shape"] = {"anyOf": [_ref("Circle"), _ref("Square")]}
    defs["Icon"]["properties"]["shape"] = _ref("Shape")


def _mend_a_defect(defs: Schema) -> None:
    defs["JSONValue"]["anyOf"][2]["type"] = ["string", "number", "boolean", "null"]


CHANGES: list[Change] = [
    _add_method, _add_notification, _add_content, _rename_member("Root", "uri", "location"), _remove_definition,
    _add_required_member, _add_optional_member, _change_bound, _add_error_code, _add_enum_value, _add_union,
    _rename_member("GetPromptRequestParams", "name", "promptName"), _mend_a_defect,
]  # fmt: skip
"""Every kind of change that a revision may bring."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout, with the packages, their tests, and what the tests read."""
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in ("schema", "codegen", "generated", "runtime", "tests", "tools", "examples"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _python(checkout, "-m", *arguments)


def _python(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    folders = [checkout, *(checkout / name for name in ("codegen", "generated", "runtime"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=300)


def _bump(checkout: Path, version: str, *changes: Change) -> str:
    """Bump a version to the newest schema with some changes, and return the report."""
    origin = write_json(checkout.parent / "upstream.json", newest_schema(*changes))
    done = _run(checkout, "mcpspec_codegen", "bump", version, str(origin))
    assert done.returncode == 0, done.stderr
    return done.stdout


def _unwritten(checkout: Path) -> list[str]:
    """Return the report of what a person still has to write, which a release refuses for a revision."""
    warned, failed = _run(checkout, "tools.unwritten"), _run(checkout, "tools.unwritten", "--fail")
    assert (warned.returncode, warned.stderr, failed.stdout) == (0, "", warned.stdout)
    lines = [line.strip() for line in warned.stdout.splitlines()[1:]]
    assert failed.returncode == any(not line.startswith("draft: ") for line in lines)
    return lines


QUICK = [
    "tests/generated/test_vectors.py", "tests/generated/test_methods.py", "tests/generated/test_handlers.py",
    "tests/generated/test_packages.py", "tests/generated/test_backends.py", "tests/client/test_text.py",
    "tests/test_errors.py", "tests/test_names.py", "tests/typedmcp_cli/test_validate.py",
]  # fmt: skip


def _check(checkout: Path, version: str) -> None:
    """Check that the output is up to date, and run the tests of a version and those of no particular version."""
    compared = _run(checkout, "mcpspec_codegen", "check")
    assert (compared.returncode, compared.stdout) == (0, "")
    chosen = f"{version} or {version.replace('-', '_')} or test_versions or not generated"
    command = ["pytest", "-q", "-m", "not long", "-k", chosen, "-p", "no:cacheprovider", "-p", "no:xdist"]
    tested = _run(checkout, *command, *QUICK)
    assert tested.returncode == 0, tested.stdout


def test_a_revision_with_every_kind_of_change_needs_no_step_but_the_bump(checkout: Path) -> None:
    before = _unwritten(checkout)
    report = _bump(checkout, LATER, *CHANGES).splitlines()
    assert "mended by upstream: JSONValue, `type`" in report
    unwritten = [line for line in _unwritten(checkout) if line not in before]
    assert {line.partition(": ")[0] for line in unwritten} == {LATER}
    for gap in (
        "docs.toml: no description of VideoContent",
        "errata.json: ElicitResult, `type` was carried over; if that is right, move it to `versions`",
        "supplement.json: log_levels lacks 'trace'",
        "supplement.json: prompts/get does not require the parameter 'name'",
        f"tests/vectors/{LATER}: no valid vector of RenameToolRequest",
    ):
        assert f"{LATER}: {gap}" in unwritten
    assert f"{LATER}: tests/vectors/{LATER}: no valid vector of ListToolsRequest" not in unwritten
    _check(checkout, LATER)


@pytest.mark.skipif(not FULL_PRODUCTS, reason="it takes a minute; a release sets FULL_PRODUCTS")
def test_a_draft_is_beside_the_revisions_and_a_release_does_not_wait_for_it(checkout: Path) -> None:
    before = {line for line in _unwritten(checkout) if not line.startswith("draft: ")}
    _bump(checkout, "draft", *CHANGES)
    assert {line for line in _unwritten(checkout) if not line.startswith("draft: ")} == before
    assert "draft: docs.toml: no description of VideoContent" in _unwritten(checkout)
    assert _spoken(checkout) == [*SUPPORTED]
    _check(checkout, "draft")


def test_the_runtime_speaks_the_draft_if_its_dialect_is_the_draft(checkout: Path) -> None:
    _bump(checkout, "draft", _add_optional_member)
    for module in (checkout / "runtime" / "typedmcp" / "dialect").glob("*.py"):
        text = module.read_text(encoding="utf-8")
        package = "v" + DIALECT.replace("-", "_")
        assert package in text
        module.write_text(text.replace(package, "draft"), encoding="utf-8")
    assert _spoken(checkout) == ["draft", *reversed(VERSIONS)]


def _spoken(checkout: Path) -> list[str]:
    """Return the revisions that the runtime of a checkout speaks, newest first."""
    load = "from typedmcp.revisions.features import FEATURES, SUPPORTED"
    show = "print(*[FEATURES[version].version for version in SUPPORTED])"
    return _python(checkout, "-c", f"{load}; {show}").stdout.split()
