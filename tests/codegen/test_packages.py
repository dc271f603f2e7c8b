"""Schemas of others: what is added to a revision, what is inherited, what is rejected, and the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from mcpspec_codegen import packages, render
from mcpspec_codegen.__main__ import main
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.output import format_files
from mcpspec_codegen.own import read_own
from mcpspec_codegen.packages import BACKENDS, PackageOptions, compile_package, load_own, write_package
from mcpspec_codegen.pipeline import load_base, plain_definitions
from mcpspec_codegen.prose import docstring
from tests.cases import each
from tests.codegen.helpers import (
    NEWEST,
    SCHEMA,
    Schema,
    pinned_versions,
    python,
    read_json,
    snapshot,
    write_json,
)
from tests.codegen.json_schemas import random_definitions

REVISIONS = [version for version in pinned_versions() if not version.startswith("ext/")]
LEGACY = "2025-11-25"


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: Schema, *required: str, **others: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], **others}


def _request(method: str, params: str) -> Schema:
    properties = {"jsonrpc": {"const": "2.0"}, "id": _ref("RequestId"), "method": {"const": method}}
    return _object({**properties, "params": _ref(params)}, "jsonrpc", "id", "method", "params")


def _notification(method: str) -> Schema:
    params = _object({"count": {"type": "integer"}}, "count")
    return _object({"jsonrpc": {"const": "2.0"}, "method": {"const": method}, "params": params}, "jsonrpc", "method")


ACME: Schema = {
    "SearchRequest": {**_request("acme/search", "SearchRequestParams"), "description": "Ask for documents."},
    "SearchRequestParams": _object({"_meta": _ref("RequestMetaObject"), "query": {"type": "string"}}, "_meta", "query"),
    "SearchResult": {"allOf": [_ref("Result"), _object({"hits": {"type": "array", "items": _ref("Hit")}}, "hits")]},
    "Hit": _object({"title": {"type": "string"}, "body": _ref("ContentBlock")}, "title"),
    "CardContent": _object({"type": {"const": "acme/card"}, "card": {"type": "string"}}, "type", "card"),
    "SeenNotification": _notification("notifications/acme/seen"),
    "IndexedNotification": _notification("notifications/acme/indexed"),
    "ClientRequest": {"anyOf": [_ref("SearchRequest")]},
    "ClientNotification": _ref("SeenNotification"),
    "ServerNotification": {"oneOf": [_ref("IndexedNotification")]},
    "ContentBlock": {"anyOf": [_ref("CardContent")]},
    "Tool": _object({"owner": {"type": "string", "description": "The team."}}),
    "ToolAnnotations": {"allOf": [_ref("ToolAnnotations"), _object({"cost": {"type": "integer"}}, "cost")]},
}
"""A schema that adds to the newest revision in every way."""


def _write(folder: Path, definitions: Schema, name: str = "acme.json", **others: Any) -> Path:
    return write_json(folder / name, {**others, "$defs": definitions})


def _compile(folder: Path, *schemas: Path, extends: str | None = NEWEST, package: str = "acme_mcp") -> Path:
    """Compile schemas with the command, and return the folder that contains the package."""
    base = [] if extends is None else ["--extends", extends]
    arguments = ["compile", *map(str, schemas), "--package", package, "--out", str(folder / "out"), *base]
    assert main(["--schema", str(SCHEMA), *arguments]) == 0
    return folder / "out"


def test_an_error_cannot_control_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    controls = "\x1b]0;pwn\x07\x9b2J\u202e\x7f"
    schema = write_json(tmp_path / "own.json", {"$defs": {controls: {"type": controls}}, controls: 1})
    assert main(["--schema", str(SCHEMA), "compile", str(schema), "--package", "q", "--out", str(tmp_path)]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert all(line.isprintable() for line in shown.splitlines())


def _error(folder: Path, definitions: Schema, extends: str | None = NEWEST) -> SchemaError:
    """Return the error for a schema."""
    with pytest.raises(SchemaError) as caught:
        load_own(SCHEMA, [_write(folder, definitions)], extends)
    return caught.value


def _is_valid(schema: Schema, name: str, value: Any) -> bool:
    validator: Any = jsonschema.Draft202012Validator({**schema, **_ref(name)})
    return bool(validator.is_valid(value))


@pytest.fixture(scope="module", autouse=True)
def _load_each_revision_once() -> Iterator[None]:
    """Load the revisions that schemas extend once: it takes most of the time, and nobody changes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packages, "load_base", cache(load_base))
        yield


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("acme")
    return _compile(folder, _write(folder, ACME))


