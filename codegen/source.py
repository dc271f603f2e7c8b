"""Reading `schema/`: the pinned interface files, and upstream's files that they come from."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.errors import SchemaError
from codegen.nodes import ANNOTATIONS, Schema, check, map_children

__all__ = [
    "EXTENSION", "Source", "Words",
    "interface_text", "load", "load_pinned", "load_words", "parse", "sha256", "strip",
]  # fmt: skip

EXTENSION = "ext/"
"""What the versions of extensions begin with; all others are dates."""


@dataclass(frozen=True, slots=True)
class Source:
    """One schema that is compiled: a protocol revision, or an extension (`ext/<name>`)."""

    version: str
    schema: Schema
    file: str

    @property
    def is_extension(self) -> bool:
        return self.version.startswith(EXTENSION)

    @property
    def title(self) -> str:
        """What people call it."""
        return (
            f"the MCP extension `{self.version.removeprefix(EXTENSION)}`"
            if self.is_extension
            else f"MCP {self.version}"
        )

    @property
    def package(self) -> str:
        """Its package below `mcpspec`, with slashes."""
        return self.version if self.is_extension else "v" + self.version.replace("-", "_")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parse(data: bytes, file: str) -> Schema:
    """A checked schema from the bytes of a file."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise SchemaError(file, "", f"not JSON: {error}") from error
    check(document, file)
    schema: Schema = document
    return schema


def strip(node: Any) -> Any:
    """A schema without prose and examples; everything else stays, in upstream's order."""
    if isinstance(node, bool):
        return node
    return map_children({key: value for key, value in node.items() if key not in ANNOTATIONS}, strip)


def interface_text(schema: Schema) -> str:
    """The text of an interface file."""
    return json.dumps(strip(schema), indent=2, ensure_ascii=False) + "\n"


def load_pinned(folder: Path) -> dict[str, dict[str, str]]:
    """`PINNED.json`: for each version where its schema comes from, and both hashes."""
    pinned: dict[str, dict[str, str]] = json.loads((folder / "PINNED.json").read_text(encoding="utf-8"))
    return pinned


def load(folder: Path) -> list[Source]:
    """Every pinned schema, its hash verified, revisions in order of time before extensions."""
    sources: list[Source] = []
    for version, entry in load_pinned(folder).items():
        path = folder / f"{version}.json"
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SchemaError(str(path), "", error.strerror or str(error)) from error
        if sha256(data) != entry["sha256"]:
            raise SchemaError(str(path), "", "differs from the sha256 in PINNED.json; restore it or run `make bump`")
        sources.append(Source(version, parse(data, str(path)), str(path)))
    return sorted(sources, key=lambda source: (source.is_extension, source.version))


@dataclass(frozen=True, slots=True)
class Words:
    """Our own words for definitions and properties (`docs.toml`)."""

    definitions: dict[str, str]
    properties: dict[str, str]
    particular: dict[str, dict[str, str]]

    def of_definition(self, name: str) -> str | None:
        return self.definitions.get(name)

    def of_property(self, owners: list[str], name: str) -> str | None:
        """Words for a property of a definition, or of the definitions in which that stands."""
        particular = (self.particular.get(owner, {}).get(name) for owner in owners)
        return next((words for words in particular if words), self.properties.get(name))


def load_words(folder: Path) -> Words:
    tables = tomllib.loads((folder / "docs.toml").read_text(encoding="utf-8"))
    return Words(tables["definitions"], tables["properties"], tables["properties-of"])
