"""Helpers of the tests of the compiler: copies of `schema/`, the command line, and its output."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from mcpspec_codegen import errata
from mcpspec_codegen.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "schema"
GENERATED = ROOT / "generated"

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Schema: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Schema], None]
"""A change, in place, of the definitions of a schema."""


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    return path


@cache
def pinned_versions() -> tuple[str, ...]:
    return tuple(read_json(SCHEMA / "PINNED.json"))


NEWEST = "2026-07-28"
"""The newest revision of the folders that the tests compile. It is fixed, so that a bump does not change the tests."""
PREVIOUS = "2025-11-25"
"""The revision before it."""


@cache
def _newest_text() -> str:
    return (SCHEMA / f"{NEWEST}.json").read_text(encoding="utf-8")


def newest_schema(*changes: Change) -> Schema:
    """Return the newest revision's schema, with changes to its definitions."""
    schema: Schema = json.loads(_newest_text())
    for change in changes:
        change(schema["$defs"])
    return schema


def small_schema(*changes: Change) -> Schema:
    """Return the part of the newest revision's schema that listing tools needs: it compiles fast."""
    schema = newest_schema()
    known: Schema = schema["$defs"]
    known["ClientRequest"] = {"anyOf": [{"$ref": "#/$defs/ListToolsRequest"}]}
    kept: set[str] = set()
    todo = ["ClientRequest", "ListToolsResultResponse", "RequestParams", "Cursor", "EmptyResult"]
    while todo:
        if (name := todo.pop()) not in kept:
            kept.add(name)
            todo += re.findall(r'"#/\$defs/(\w+)"', json.dumps(known[name]))
    definitions = {name: node for name, node in known.items() if name in kept}
    for change in changes:
        change(definitions)
    return {**schema, "$defs": definitions}


def small_folder(folder: Path, content: Schema | bytes) -> Path:
    """Make a schema folder with only a small schema, in place of the newest revision."""
    schema_folder(folder)
    pin(folder, NEWEST, content)
    entries = [entry for entry in read_json(folder / "errata.json") if entry["definition"] == "JSONValue"]
    write_json(folder / "errata.json", entries)
    supplement = read_json(folder / "supplement.json")  # its defaults are of definitions that a small schema lacks
    write_json(folder / "supplement.json", {**supplement, "constructor_defaults": {}})
    return folder


def schema_folder(folder: Path, *versions: str) -> Path:
    """Copy `schema/` with only these versions pinned, by default only the newest revision."""
    kept = versions or (NEWEST,)
    shutil.copytree(SCHEMA, folder)
    pinned = read_json(folder / "PINNED.json")
    for version in pinned.keys() - set(kept):
        (folder / f"{version}.json").unlink()
    write_json(folder / "PINNED.json", {version: pinned[version] for version in pinned if version in kept})
    entries = errata.load(folder)
    for version in {version for entry in entries for version in entry.mentioned} - set(kept):
        entries = errata.remove_version(entries, version)
    errata.save(entries, folder)
    return folder


def list_in_errata(folder: Path, version: str) -> None:
    """Add a version to all errata of the newest revision, as for a schema that has the same defects."""
    entries = read_json(folder / "errata.json")
    for entry in entries:
        if NEWEST in entry["versions"]:
            entry["versions"].append(version)
    write_json(folder / "errata.json", entries)


def pin(folder: Path, version: str, schema: Schema | bytes) -> Path:
    """Replace or add the schema of a version, and pin its hashes."""
    data = schema if isinstance(schema, bytes) else json.dumps(schema, indent=2).encode()
    path = folder / f"{version}.json"
    path.write_bytes(data)
    pinned = read_json(folder / "PINNED.json")
    entry = pinned.get(version) or copy.deepcopy(pinned[NEWEST])
    digest = hashlib.sha256(data).hexdigest()
    write_json(folder / "PINNED.json", {**pinned, version: {**entry, "sha256": digest, "upstream_sha256": digest}})
    return path


def codegen(schema: Path, output: Path, *arguments: str) -> int:
    """Run the command line in this process, and return its exit status."""
    return main(["--schema", str(schema), "--output", str(output), *arguments])


def compiled(folder: Path, change: Change) -> Path:
    """Compile the newest revision with changes to its definitions, and return the package's folder."""
    schema = schema_folder(folder / "schema")
    pin(schema, NEWEST, newest_schema(change))
    output = folder / "output"
    assert codegen(schema, output, "generate") == 0
    return output


def snapshot(*folders: Path) -> dict[Path, bytes]:
    """Return all files below some folders, with their contents."""
    files = (path for folder in folders for path in sorted(folder.rglob("*")))
    return {path: path.read_bytes() for path in files if path.is_file() and "__pycache__" not in path.parts}


def python(package: Path, code: str, *arguments: str) -> str:
    """Run code in a fresh interpreter that can import a compiled package, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


BACKENDS = ("structs", "models")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of decoding a value: JSON after encoding it again, the place of a fault, or an unexpected error."""

    encoded: Any = None
    rejected_at: str | None = None
    error: str | None = None


_DECODE = """
import json, sys
from mcpspec import LATEST, revision

def outcome(types, name, value):
    try:
        decoded = types.decode(json.dumps(value), getattr(types, name))
        assert types.encode(types.from_builtins(value, getattr(types, name))) == types.encode(decoded)
    except DecodeError as error:
        return {"rejected_at": error.path}
    except Exception as error:
        return {"error": repr(error)}
    return {"encoded": json.loads(types.encode(decoded))}

types = getattr(revision(LATEST).exact, sys.argv[1])
from mcpspec.support.errors import DecodeError
print(json.dumps([outcome(types, name, value) for name, value in json.loads(sys.argv[2])]))
"""


def decode(package: Path, backend: str, values: Sequence[tuple[str, Any]]) -> list[Outcome]:
    """Decode values of the newest revision's exact types with a backend of a compiled package, in a fresh process."""
    outcomes = json.loads(python(package, _DECODE, backend, json.dumps(values)))
    return [Outcome(**outcome) for outcome in outcomes]
