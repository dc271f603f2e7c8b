"""Names and docstrings of the hand-written code follow the rules of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict

from tests.architecture.sources import classes, modules
from tests.cases import each
from tests.paths import ROOT
from tools.code_figures import begins_with_relative_clause, docstrings

_FACE = "the templates name the bases of exact and of plain types alike"

_OFFICIAL = "names of the official package, which `mcpspec.compat` keeps"

_FIRST = "names of mcp 1.x, which `typedmcp_mcp1` keeps"

SHARED_NAMES: dict[str, str] = {
    **dict.fromkeys(("ClosedModel", "ConstantStruct", "Model", "OpenObject", "Struct", "_Base"), _FACE),
    **dict.fromkeys(("Notification", "Request"), _OFFICIAL),
    **dict.fromkeys(
        (
            "Audio",
            "ClientSession",
            "Context",
            "Image",
            "Message",
            "Prompt",
            "Resource",
            "Server",
            "StdioServerParameters",
            "TokenStorage",
            "Tool",
            "ToolError",
        ),
        _FIRST,
    ),
}
"""Class names that several modules may define, each with the reason."""


def test_a_class_name_is_defined_in_one_module_only() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path, node in classes():
        places[node.name].add(path)
    shared = {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in SHARED_NAMES} == {}
    assert shared.keys() >= SHARED_NAMES.keys(), "delete the exceptions that no class needs"


CONTROL_FLOW = {
    "ClientDisconnect": "ends the handling of a request whose client has left; Starlette has the same name",
    "CommandExit": "ends a command with a status, which may be that of success",
    "EndOfInput": "the user ends a form with Ctrl-D",
    "HTTPException": "a response that is sent in place of the usual one; Starlette has the same name",
    "InputRequested": "ends an attempt of a handler, which continues when the client has answered",
}
"""Exceptions that report no error, each with the reason."""


def _exceptions() -> dict[str, str]:
    """Find all exception classes: name → place."""
    names = {
        name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    places: dict[str, str] = {}
    while True:
        found = {
            node.name: f"{path}:{node.lineno}"
            for path, node in classes()
            if any(ast.unparse(base).rpartition(".")[2] in names for base in node.bases)
        }
        if found == places:
            return places
        places = found
        names |= found.keys()


def test_the_name_of_an_exception_ends_in_error() -> None:
    others = {name: place for name, place in _exceptions().items() if not name.endswith("Error")}
    assert {name: place for name, place in others.items() if name not in CONTROL_FLOW} == {}
    assert others.keys() >= CONTROL_FLOW.keys(), "delete the entries that name no exception"


def test_no_docstring_begins_with_a_relative_clause() -> None:
    """A docstring begins with a verb, a noun or an article: its first words say what the thing does or is."""
    clauses = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, module in modules().items()
        for line, text in docstrings(module)
        if begins_with_relative_clause(text)
    ]
    assert clauses == []


ROOT_MODULES = {
    "__init__",
    "__main__",
    "auth",
    "building",
    "errors",
    "extensions",
    "fetch",
    "frames",
    "limits",
    "observers",
    "satellites",
    "services",
    "stores",
    "sync",
    "types",
}
MOVED = {"apps", "gateway", "replay", "tasks", "telemetry"}
"""Other names for modules of satellites."""


def test_only_few_modules_stand_at_the_root_of_the_runtime() -> None:
    assert {path.stem for path in (ROOT / "runtime" / "typedmcp").glob("*.py")} == ROOT_MODULES | MOVED


@each("room", ["app", "client", "protocol", "revisions", "server", "transports"])
def test_a_room_says_in_its_docstring_what_it_holds(room: str) -> None:
    tree = ast.parse((ROOT / "runtime" / "typedmcp" / room / "__init__.py").read_bytes())
    assert ast.get_docstring(tree)
