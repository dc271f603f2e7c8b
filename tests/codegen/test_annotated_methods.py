"""Methods that annotations of parameters and results name, as the messages that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen.annotated_methods import add_annotated_messages
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.packages import load_own
from tests.cases import each
from tests.codegen.helpers import NEWEST, SCHEMA, Schema, write_json
from tests.docs.keywords import compiled_package

_TEXT = {"type": "string"}


def _object(method: str | None = None, side: str | None = None, /, **properties: Any) -> Schema:
    annotations = {"x-method": method, "x-side": side}
    made = {"type": "object", "properties": properties, "required": [*properties]}
    return made | {key: value for key, value in annotations.items() if value is not None}


_EDITOR = {
    "OpenParams": {**_object("file/open", "server", path=_TEXT), "description": "Opens a file."},
    "OpenResult": _object("file/open", "server", text=_TEXT),
    "CloseRequest": {**_object("file/close", "agent"), "properties": {"path": _TEXT}},
    "CloseResponse": _object("file/close", "agent"),
    "SavedNotification": _object("file/saved", "client", path=_TEXT),
    "CancelParams": _object("$/cancel", "both", id={"type": "integer"}),
    "MergePullRequestParams": _object("merge_pull_request", "server", id={"type": "integer"}),
    "MergePullRequestResult": _object("merge_pull_request", "server"),
    "ShutdownResult": _object("shutdown", "server"),
}


def _methods(definitions: Schema, folder: Path, extends: str | None = None) -> dict[str, tuple[Any, ...]]:
    schema = write_json(folder / "editor.json", {"$defs": definitions})
    own = load_own(SCHEMA, [schema], extends)
    assert not [note for note in own.notes if "x-" in note]
    return {
        method.name: (method.sender, method.kind, method.message, method.params, method.result, method.handler)
        for method in own.interface.methods
        if method.params in definitions or method.result in definitions
    }


def test_annotations_give_methods_with_messages_and_unions(tmp_path: Path) -> None:
    assert _methods(_EDITOR, tmp_path) == {
        "$/cancel": ("both", "notification", "CancelNotification", "CancelParams", None, "cancel"),
        "file/close": ("client", "request", "CloseRequestMessage", "CloseRequest", "CloseResponse", "close"),
        "file/open": ("client", "request", "OpenRequest", "OpenParams", "OpenResult", "open"),
        "file/saved": (
            "server", "notification", "SavedNotificationMessage", "SavedNotification", None, "saved",
        ),
        "merge_pull_request": (
            "client", "request", "MergePullRequestRequest", "MergePullRequestParams", "MergePullRequestResult",
            "merge_pull_request",
        ),
        "shutdown": ("client", "request", "ShutdownRequest", None, "ShutdownResult", "shutdown"),
    }  # fmt: skip


def test_the_messages_are_typed_like_those_of_a_schema() -> None:
    with compiled_package(_EDITOR) as types:
        for library, module in types.items():
            union = module.ClientRequest
            line = b'{"jsonrpc": "2.0", "id": 1, "method": "file/open", "params": {"path": "a"}}'
            assert type(module.decode(line, union)) is module.OpenRequest, library
            assert module.decode(b'{"jsonrpc": "2.0", "id": 1, "method": "file/close"}', union).id == 1, library
            for wrong in (line.replace(b'"path"', b'"p"'), line.replace(b"open", b"saved"), line[:-19] + b"}"):
                with pytest.raises(module.DecodeError):
                    module.decode(wrong, union)
        handlers = import_module("measured_types.handlers")
        assert handlers.ServerFile.open.__doc__ == "`file/open`: Opens a file."


def test_annotations_extend_the_unions_of_a_revision_and_of_the_schema(tmp_path: Path) -> None:
    found = _methods({name: _EDITOR[name] for name in ("OpenParams", "OpenResult")}, tmp_path, NEWEST)
    assert found["file/open"][:3] == ("client", "request", "OpenRequest")
    known = {
        "jsonrpc": {"const": "2.0"}, "id": {"type": "integer"}, "method": {"const": "ping"}, "params": _object(a=_TEXT),
    }  # fmt: skip
    ping = {"PingRequest": _object(None, None, **known), "PingResult": _object()}
    named = add_annotated_messages({**ping, **_EDITOR, "ClientRequest": {"$ref": "#/$defs/PingRequest"}}, (), "")
    listed = [member["$ref"] for member in named["ClientRequest"]["anyOf"]]
    assert listed[:2] == ["#/$defs/PingRequest", "#/$defs/OpenRequest"]
    other = add_annotated_messages({**_EDITOR, "ClientRequest": _object(method=_TEXT)}, (), "")
    assert len(other["ClientRequestMessage"]["anyOf"]) == 4


def test_a_message_may_have_the_annotations_itself() -> None:
    message = _object("ping", "server", method={"const": "ping"}, params=_object())
    made = add_annotated_messages({"PingRequest": message, "PingResponse": _object("ping", "server")}, (), "")
    assert made["ClientRequest"] == {"anyOf": [{"$ref": "#/$defs/PingRequest"}]}
    assert made["PingResultResponse"]["properties"]["result"] == {"$ref": "#/$defs/PingResponse"}
    assert made.keys() == {"PingRequest", "PingResponse", "ClientRequest", "PingResultResponse"}


_WRONG: Mapping[str, tuple[Schema, str, str]] = {
    "no side": ({"A": _object("a")}, "#/$defs/A", "`x-side` must be the side"),
    "an unknown side": ({"A": _object("a", "proxy")}, "#/$defs/A/x-side", '"client", "server", "agent"'),
    "no text": ({"A": {**_object("a", "server"), "x-method": 1}}, "#/$defs/A/x-method", "the name of a method"),
    "two types of parameters": (
        {"A": _object("a", "server"), "B": _object("a", "server")}, "#/$defs/B/x-method", "`A` has the parameters",
    ),
    "two sides": (
        {"A": _object("a", "server"), "AResult": _object("a", "client")}, "#/$defs/AResult/x-side", "of `A`",
    ),
    "another constant": (
        {"A": _object("a", "server", method={"const": "b"})}, "#/$defs/A/x-method", "constant `method`",
    ),
    "a response that is there": (
        {"AResult": _object("a", "server"), "AResultResponse": _object()}, "#/$defs/AResult", "`AResultResponse`",
    ),
}  # fmt: skip


@each("name", _WRONG)
def test_annotations_that_say_nothing_or_too_much_are_refused_by_name(name: str, tmp_path: Path) -> None:
    definitions, pointer, reason = _WRONG[name]
    with pytest.raises(SchemaError, match=reason) as caught:
        load_own(SCHEMA, [write_json(tmp_path / "editor.json", {"$defs": definitions})], None)
    assert f"{caught.value}".partition(": ")[0].endswith(f"editor.json{pointer}")
