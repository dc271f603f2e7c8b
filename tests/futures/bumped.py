"""A bump to a future in this process, without formatting, and the folder in which its types can be imported."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from mcpspec_codegen import bump as bumping
from mcpspec_codegen import errata
from mcpspec_codegen.conversions.gaps import find_conversion_gaps, find_gaps_between
from mcpspec_codegen.pipeline import load_revisions
from tests.codegen.helpers import GENERATED, Schema, write_json
from tests.futures.future import LATER, Future
from tests.paths import SCHEMA

__all__ = ["bump", "corrected_schema", "find_gaps", "use_types", "write_types"]


def bump(future: Future, folder: Path) -> tuple[dict[str, str], Path]:
    """Bump a copy of `schema/` to a future. Return the files, and the folder of the schemas. Raises `SchemaError`."""
    schema = Path(shutil.copytree(SCHEMA, folder / "schema"))
    origin = write_json(folder / "schema.json", future.schema)
    files, _ = bumping.bump(LATER, str(origin), schema, commit=None, repin=False, is_finished=False)
    return files, schema


def write_types(files: dict[str, str], folder: Path) -> list[str]:
    """Write the files of a bump, with links for those that it leaves as they are. Return the modules that it wrote."""
    package = f"v{LATER.replace('-', '_')}"
    written: list[str] = []
    for path, text in files.items():
        parts = Path(path).parts
        is_changed = parts[0] == "mcpspec" and (len(parts) == 2 or package in (parts[1], Path(parts[-1]).stem))
        if is_changed or path in ("mcpspec/compat/types.py", "mcpspec/compat/names.py"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
            written.append(path)
    _link(GENERATED / "mcpspec", folder / "mcpspec")
    modules = (path.removesuffix(".py").removesuffix("/__init__") for path in written if path.endswith(".py"))
    return [module.replace("/", ".") for module in modules]


def _link(source: Path, target: Path) -> None:
    """Let a folder have what another one has, where it has nothing of its own."""
    for path in source.iterdir():
        if path.name != "__pycache__" and not (target / path.name).exists():
            (target / path.name).symlink_to(path)
        elif path.is_dir() and path.name != "__pycache__":
            _link(path, target / path.name)


def use_types(*folders: Path) -> None:
    """Let this process import the types, and what uses them, from some folders."""
    for name in [*sys.modules]:
        root = name.partition(".")[0]
        if root in ("mcpspec", "typedmcp", "typedmcp_schemas") or name.startswith("tests.generated."):
            del sys.modules[name]
    sys.path[:0] = [str(folder) for folder in folders]


def find_gaps(schema: Path) -> list[str]:
    """List what a person has to decide about conversions between a future and the other revisions of a folder."""
    revisions, facts = load_revisions(schema)
    later = next(each for each in revisions if each.version == LATER)
    if later.is_modern:
        return find_conversion_gaps(later, revisions, facts)
    return [line for each in revisions if each.is_modern for line in find_gaps_between(each, [later], facts)]


def corrected_schema(schema: Path, version: str) -> Schema:
    """Return a schema of a folder with its errata applied."""
    content = json.loads((schema / f"{version}.json").read_bytes())
    return errata.apply(content, errata.load(schema), version, version)
