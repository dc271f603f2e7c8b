"""The names that `import typedmcp` offers, and what the import loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mcpspec
import typedmcp
from tests.cases import each
from typedmcp.revisions.features import LEGACY, is_modern, methods_of


@each("name", typedmcp.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(typedmcp, name) is getattr(typedmcp, name)
    assert name in dir(typedmcp)


def test_type_checkers_and_the_lazy_import_see_the_same_names_in_the_same_modules() -> None:
    tree = ast.parse(Path(typedmcp.__file__).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is None
    }
    lazy = {name: f"typedmcp.{module}" for name, module in typedmcp._MODULE_OF.items()}  # pyright: ignore[reportPrivateUsage]
    assert imports == {**lazy, "sync": "typedmcp", "types": "typedmcp"}
    assert sorted(typedmcp.__all__) == sorted([*imports, "__version__"])


LAZY = [
    "typedmcp.building",
    "typedmcp.extensions",
    "typedmcp_cli",
    "typedmcp_extensions.apps",
    "typedmcp_extensions.tasks",
    "typedmcp_schemas",
]
"""The modules that `lazy_names` serves."""


@each("name", LAZY)
def test_type_checkers_and_lazy_names_find_the_same_things(name: str) -> None:
    module = import_module(name)
    (checked,) = (node for node in ast.parse(Path(str(module.__file__)).read_bytes()).body if isinstance(node, ast.If))
    imports = {
        alias.name: str(node.module)
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(module.__all__) == sorted({*imports, *({"lazy_names"} & {*module.__all__})})
    assert set(imports) <= set(dir(module))
    for each_name, place in imports.items():
        assert getattr(module, each_name) is getattr(import_module(place), each_name)
    with pytest.raises(AttributeError, match=rf"module '{name}' has no attribute 'Servr'"):
        _ = module.Servr


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'typedmcp' has no attribute 'Servr'"):
        getattr(typedmcp, "Servr")  # noqa: B009  # hidden from type checkers


def _modules_after(code: str) -> list[str]:
    """Run code in a new interpreter, and return the names of the modules that are loaded then."""
    code = f"import sys, typedmcp; {code}; print(*sys.modules)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_the_package_loads_neither_types_nor_an_event_loop() -> None:
    assert not {"asyncio", "msgspec", "pydantic", "mcpspec.v2026_07_28.exact.structs"} & {*_modules_after("pass")}


def test_serving_structs_does_not_load_pydantic() -> None:
    assert "pydantic" not in _modules_after("typedmcp.serve")


def test_the_legacy_revisions_are_those_with_a_handshake() -> None:
    with_handshake = [version for version in mcpspec.VERSIONS if "initialize" in methods_of(version).METHODS]
    assert sorted(LEGACY) == with_handshake
    assert [version for version in mcpspec.VERSIONS if not is_modern(version)] == with_handshake


def test_a_server_loads_the_types_of_an_older_revision_when_a_client_first_uses_it() -> None:
    handler = "type('Handler', (), {'call_tool': lambda self, params, ctx: None})()"
    loaded = _modules_after(f"typedmcp.ServerConfig({handler})")
    assert [name for name in loaded if name.endswith(".structs") and "mcpspec.v" in name] == [
        "mcpspec.v2026_07_28.structs",
        "mcpspec.v2026_07_28.exact.structs",
    ]
