"""Satellites use nothing but public names of the core, and both nothing but those of the schemas beneath them."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.architecture.public import PUBLIC
from tests.architecture.public import SCHEMAS as SCHEMAS_PUBLIC
from tests.cases import each
from tests.docs.markdown import tables
from tests.paths import ROOT
from tools.dist import SATELLITES, SCHEMAS, TYPEDMCP, Distribution

PACKAGES = [satellite.package for satellite in SATELLITES]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = ("typedmcp", "mcpspec")
IMPORTED = (*PUBLIC, *SCHEMAS_PUBLIC)


def find_faults(source: str, package: str) -> Iterator[str]:
    """Yield what a module of a satellite uses that is not public."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from (each.name for each in node.names if not _is_public(each.name, None, package))
            case ast.ImportFrom(module=str(module)):
                names = (each.name for each in node.names if not _is_public(module, each.name, package))
                yield from (f"{module}.{name}" for name in names)
            case ast.Attribute(attr="_asdict" | "_exit"):
                pass  # of named tuples, and of `os`
            case ast.Attribute(value=value, attr=name) if re.match(r"_[^_]", name):
                if not (isinstance(value, ast.Name) and value.id in ("self", "cls")):
                    yield ast.unparse(node)
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if re.match(r"_[^_]", name):
                    yield ast.unparse(node)
            case _:
                pass


def _is_public(module: str, name: str | None, package: str) -> bool:
    if module.partition(".")[0] == package or not re.match(rf"({'|'.join(OURS)})(\b|_)", module):
        return True
    if module.startswith("mcpspec"):
        return not re.match(r"mcpspec\.support\b", module)
    if f"{module}.{name}" in IMPORTED:  # a module
        return True
    if module not in IMPORTED or name is None:
        return module in IMPORTED
    found = import_module(module)
    names: Iterable[str] = getattr(found, "__all__", vars(found))
    return name in names and not re.match(r"_[^_]", name)


@each("package", PACKAGES, ids=[package.name for package in PACKAGES])
def test_a_satellite_uses_public_names_alone(package: Path) -> None:
    faults = {
        path.name: found
        for path in package.rglob("*.py")
        if (found := [*find_faults(path.read_text(encoding="utf-8"), package.name)])
    }
    assert faults == {}


def test_the_core_uses_public_names_of_the_schemas_alone() -> None:
    sources = [path.read_text(encoding="utf-8") for path in TYPEDMCP.package.rglob("*.py")]
    faults = [fault for source in sources for fault in find_faults(source, TYPEDMCP.package.name)]
    assert [fault for fault in faults if fault.startswith(SCHEMAS.package.name)] == []


@each(
    "source, fault",
    [
        ("from typedmcp.server.engine import Engine", "typedmcp.server.engine.Engine"),
        ("from typedmcp.errors import _rebuild", "typedmcp.errors._rebuild"),
        ("import typedmcp.protocol.codec", "typedmcp.protocol.codec"),
        ("from typedmcp_other.inner import name", "typedmcp_other.inner.name"),
        ("from typedmcp_schemas.records import fields_of", "typedmcp_schemas.records.fields_of"),
        ("from mcpspec.support.converters import with_meta", "mcpspec.support.converters.with_meta"),
        ("client._session", "client._session"),
        ("getattr(client, '_session', None)", "getattr(client, '_session', None)"),
    ],
)
def test_the_use_of_a_private_name_is_found(source: str, fault: str) -> None:
    assert [*find_faults(source, "typedmcp_otel")] == [fault]


