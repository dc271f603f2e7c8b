"""Packages load only the modules that are used, and contain all promised names."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

import mcpspec
from mcpspec import features
from tests.cases import each

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    **{version: f"mcpspec.v{version.replace('-', '_')}" for version in mcpspec.VERSIONS},
    **({"draft": "mcpspec.draft"} if features.DRAFT else {}),
    "ext/apps": "mcpspec.ext.apps",
    "ext/tasks": "mcpspec.ext.tasks",
}
STRUCT_MODULES = ("structs", "methods", "handlers")
MODEL_MODULES = ("models", "models_methods", "models_handlers")

RUN_EACH = """
import os, sys
before, *codes = sys.argv[1:]
exec(before)
for code in codes:
    if os.fork() == 0:
        exec(code, {"sys": sys})
        print(*sys.modules, flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"the code that failed: {code}")
"""


def loaded_after_each(*codes: str, before: str = "") -> list[set[str]]:
    """Return the modules that a fresh interpreter has loaded after running some code, for each code apart."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_EACH, f"sys.path[:0] = [{str(ROOT / 'generated')!r}]\n{before}", *codes],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


def loaded_after(code: str) -> set[str]:
    (loaded,) = loaded_after_each(code)
    return loaded


def of_package(loaded: set[str], *names: str) -> set[str]:
    return {name for name in loaded if any(name == part or name.startswith(f"{part}.") for part in names)}


def last_parts(loaded: set[str], package: str) -> set[str]:
    return {name.removeprefix(f"{package}.") for name in loaded if name.startswith(f"{package}.")}


# Loaded modules


def test_the_package_itself_loads_no_library_and_no_revision() -> None:
    for loaded in loaded_after_each(
        "import mcpspec",
        "import mcpspec; mcpspec.VERSIONS; mcpspec.LATEST",
        "import mcpspec\ntry: mcpspec.revision('2023-01-01')\nexcept LookupError: pass",
    ):
        assert of_package(loaded, "msgspec", "pydantic", "pydantic_core") == set()
        assert of_package(loaded, "mcpspec.ext", *PACKAGES.values()) == set()


def test_a_revision_itself_loads_no_library_and_no_types() -> None:
    found = loaded_after_each(*(f"import {package}" for package in PACKAGES.values()))
    for package, loaded in zip(PACKAGES.values(), found, strict=True):
        assert of_package(loaded, "msgspec", "pydantic", "pydantic_core") == set()
        assert last_parts(loaded, package) == set()


def test_a_chain_of_attributes_loads_only_the_modules_that_it_names() -> None:
    loaded = loaded_after("import mcpspec; mcpspec.v2026_07_28.exact.structs.Tool")
    assert of_package(loaded, *PACKAGES.values()) == {
        "mcpspec.v2026_07_28", "mcpspec.v2026_07_28.exact", "mcpspec.v2026_07_28.exact.structs"
    }  # fmt: skip


def test_an_attribute_of_a_revision_is_its_module() -> None:
    loaded = loaded_after("from mcpspec import v2025_11_25; v2025_11_25.models.Tool; v2025_11_25.methods.TOOLS_CALL")
    assert last_parts(loaded, "mcpspec.v2025_11_25") == {"models", "methods"}


def test_modules_on_models_load_no_structs() -> None:
    modules = [*product(PACKAGES.values(), MODEL_MODULES)]
    found = loaded_after_each(
        *(f"import {package}.{module}" for package, module in modules), before="import mcpspec.support.models"
    )
    for (package, module), loaded in zip(modules, found, strict=True):
        assert {module} <= last_parts(loaded, package) <= {module, "models"}
        assert "mcpspec.support.structs" not in loaded


def test_modules_on_structs_do_not_load_pydantic() -> None:
    modules = [*product(PACKAGES.values(), STRUCT_MODULES)]
    found = loaded_after_each(
        *(f"import {package}.{module}" for package, module in modules), before="import mcpspec.support.structs"
    )
    for (package, module), loaded in zip(modules, found, strict=True):
        assert {module} <= last_parts(loaded, package) <= {module, "structs"}
        assert of_package(loaded, "pydantic", "pydantic_core", "mcpspec.support.models") == set()


def test_structs_decode_and_report_errors_without_pydantic() -> None:
    loaded = loaded_after(
        "from mcpspec.v2026_07_28.exact import structs as s\n"
        "s.decode(s.encode(s.TextContent(text='x')), s.ContentBlock)\n"
        "try: s.decode(b'{}', s.Tool)\nexcept s.DecodeError: pass"
    )
    assert of_package(loaded, "pydantic", "pydantic_core") == set()


def test_models_without_pydantic_name_the_extra() -> None:
    loaded_after(
        "sys.modules['pydantic'] = None\n"
        "try: from mcpspec.v2026_07_28.exact import models\n"
        "except ModuleNotFoundError as error: found = str(error)\n"
        "assert \"models needs Pydantic: pip install 'mcpspec[pydantic]'\" in found"
    )


# Revisions by version


def test_versions_are_all_revisions_oldest_first() -> None:
    pinned = json.loads((ROOT / "schema" / "PINNED.json").read_bytes())
    assert tuple(sorted(version for version in pinned if version[0].isdigit())) == mcpspec.VERSIONS
    assert mcpspec.VERSIONS[-1] == mcpspec.LATEST
    assert tuple(features.FEATURES) == mcpspec.VERSIONS