# What a package contains


_DECODE = """
import json, sys
import acme_mcp
types, backend = getattr(acme_mcp, sys.argv[1]), sys.argv[1]
for name, value, fits in json.loads(sys.argv[2]):
    try:
        decoded = types.decode(json.dumps(value), getattr(types, name))
        assert fits, (name, value)
        assert json.loads(types.encode(decoded)) == value, (name, value, types.encode(decoded))
    except types.DecodeError as error:
        assert not fits, (name, value, error)
"""

_TOOL = {"name": "a", "inputSchema": {"type": "object"}, "owner": "us"}
_PAGE = {"resultType": "complete", "tools": [_TOOL], "ttlMs": 0, "cacheScope": "public"}
_CARD = {"type": "acme/card", "card": "x"}
_META: Schema = {"io.modelcontextprotocol/protocolVersion": NEWEST, "io.modelcontextprotocol/clientCapabilities": {}}
_SEARCH: Schema = {"jsonrpc": "2.0", "id": 1, "method": "acme/search", "params": {"_meta": _META, "query": "x"}}

_VALUES: list[tuple[str, Any, bool]] = [
    ("Tool", _TOOL, True),
    ("Tool", {**_TOOL, "owner": 1}, False),
    ("ListToolsResult", _PAGE, True),
    ("ListToolsResult", {**_PAGE, "tools": [{**_TOOL, "owner": 1}]}, False),
    ("ContentBlock", _CARD, True),
    ("ContentBlock", {"type": "text", "text": "hi"}, True),
    ("ContentBlock", {"type": "acme/card"}, False),
    ("CallToolResult", {"resultType": "complete", "content": [_CARD]}, True),
    ("ClientRequest", _SEARCH, True),
    ("ClientRequest", {**_SEARCH, "params": {"_meta": _META}}, False),
    ("ClientNotification", {"jsonrpc": "2.0", "method": "notifications/acme/seen"}, True),
    ("ToolAnnotations", {"cost": 1, "title": "x"}, True),
    ("ToolAnnotations", {"title": "x"}, False),
    ("SearchResult", {"resultType": "complete", "hits": [{"title": "a", "body": _CARD}]}, True),
]


@each("backend", BACKENDS)
def test_types_accept_what_the_bundled_schema_accepts(acme: Path, backend: str, tmp_path: Path) -> None:
    python(acme, _DECODE, backend, json.dumps(_VALUES))
    schemas = [str(_write(tmp_path, ACME)), "--extends", NEWEST]
    assert main(["--schema", str(SCHEMA), "bundle", "--out", str(tmp_path / "out"), *schemas]) == 0
    bundled = read_json(tmp_path / "out" / "acme.json")
    jsonschema.Draft202012Validator.check_schema(bundled)
    for name, value, fits in _VALUES:
        assert _is_valid(bundled, name, value) == fits, (name, value)


def test_a_package_has_the_methods_of_the_revision_and_its_own(acme: Path) -> None:
    code = f"""
from acme_mcp import handlers, methods, structs
from mcpspec import revision
base = revision({NEWEST!r})
assert methods.ACME_SEARCH.params is structs.SearchRequestParams and methods.ACME_SEARCH.handler == "search"
assert methods.ACME_SEARCH.result is structs.SearchResult
assert methods.METHODS.keys() - base.methods.METHODS.keys() == {{
    "acme/search", "notifications/acme/seen", "notifications/acme/indexed"}}
assert "acme/search" in methods.CLIENT_REQUESTS and "notifications/acme/seen" in methods.CLIENT_NOTIFICATIONS
assert "notifications/acme/indexed" in methods.SERVER_NOTIFICATIONS
assert methods.TOOLS_LIST is not base.methods.TOOLS_LIST and methods.TOOLS_LIST.result is structs.ListToolsResult
assert methods.COMPLETION_COMPLETE is base.methods.COMPLETION_COMPLETE
assert methods.PROTOCOL_VERSION == {NEWEST!r}
assert structs.TextContent is base.structs.TextContent and structs.Tool is not base.structs.Tool
assert handlers.ServerCompletion is base.handlers.ServerCompletion
assert handlers.ServerAcme in handlers.ServerHandler.__mro__
assert hasattr(handlers.ServerStub, "search") and hasattr(handlers.ServerStub, "call_tool")
"""
    python(acme, code)


