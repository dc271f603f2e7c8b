"""A later revision, derived from the newest one, and a runtime whose dialect it is.

The later revision has a new method, a new type of content, a new notification and renamed members. `EDITS` are the
changes to the runtime that it needs, in the order of `docs/bumping.md`: the dialect's line, then what the new features
need.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tests.codegen.helpers import NEWEST, codegen, newest_schema, read_json, write_json
from tests.paths import ROOT

__all__ = ["DIALECT", "EDITS", "FEATURES", "LATER", "RULES", "Edit", "Rule", "build", "edit", "environment_of"]

LATER = "2031-05-01"

Json = dict[str, Any]
Rule: TypeAlias = dict[str, dict[str, str]]
"""Entries of `conversions` in the supplement, by table."""


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _object(required: Json, **optional: Json) -> Json:
    return {"type": "object", "properties": {**required, **optional}, "required": [*required]}


def _message(method: str, **more: Json) -> Json:
    constants = {"jsonrpc": {"const": "2.0", "type": "string"}, "method": {"const": method, "type": "string"}}
    return _object({**constants, **more})


_STRING: Json = {"type": "string"}
_BOOLEAN: Json = {"type": "boolean"}

DEFINITIONS: Json = {
    "RecipeContent": _object(
        {"type": {"const": "recipe", "type": "string"}, "title": _STRING, "steps": {"type": "array", "items": _STRING}}
    ),
    "GetRecipeRequestParams": _object({"_meta": _ref("RequestMetaObject"), "title": _STRING}),
    "GetRecipeRequest": _message("recipes/get", id=_ref("RequestId"), params=_ref("GetRecipeRequestParams")),
    "GetRecipeResult": _object(
        {"resultType": _STRING, "recipe": _ref("RecipeContent")}, _meta=_ref("ResultMetaObject")
    ),
    "GetRecipeResultResponse": _object(
        {"jsonrpc": {"const": "2.0", "type": "string"}, "id": _ref("RequestId"), "result": _ref("GetRecipeResult")}
    ),
    "RecipeListChangedNotification": {
        **_message("notifications/recipes/list_changed"),
        "properties": {
            **_message("notifications/recipes/list_changed")["properties"], "params": _ref("NotificationParams"),
        },
    },
}  # fmt: skip
"""New definitions."""

UNIONS = {
    "ContentBlock": "RecipeContent",
    "ClientRequest": "GetRecipeRequest",
    "ServerResult": "GetRecipeResult",
    "ServerNotification": "RecipeListChangedNotification",
}
"""Unions, with their new members."""

MEMBERS: dict[str, Json] = {
    "SubscriptionFilter": {"recipesListChanged": _BOOLEAN},
    "ServerCapabilities": {"recipes": {"type": "object", "properties": {"listChanged": _BOOLEAN}}},
}
"""Definitions, with their new optional members."""

RENAMED = {"Annotations": ("lastModified", "modifiedAt"), "ToolResultContent": ("toolUseId", "callId")}
"""Definitions, with an old name of a member and its new name: an optional member, and a required one."""


def derived_schema() -> Json:
    """Return the newest schema, with upstream's errors, and with the changes above."""
    schema = newest_schema()
    known: Json = schema["$defs"]
    known.update(DEFINITIONS)
    for name, member in UNIONS.items():
        known[name]["anyOf"].append(_ref(member))
    for name, members in MEMBERS.items():
        known[name]["properties"].update(members)
    for name, (old, new) in RENAMED.items():
        node = known[name]
        node["properties"] = {new if key == old else key: value for key, value in node["properties"].items()}
        node["required"] = [new if key == old else key for key in node.get("required", [])]
    return schema


class Edit(NamedTuple):
    """A change to some places of a file. Its path is relative to the package `typedmcp`."""

    file: str
    old: str
    new: str
    places: int = 1


def _package(version: str) -> str:
    return f"v{version.replace('-', '_')}"


DIALECT = tuple(
    Edit(f"dialect/{path.name}", _package(NEWEST), _package(LATER), places=2 if path.name == "structs.py" else 1)
    for path in sorted((ROOT / "runtime" / "typedmcp" / "dialect").glob("*.py"))
)
MEMBERS_RENAMED = {"Annotations.modified_at": "last_modified", "ToolResultContent.call_id": "tool_use_id"}
CONTENT_REPLACED = {"RecipeContent": "[recipe {0.title}]"}
RULES = ({"renamed_members": MEMBERS_RENAMED}, {"replaced_content": CONTENT_REPLACED})
"""What `conversions` in `schema/supplement.json` needs for the later revision."""
NAMES = Edit("protocol/input_checks.py", "block.tool_use_id for", "block.call_id for")
"""The member of the dialect that hand-written code reads and the later revision renames."""
FEATURES = (
    Edit("protocol/notifications.py", 'Literal["tools", ', 'Literal["recipes", "tools", '),
    Edit(
        "protocol/notifications.py",
        "    methods.NOTIFICATIONS_TOOLS_LIST_CHANGED",
        '    methods.NOTIFICATIONS_RECIPES_LIST_CHANGED.name: "recipes",\n    methods.NOTIFICATIONS_TOOLS_LIST_CHANGED',
    ),
    Edit(
        "server/changes.py",
        "    def tools_changed(",
        '    def recipes_changed(self) -> None:\n        """Publish that the list of recipes has changed."""\n'
        '        self._publish("recipes", None)\n\n    def tools_changed(',
    ),
    Edit(
        "server/handlers.py",
        '    "tools": {"listChanged"',
        '    "recipes": {"listChanged": True},\n    "tools": {"listChanged"',
    ),
    Edit("revisions/capabilities.py", '    "tools": "tools",\n', '    "recipes": "recipes",\n    "tools": "tools",\n'),
    Edit("client/client.py", "        tools: bool = False,\n", "        tools: bool = False, recipes: bool = False,\n"),
    Edit("client/client.py", '{"tools": tools, ', '{"tools": tools, "recipes": recipes, '),
)  # fmt: skip
EDITS = (*DIALECT, NAMES, *FEATURES)
"""Everything in the runtime that moving the dialect to the later revision takes, beside `RULES`."""


def build(folder: Path, edits: Iterable[Edit] = EDITS, rules: Iterable[Rule] = RULES) -> Path:
    """Bump the schema to the later revision, with rules for older ones, and edit a copy of the runtime."""
    schema = shutil.copytree(ROOT / "schema", folder / "schema")
    supplement = read_json(schema / "supplement.json")
    for rule in rules:
        for table, entries in rule.items():
            supplement["conversions"][table] |= entries
    write_json(schema / "supplement.json", supplement)
    upstream = write_json(folder / "schema.json", derived_schema())
    assert codegen(schema, folder / "generated", "bump", LATER, str(upstream)) == 0
    return edit(folder, edits)


def edit(folder: Path, edits: Iterable[Edit]) -> Path:
    """Copy the runtime into a folder that has types, and edit it there."""
    runtime = folder / "runtime"
    shutil.rmtree(runtime, ignore_errors=True)
    shutil.copytree(ROOT / "runtime", runtime, ignore=shutil.ignore_patterns("__pycache__"))
    for change in edits:
        path = runtime / "typedmcp" / change.file
        text = path.read_text(encoding="utf-8")
        assert text.count(change.old) == change.places, (change, text.count(change.old))
        path.write_text(text.replace(change.old, change.new), encoding="utf-8")
    return folder


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of a process that imports the types and the runtime of a folder."""
    path = os.pathsep.join(map(str, (folder / "generated", folder / "runtime", ROOT)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