@each("satellite", SATELLITES, ids=[satellite.name for satellite in SATELLITES])
def test_a_satellite_has_the_version_of_the_core_and_an_extra(satellite: Any) -> None:
    project = tomllib.loads((satellite.project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == typedmcp.__version__
    assert f"typedmcp=={typedmcp.__version__}" in project["dependencies"]
    extra = PROJECT["project"]["optional-dependencies"][satellite.name.removeprefix("typedmcp-")]
    assert f"{satellite.name}=={typedmcp.__version__}" in extra


def test_the_schemas_have_the_version_and_the_extras_of_the_core() -> None:
    project = tomllib.loads((SCHEMAS.project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == typedmcp.__version__
    assert f"{SCHEMAS.name}=={typedmcp.__version__}" in PROJECT["project"]["dependencies"]
    for extra in project["optional-dependencies"]:
        assert f"{SCHEMAS.name}[{extra}]" in PROJECT["project"]["optional-dependencies"][extra]


@each("satellite", [SCHEMAS, *SATELLITES], ids=[each.name for each in (SCHEMAS, *SATELLITES)])
def test_a_distribution_of_the_runtime_is_checked_like_the_core(satellite: Distribution) -> None:
    tool = PROJECT["tool"]
    folder, name = satellite.project.relative_to(ROOT).as_posix(), satellite.package.name
    assert folder in tool["ruff"]["src"]
    assert folder in tool["mypy"]["mypy_path"]
    assert folder in tool["pyright"]["extraPaths"]
    assert name in tool["importlinter"]["root_packages"]
    assert tool["uv"]["sources"][satellite.name] == {"workspace": True}
    assert folder in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert (ROOT / "tests" / name).is_dir()


def test_the_reference_lists_every_public_name_of_satellites_and_schemas_once() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    named = re.findall(r"^::: (typedmcp_\S+)$", text, re.MULTILINE)
    modules = [SCHEMAS.package.name, *(module for module in PUBLIC if module.startswith("typedmcp_"))]
    public = [f"{module}.{name}" for module in modules for name in import_module(module).__all__]
    assert sorted(named) == sorted(public)


def test_the_page_on_building_lists_the_public_modules() -> None:
    page = ROOT / "docs" / "building-on-typedmcp.md"
    (rows,) = (rows for _, (head, *rows) in tables(page) if head[0] == "module")
    listed = {name for row in rows for name in re.findall(r"`(typedmcp[\w.]*)`", row[0])}
    assert listed == {name for name in PUBLIC if not name.startswith("typedmcp_")}


def test_the_page_on_schemas_lists_the_modules_that_others_may_import() -> None:
    (rows,) = (rows for _, (head, *rows) in tables(ROOT / "docs" / "schemas.md") if head[0] == "module")
    assert [name for row in rows for name in re.findall(r"`(typedmcp[\w.]*)`", row[0])] == [*SCHEMAS_PUBLIC]


@each(
    "place, extra",
    [
        ("typedmcp.JwtVerifier", "auth"),
        ("typedmcp.OAuth", "auth"),
        ("typedmcp.auth.OAuth", "auth"),
        ("typedmcp.Recorder", "cli"),
        ("typedmcp.replay.replay_server", "cli"),
        ("typedmcp.apps", "extensions"),
        ("typedmcp.tasks", "extensions"),
        ("typedmcp.ServerTasks", "extensions"),
        ("typedmcp.stores.TaskStore", "extensions"),
        ("typedmcp.HttpProtocol", "http"),
        ("typedmcp.Telemetry", "otel"),
        ("typedmcp.instrument", "otel"),
        ("typedmcp.telemetry", "otel"),
        ("typedmcp.ClientPool", "gateway"),
        ("typedmcp.Gateway", "gateway"),
        ("typedmcp.gateway.NameRules", "gateway"),
        ("typedmcp.tools_for", "hosts"),
        ("typedmcp.connect_all", "hosts"),
        ("typedmcp.ServerEntry", "hosts"),
        ("typedmcp.sync.connect_all", "hosts"),
        ("typedmcp.RedisStore", "redis"),
        ("typedmcp.RedisTaskStore", "redis"),
        ("typedmcp.server.store.redis", "redis"),
    ],
)
def test_a_name_of_a_satellite_is_found_or_says_how_to_install_it(place: str, extra: str) -> None:
    module, _, name = place.rpartition(".")
    found = _import(module, name)
    origin = found if inspect.ismodule(found) else inspect.getmodule(found)
    assert origin is not None
    assert origin.__name__.startswith(f"typedmcp_{extra}")
    hidden = {place, module} - {"typedmcp", "typedmcp.auth", "typedmcp.stores", "typedmcp.sync"}
    with pytest.MonkeyPatch.context() as patch:
        for loaded in [key for key in sys.modules if key.startswith(f"typedmcp_{extra}") or key in hidden]:
            patch.delitem(sys.modules, loaded)
        patch.setitem(sys.modules, f"typedmcp_{extra}", None)
        patch.delitem(vars(typedmcp), place.partition(".")[2], raising=False)
        with pytest.raises(ImportError, match=rf"pip install 'typedmcp\[{extra}\]'.* typedmcp_{extra}"):
            _import(module, name)


def _import(module: str, name: str) -> Any:
    """Import a name that type checkers do not know, as `from MODULE import NAME` does."""
    scope: dict[str, Any] = {}
    exec(f"from {module} import {name}", scope)  # noqa: S102
    return scope[name]


def test_the_core_loads_no_satellite() -> None:
    code = "import sys, typedmcp; [getattr(typedmcp, name) for name in typedmcp.__all__]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split() if name.startswith("typedmcp_")}
    assert loaded == {SCHEMAS.package.name}