def test_own_descriptions_are_docstrings_and_the_protocol_keeps_its_own(acme: Path) -> None:
    text = (acme / "acme_mcp" / "structs.py").read_text(encoding="utf-8")
    assert '"""Ask for documents."""' in text
    assert 'owner: str | None = None\n    """The team."""' in text
    assert "#listtoolsresult" in text
    assert text.count("Generated by `mcpspec-codegen compile acme.json --package acme_mcp --extends") == 1
    assert "make generate" not in text


def test_a_link_is_that_of_the_schema(tmp_path: Path) -> None:
    schema = _write(tmp_path, {"A": _object({"a": {}})}, **{"$id": "https://acme.example/schema"})
    text = (_compile(tmp_path, schema) / "acme_mcp" / "structs.py").read_text(encoding="utf-8")
    assert '"""A https://acme.example/schema"""' in text


@each("version", REVISIONS)
def test_a_definition_of_its_own_changes_nothing_else(version: str, tmp_path: Path) -> None:
    interface = load_own(
        SCHEMA, [_write(tmp_path, {"AcmeThing": _object({"id": _ref("RequestId")})})], version
    ).interface
    assert interface.own_definitions.keys() == {"AcmeThing"}
    assert interface.inherited.methods == {method.name for method in interface.methods}


@each("version", REVISIONS)
def test_a_copy_of_the_protocols_schema_adds_nothing(version: str, tmp_path: Path) -> None:
    assert main(["--schema", str(SCHEMA), "bundle", "--only", version, "--out", str(tmp_path)]) == 0
    own = load_own(SCHEMA, [tmp_path / f"{version}.json"], version)
    assert own.interface.own_definitions == {}
    assert own.definitions == plain_definitions(load_base(SCHEMA, version).interface.document)


def test_a_result_that_a_schema_does_not_state_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    searching = {name: ACME[name] for name in ("SearchRequest", "SearchRequestParams", "ClientRequest")}
    _compile(tmp_path, _write(tmp_path, searching))
    told = "acme/search: no SearchResult is defined, so its result is EmptyResult"
    assert capsys.readouterr().out.splitlines()[0] == told
    _compile(tmp_path, _write(tmp_path, ACME))
    assert "EmptyResult" not in capsys.readouterr().out


@each("version", pinned_versions())
def test_a_bundle_is_a_valid_schema_with_the_errata_applied(version: str, tmp_path: Path) -> None:
    assert main(["--schema", str(SCHEMA), "bundle", "--only", version, "--out", str(tmp_path)]) == 0
    bundled = read_json(tmp_path / f"{version}.json")
    jsonschema.Draft202012Validator.check_schema(bundled)
    text = json.dumps(bundled)
    assert "#/definitions/" not in text
    if "JSONValue" in bundled["$defs"]:
        for value in (1, 1.5, None, "x", [1], {"a": None}):
            assert _is_valid(bundled, "JSONValue", value)


def test_a_fork_of_the_whole_protocol_stands_alone(tmp_path: Path) -> None:
    assert main(["--schema", str(SCHEMA), "bundle", "--only", NEWEST, "--out", str(tmp_path)]) == 0
    fork = read_json(tmp_path / f"{NEWEST}.json")
    fork["$defs"]["Tool"]["properties"]["owner"] = {"type": "integer"}
    out = _compile(tmp_path, write_json(tmp_path / "fork.json", fork), extends=None, package="fork")
    text = snapshot(out / "fork")[out / "fork" / "structs.py"].decode()
    assert "from mcpspec.v" not in text
    python(out, "from fork import methods, structs; assert methods.TOOLS_LIST.result is structs.ListToolsResult")