@each("version", mcpspec.VERSIONS)
def test_a_revision_is_found_by_its_version(version: str) -> None:
    found = mcpspec.revision(version)
    assert isinstance(found, ModuleType)
    assert found is import_module(PACKAGES[version])
    assert found is getattr(mcpspec, f"v{version.replace('-', '_')}")
    assert version == found.methods.PROTOCOL_VERSION


@each("version", ["2023-01-01", "", "v2024_11_05", "2024_11_05", "ext/tasks", "support"])
def test_an_unknown_version_is_an_error_that_lists_the_known_ones(version: str) -> None:
    with pytest.raises(LookupError) as caught:
        mcpspec.revision(version)
    assert repr(version) in str(caught.value)
    assert all(known in str(caught.value) for known in mcpspec.VERSIONS)


@each("package", ["mcpspec", *PACKAGES.values()])
@each("name", ["v2023_01_01", "Tool", "__wrapped__"])
def test_an_unknown_attribute_is_an_error_that_names_it(package: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute '{name}'"):
        getattr(import_module(package), name)


def test_a_package_lists_its_modules_before_they_are_loaded() -> None:
    packages = {
        "mcpspec": {"v2024_11_05", "v2026_07_28", "ext", "compat", "features"},
        "mcpspec.ext": {"apps", "tasks"},
        "mcpspec.v2026_07_28": {"structs", "models", "methods", "handlers", "exact"},
    }
    codes = [f"import {name} as package; assert {listed} <= set(dir(package))" for name, listed in packages.items()]
    for (package, modules), loaded in zip(packages.items(), loaded_after_each(*codes), strict=True):
        assert not of_package(loaded, *(f"{package}.{module}" for module in modules))


def test_an_extension_is_reached_by_attributes() -> None:
    assert "mcpspec.ext.tasks.exact.structs" in loaded_after("import mcpspec; mcpspec.ext.tasks.exact.structs.Task")


def test_features_and_compat_are_reached_by_attributes() -> None:
    codes = [
        "import mcpspec; assert mcpspec.features.FEATURES[mcpspec.LATEST]",
        "import mcpspec; assert mcpspec.compat.names.MISSING and mcpspec.compat.sdk.install",
    ]
    features, compat = loaded_after_each(*codes)
    assert of_package(features, "msgspec", "pydantic", *PACKAGES.values()) == set()
    assert "mcpspec.compat.sdk" in compat


# Names in the modules

MODULES = [
    "mcpspec",
    *PACKAGES.values(),
    *(f"{package}.exact" for package in PACKAGES.values()),
    *(
        f"{package}.{module}"
        for package in PACKAGES.values()
        for module in (*STRUCT_MODULES, *MODEL_MODULES, "exact.structs", "exact.models")
    ),
]


@each("module", MODULES)
def test_every_public_name_exists_once(module: str) -> None:
    found = import_module(module)
    assert len(set(found.__all__)) == len(found.__all__)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


@each("module", MODULES)
def test_every_public_name_can_be_imported_with_a_star(module: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {module} import *", namespace)  # noqa: S102
    assert set(import_module(module).__all__) <= namespace.keys()


@each("version", PACKAGES)
def test_a_package_offers_its_modules(version: str) -> None:
    package = import_module(PACKAGES[version])
    assert sorted(package.__all__) == sorted((*STRUCT_MODULES, *MODEL_MODULES, "exact"))
    assert package.exact.__all__ == ["structs", "models"]
    for each_package in (package, package.exact):
        assert all(isinstance(getattr(each_package, name), ModuleType) for name in each_package.__all__)


@each("version", PACKAGES)
@each("backend", ["exact.structs", "exact.models", "structs", "models"])
def test_every_definition_of_the_schema_is_a_public_type(version: str, backend: str) -> None:
    schema = json.loads((ROOT / "schema" / f"{version}.json").read_text(encoding="utf-8"))
    definitions = schema.get("$defs") or schema["definitions"]
    types = import_module(f"{PACKAGES[version]}.{backend}")
    assert [name for name in definitions if name not in types.__all__ or not hasattr(types, name)] == []


@each("version", PACKAGES)
@each(
    "backend, absent",
    [
        ("exact.structs", ("UNSET", "UnsetType")),
        ("exact.models", ("MISSING",)),
        ("structs", ("NULL",)),
        ("models", ("NULL",)),
    ],
    ids=["exact.structs", "exact.models", "structs", "models"],
)
def test_a_module_of_types_has_its_functions_and_its_marker_of_absence(
    version: str, backend: str, absent: tuple[str, ...]
) -> None:
    types = import_module(f"{PACKAGES[version]}.{backend}")
    functions = {"decode", "encode", "from_builtins", "to_builtins", "validate", "DecodeError"}
    assert functions | set(absent) <= set(types.__all__)


@each("version", PACKAGES)
def test_both_backends_have_types_of_the_same_names(version: str) -> None:
    everyday = [set(import_module(f"{PACKAGES[version]}.{library}").__all__) for library in ("structs", "models")]
    assert everyday[0] == everyday[1]
    structs, models = (
        set(import_module(f"{PACKAGES[version]}.exact.{each}").__all__) for each in ("structs", "models")
    )
    assert structs - {"UNSET", "UnsetType"} == everyday[0] - {"NULL"}
    assert structs - models == {"UNSET", "UnsetType"}
    assert models - structs == {"MISSING"}


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(str(mcpspec.__file__)).parent / "py.typed").exists()