def test_several_files_are_one_schema(tmp_path: Path) -> None:
    message = {"PingRequest": _object({"method": {"const": "acme/ping"}}, "method"), "PingResult": _object({})}
    files = [
        _write(tmp_path, message, "messages.json"),
        _write(tmp_path, {"ClientRequest": _ref("PingRequest")}, "senders.json"),
    ]
    out = _compile(tmp_path, *files, extends=None, package="acme.mcp")
    python(out, "from acme.mcp import methods; assert [*methods.CLIENT_REQUESTS] == ['acme/ping']")


def test_inline_types_of_the_protocol_can_be_extended_by_their_names(tmp_path: Path) -> None:
    added = {"ServerCapabilitiesTools": _object({"acme": {"type": "boolean"}})}
    interface = load_own(SCHEMA, [_write(tmp_path, added)], NEWEST).interface
    assert {"ServerCapabilitiesTools", "ServerCapabilities", "DiscoverResult"} <= interface.own_definitions.keys()
    assert "Tool" not in interface.own_definitions


def test_an_enumeration_of_the_protocol_gets_more_values(tmp_path: Path) -> None:
    interface = load_own(SCHEMA, [_write(tmp_path, {"LoggingLevel": {"enum": ["trace", "debug"]}})], NEWEST).interface
    known = plain_definitions(load_base(SCHEMA, NEWEST).interface.document)["LoggingLevel"]["enum"]
    assert interface.document["$defs"]["LoggingLevel"]["enum"] == [*known, "trace"]
    assert "CompleteRequest" in interface.own_definitions, "`_meta` of requests names the level"


def test_defects_that_a_schema_has_copied_are_corrected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copied = read_json(SCHEMA / f"{NEWEST}.json")["$defs"]
    names = ("JSONArray", "JSONObject", "JSONValue")
    _compile(tmp_path, _write(tmp_path, {name: copied[name] for name in names}), extends=None)
    assert "corrected, as in MCP: JSONValue" in capsys.readouterr().out


# `oneOf` and `patternProperties`


_A, _B = _object({"kind": {"const": "a"}}, "kind"), _object({"kind": {"const": "b"}}, "kind")

_EXCLUSIVE: dict[str, list[Schema]] = {
    "types": [{"type": "string"}, {"type": "array", "items": {}}, {"type": "null"}],
    "constants": [{"const": "a"}, {"enum": ["b", "c"]}],
    "a constant and a type": [{"const": "a"}, {"type": "integer"}],
    "objects with a constant": [_A, _B],
    "an object and a union of objects": [{"anyOf": [_A, _B]}, _object({"kind": {"const": "c"}}, "kind")],
    "objects with a member of another type": [
        _object({"id": {"type": "string"}}, "id"),
        _object({"id": {"type": "integer"}}, "id"),
    ],
    "a closed object": [_object({"a": {}}, additionalProperties=False), _object({"b": {}}, "b")],
    "parts of allOf": [{"allOf": [_A, _object({"x": {}})]}, _B],
}


@each("members", _EXCLUSIVE.values(), ids=_EXCLUSIVE)
def test_one_of_exclusive_members_is_their_union(members: list[Schema], tmp_path: Path) -> None:
    one = load_own(SCHEMA, [_write(tmp_path, {"A": {"oneOf": members}})], None).interface
    either = load_own(SCHEMA, [_write(tmp_path, {"A": {"anyOf": members}})], None).interface
    assert one.document == either.document


def test_a_pattern_for_all_names_is_a_map(tmp_path: Path) -> None:
    values = {"type": "integer"}
    given = {"A": {"type": "object", "patternProperties": {"^.*$": values}}}
    same = {"A": {"type": "object", "additionalProperties": values}}
    documents = [load_own(SCHEMA, [_write(tmp_path, defs)], None).interface.document for defs in (given, same)]
    assert documents[0] == documents[1]


# What is rejected


_TEXT = {"type": "string"}


def _error_code(code: int) -> Schema:
    return _object({"code": {"const": code}})


_REJECTED: list[tuple[Schema, str, str]] = [
    ({"Tool": _object({"name": {"type": "integer"}})}, "/Tool/properties/name", "has a member `name` of another type"),
    ({"Tool": _object({"name": _TEXT})}, "/Tool", "adds nothing"),
    ({"Tool": _object({"title": _TEXT}, "title")}, "/Tool/required", "`title` is optional in the protocol's `Tool`"),
    ({"Tool": {"allOf": [_ref("Icon"), _object({"a": {}})]}}, "/Tool/allOf", "expected `$ref` to the protocol's"),
    ({"Tool": {"anyOf": [_TEXT]}}, "/Tool/anyOf", "`anyOf` adds nothing to the object"),
    ({"Tool": _object({"a": {}}, additionalProperties=False)}, "/Tool/additionalProperties", "differs"),
    ({"ContentBlock": _object({"a": {}})}, "/ContentBlock", "is a union of the protocol"),
    ({"ContentBlock": {"anyOf": [_ref("TextContent")]}}, "/ContentBlock", "adds nothing"),
    ({"Tool": {**_object({"a": _TEXT}), "type": "string"}}, "/Tool/type", "`type` differs"),
    ({"Tool": {**_object({"a": _TEXT}), "type": ["object", "null"]}}, "/Tool/type", "`type` differs"),
    ({"Tool": {"allOf": [_ref("Tool"), _object({"a": _TEXT})], "type": "string"}}, "/Tool/type", "`type` differs"),
    ({"LoggingLevel": {"type": "integer", "enum": [1]}}, "/LoggingLevel/type", "`type` differs"),
    (
        {"V": _object({"type": {"const": "v"}}, "type"), "ContentBlock": {"type": "string", "anyOf": [_ref("V")]}},
        "/ContentBlock/type",
        "`type` beside `anyOf` excludes values of a member",
    ),
    ({"LoggingLevel": {"enum": ["debug"]}}, "/LoggingLevel", "adds nothing"),
    ({"LoggingLevel": _TEXT}, "/LoggingLevel", "is an enumeration of the protocol"),
    ({"Cursor": {"type": "integer"}}, "/Cursor", "is a type of the protocol, to which nothing can be added"),
    ({"ServerRequest": {"anyOf": [_ref("PingRequest")]}, "PingRequest": {}}, "/ServerRequest", "`InputRequest`"),
    ({"AcmeRequest": _object({"method": {"const": "a/b"}}, "method")}, "/AcmeRequest", "`ClientRequest`"),
    ({"A": {"$ref": "#/$defs/Nothing"}}, "/A/$ref", "leads to no definition"),
    ({"A": {"type": "object", "patternProperties": {"(": {}}}}, "/A/patternProperties/(", "Python understands"),
    ({"A": {"type": "array", "items": {}, "minimum": 1}}, "/A/minimum", "limits nothing"),
    ({"A": {"type": "string", "minLength": -1}}, "/A/minLength", "out of range"),
    ({"A": {"type": "string", "const": 1}}, "/A", "is of type integer, not string"),
    ({"A": _object({'a"b': {}})}, "/A/properties", "has no Python name"),
    ({"é": {}}, "/é", "no class can have this name"),
    ({"tool": {}}, "/tool", "would be named `Tool`, as a type of the protocol is"),
    ({"a b": {}, "AB": {}}, "/a b", "`AB` and `a b` would both be named `AB`; rename one of them"),
    ({"Any": {}, "AnyDefinition": {}}, "/Any", "would both be named `AnyDefinition`"),
    ({"A": {"const": 2**63}}, "/A/const", "the constant 9223372036854775808 is out of range"),
    ({"A": _object({"a": {"enum": [0, -(2**63) - 1]}})}, "/A/properties/a/enum", "out of range"),
    ({"FooBarError": _error_code(-5), "FooBar": _error_code(-6)}, "/FooBar", "-6 and the code -5 would both be named"),
    ({"ClientRequestsError": _error_code(-5)}, "/ClientRequestsError", "would both be named `CLIENT_REQUESTS`"),
    ({"HeaderMismatch": _error_code(-5)}, "/HeaderMismatch", "would both be named `HEADER_MISMATCH`"),
    ({"A": _object({"\ufb01": {}, "fi": {}})}, "/A/properties", "would both be named `fi`"),
]


@each("definitions, pointer, reason", _REJECTED)
def test_an_ambiguous_or_unknown_definition_is_rejected_by_name(
    definitions: Schema, pointer: str, reason: str, tmp_path: Path
) -> None:
    error = _error(tmp_path, definitions)
    assert (error.file, error.pointer) == (str(tmp_path / "acme.json"), "/$defs" + pointer)
    assert reason in error.reason


_BAD_FILES = {
    "[": "not JSON",
    "[]": "expected a JSON object",
    "{}": "expected definitions in `$defs`",
    '{"$defs": {}}': "expected definitions in `$defs`",
    '{"$defs": {"A": {}}, "definitions": {"B": {}}}': "either `$defs` or `definitions`",
    '{"$defs": {"A": {}}, "properties": {}}': "`properties` outside of `$defs`",
    '{"$defs": {"A": {}, "A": {}}}': "'A' twice",
    '{"$defs": {"A": {"minimum": NaN}}}': "JSON has no NaN",
    '{"$defs": {"A": {"description": "\\ud800"}}}': "surrogate",
    '{"$defs": {"A": ' + '{"items": ' * 2000 + "{}" + "}" * 2000 + "}}": "nested too deeply",
}


@each("text, reason", _BAD_FILES.items())
def test_a_bad_file_is_reported_and_nothing_is_written(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "acme.json"
    path.write_text(text, encoding="utf-8")
    before = snapshot(tmp_path)
    assert main(["compile", str(path), "--package", "acme", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path}#")
    assert snapshot(tmp_path) == before
    with pytest.raises(SchemaError, match=reason.replace("$", r"\$")):
        read_own([path], ())


@each(
    "arguments, reason",
    [
        (["--package", "1x"], "'1x' is no Python name"),
        (["--package", "acme.class"], "'class' is no Python name"),
        (["--package", "json"], "json is a package already"),
        (["--package", "mcpspec.mine"], "mcpspec is a package already"),
        (["--package", "mcpspec_codegen"], "mcpspec_codegen is a package already"),
        (["--package", "typedmcp"], "typedmcp is a package already"),
        (["--package", "acme", "--extends", NEWEST], f"adds nothing to MCP {NEWEST}"),
        (["--package", "acme", "--extends", "2020-01-01"], f"known: {', '.join(REVISIONS)}"),
    ],
)
def test_a_bad_argument_names_the_cause(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path, {"Cursor": {"type": "string"}})
    assert main(["compile", str(path), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_name_in_two_files_is_rejected(tmp_path: Path) -> None:
    files = [_write(tmp_path, {"A": {}}, "one.json"), _write(tmp_path, {"A": {}}, "two.json")]
    with pytest.raises(SchemaError, match=r"two\.json#/\$defs/A: .*one\.json defines it, too"):
        read_own(files, ())


def test_files_of_others_are_never_replaced_or_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = _compile(tmp_path, _write(tmp_path, ACME))
    own = out / "acme_mcp" / "server.py"
    own.write_text("print('mine')\n", encoding="utf-8")
    options = PackageOptions([tmp_path / "acme.json"], "acme_mcp", NEWEST, [BACKENDS["structs"]])
    write_package(compile_package(SCHEMA, options)[0], out)
    assert own.exists()
    assert not (out / "acme_mcp" / "models.py").exists()
    (out / "acme_mcp" / "methods.py").write_text("mine = 1\n", encoding="utf-8")
    before = snapshot(out)
    arguments = [str(tmp_path / "acme.json"), "--package", "acme_mcp", "--out", str(out), "--extends", NEWEST]
    assert main(["--schema", str(SCHEMA), "compile", *arguments]) == 2
    assert "methods.py#: was not generated" in capsys.readouterr().err
    assert snapshot(out) == before


def test_an_empty_file_of_others_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "out" / "acme_mcp" / "__init__.py"
    mine.parent.mkdir(parents=True)
    mine.touch()
    arguments = [str(_write(tmp_path, {"A": {}})), "--package", "acme_mcp", "--out", str(tmp_path / "out")]
    assert main(["compile", *arguments]) == 2
    assert "__init__.py#: was not generated" in capsys.readouterr().err
    assert snapshot(tmp_path / "out") == {mine: b""}


@each("link", ["acme_mcp", "acme_mcp/structs.py", "acme_mcp/py.typed"])
@each("exists", [True, False])
def test_a_package_is_not_written_through_a_link_out_of_its_folder(
    link: str, exists: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, target = tmp_path / "out", tmp_path / "target"
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(target)
    if exists and link == "acme_mcp":
        target.mkdir()
    elif exists:
        target.touch()
    arguments = [str(_write(tmp_path, {"A": {}})), "--package", "acme_mcp", "--out", str(out)]
    before = snapshot(tmp_path)
    assert main(["compile", *arguments]) == 2
    assert f"a symbolic link leads to {target}" in capsys.readouterr().err
    assert snapshot(tmp_path) == before


def test_the_output_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    _compile(tmp_path, _write(tmp_path, {"A": {}}), extends=None)
    assert (tmp_path / "real" / "acme_mcp" / "structs.py").is_file()


# The other commands


def test_check_compares_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = _write(tmp_path, {"A": _object({"a": {"type": "string"}})})
    out = _compile(tmp_path, schema, extends=None)
    check = ["check", str(schema), "--package", "acme_mcp", "--out", str(out)]
    assert main(check) == 0
    _write(tmp_path, {"A": _object({"b": {"type": "string"}})})
    assert main(check) == 1
    output = capsys.readouterr().out
    assert "differs: acme_mcp/structs.py" in output
    assert "run `mcpspec-codegen compile acme.json --package acme_mcp --out " in output


def test_diff_compares_a_schema_with_a_revision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = _write(tmp_path, ACME)
    assert main(["--schema", str(SCHEMA), "diff", NEWEST, str(schema), "--extends", NEWEST]) == 0
    output = capsys.readouterr().out
    assert "+ acme/search: client request, SearchRequestParams -> SearchResult" in output
    assert "+ Tool.owner: string, optional" in output


@pytest.mark.long
def test_a_subset_of_revisions_can_be_compiled(tmp_path: Path) -> None:
    arguments = ["--schema", str(SCHEMA), "--output", str(tmp_path)]
    chosen = ["--only", LEGACY]
    assert main([*arguments, "generate", *chosen]) == 0
    assert main([*arguments, "check", *chosen]) == 0
    assert sorted(path.name for path in (tmp_path / "mcpspec").glob("v*")) == ["v2025_11_25"]
    python(tmp_path, f"import mcpspec; assert mcpspec.VERSIONS == {(LEGACY,)!r}")
    assert main([*arguments, "generate", "--only", "1999-01-01"]) == 2
    assert main([*arguments, "generate", "--only", "ext/tasks"]) == 2


# Any document


@each("text", ['ends with "', '"""', '"' * 7, "\\", "\\N{DASH}", "\0", "\u2028", "a\r\n\n  b", "{{ x }}"])
def test_no_text_breaks_a_docstring(text: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f'class A:\n    """{docstring(text)}"""\n', namespace)  # noqa: S102  # the text under test
    assert namespace["A"].__doc__.split() == text.split() or namespace["A"].__doc__ == text


@each("extends", [None, NEWEST])
@each("seed", range(40))
def test_any_definitions_compile_or_are_rejected(seed: int, extends: str | None, tmp_path: Path) -> None:
    """Raise nothing but `SchemaError`, whose file is that of the schema."""
    definitions = random_definitions(Random(seed))
    try:
        load_own(SCHEMA, [_write(tmp_path, definitions)], extends)
    except SchemaError as error:
        assert error.file == str(tmp_path / "acme.json")  # noqa: PT017  # some compile


@pytest.mark.long
def test_packages_of_any_definitions_import_and_type_check(tmp_path: Path) -> None:
    """Compile hundreds of random schemas, import the packages, and check them with both type checkers."""
    names: list[str] = []
    files: dict[str, str] = {}
    for seed in range(600):
        try:
            interface = load_own(SCHEMA, [_write(tmp_path, random_definitions(Random(1000 + seed)))], None).interface
        except SchemaError:
            continue
        names.append(f"p{seed}")
        modules = render.modules(interface, [*BACKENDS.values()], {}, "")
        files |= {f"p{seed}/{name}.py": text for name, text in modules.items()}
    for path, text in format_files(files).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert len(names) > 60
    python(tmp_path, f"import importlib\nfor n in {names}:\n for m in importlib.import_module(n).__all__:\n  "
           "importlib.import_module(f'{n}.{m}')")  # fmt: skip
    write_json(tmp_path / "pyrightconfig.json", {"typeCheckingMode": "strict", "include": names})
    for checker in (
        ["pyright", "-p", ".", "--pythonpath", sys.executable],
        ["mypy", "--strict", *(part for name in names for part in ("-p", name))],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *checker], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:]
