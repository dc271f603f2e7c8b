"""Read `schema/`: the pinned interface files, errata, supplement and descriptions."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import date
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, cast

import msgspec

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import ANNOTATIONS, Schema, is_schema, map_children, pointer_text
from mcpspec_codegen.syntax import check

__all__ = [
    "DRAFT", "EXTENSION", "STAGED", "DescriptionFile", "Descriptions", "Pin", "Pinned", "Source",
    "check_version", "format_interface", "load", "load_descriptions", "load_pinned",
    "parse", "read_json", "read_text", "sha256", "strip",
]  # fmt: skip

if TYPE_CHECKING:
    from typing_extensions import TypeForm

EXTENSION = "ext/"
"""Prefix of the versions of extensions."""

DRAFT = "draft"
"""The version of upstream's draft. All other revisions are dates, and come before it in order."""

STAGED = ".import"
"""The folder, beside the schemas, with the files of an import that are not in their places yet."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EXTENSION_VERSION = re.compile(re.escape(EXTENSION) + r"[a-z][a-z0-9_]*")


class Pin(TypedDict):
    """The origin of a schema, and the hashes of its files."""

    repository: str
    commit: str
    """The commit, or the package and its version: `name@version`."""
    path: str
    upstream_sha256: str
    """The hash of upstream's file."""
    sha256: str
    """The hash of our file, which has no prose."""
    reference: str
    """URL of a definition in the published specification, with `{anchor}` in place of its name."""


Pinned: TypeAlias = dict[str, dict[str, str]]
"""Version → its `Pin`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """A schema to compile: a protocol revision, upstream's draft, or an extension (`ext/<name>`)."""

    version: str
    schema: Schema
    file: str

    @property
    def is_extension(self) -> bool:
        return self.version.startswith(EXTENSION)

    @property
    def is_draft(self) -> bool:
        return self.version == DRAFT

    @property
    def title(self) -> str:
        """The name for people, such as `MCP 2026-07-28`."""
        if self.is_extension:
            return f"the MCP extension `{self.version.removeprefix(EXTENSION)}`"
        return "the unstable draft of MCP" if self.is_draft else f"MCP {self.version}"

    @property
    def package(self) -> str:
        """The package below `mcpspec`, with slashes."""
        return self.version if self.is_extension or self.is_draft else "v" + self.version.replace("-", "_")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_text(path: Path) -> str:
    """Read a text file. Raises `SchemaError` if it cannot be read."""
    try:
        return _read(path).decode()
    except UnicodeDecodeError as error:
        raise SchemaError(str(path), "", f"not UTF-8: {error.reason} at byte {error.start}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SchemaError(str(path), "", error.strerror or str(error)) from error


def read_json(path: Path, type: TypeForm[T]) -> T:
    """Decode a JSON file as a type. Raises `SchemaError` if it does not fit."""
    try:
        return cast(T, msgspec.json.decode(read_text(path), type=type))
    except (msgspec.DecodeError, RecursionError) as error:
        raise SchemaError(str(path), "", str(error)) from error


def check_version(version: str, file: str) -> None:
    """Raise `SchemaError` for a version that is neither a date nor the draft nor the name of an extension."""
    if version == DRAFT or _EXTENSION_VERSION.fullmatch(version):
        if iskeyword(name := version.removeprefix(EXTENSION)):
            raise SchemaError(file, "", f"{version!r} would be a package named `{name}`, which is a keyword of Python")
        return
    try:
        if not _DATE.fullmatch(version):
            raise ValueError(version)
        date.fromisoformat(version)
    except ValueError as error:
        reason = f"{version!r} is not a version; expected a date such as 2026-07-28, `{DRAFT}`, or `{EXTENSION}<name>`"
        raise SchemaError(file, "", reason) from error


def parse(data: bytes, file: str) -> Schema:
    """Parse and check a schema. Raises `SchemaError` for anything that the compiler does not know."""
    try:
        document = json.loads(data)
        check(document, file)
    except RecursionError as error:
        raise SchemaError(file, "", "nested too deeply") from error
    except ValueError as error:
        raise SchemaError(file, "", f"not JSON: {error}") from error
    schema: Schema = document
    return schema


def strip(node: Any) -> Any:
    """Remove prose and examples from a schema; everything else stays, in upstream's order."""
    if not is_schema(node):
        return node
    return map_children({key: value for key, value in node.items() if key not in ANNOTATIONS}, strip, with_checks=True)


def format_interface(schema: Schema) -> str:
    """Return a schema as the text of an interface file."""
    return json.dumps(strip(schema), indent=2, ensure_ascii=False) + "\n"


def load_pinned(folder: Path) -> Pinned:
    """Read `PINNED.json`: the origin and the hashes of each version's schema."""
    path = folder / "PINNED.json"
    pinned = cast(Pinned, read_json(path, dict[str, Pin]))
    for version, entry in pinned.items():
        check_version(version, str(path))
        _check_prose(entry["reference"], str(path), version, "reference")
    return pinned


def _check_prose(text: str, file: str, *at: str) -> None:
    """Raise `SchemaError` for text that could end the docstring that it becomes part of."""
    if not text.isprintable() or "\\" in text or '"""' in text:
        raise SchemaError(file, pointer_text(at), "expected one line of text, without backslash or triple quotes")


def load(folder: Path) -> list[Source]:
    """Read every pinned schema and verify its hash. Revisions come first, oldest first, then draft and extensions."""
    if (folder / STAGED).is_dir():
        raise SchemaError(str(folder), "", "`make bump` was interrupted; run it again, which completes it")
    sources: list[Source] = []
    for version, entry in load_pinned(folder).items():
        path = folder / f"{version}.json"
        data = _read(path)
        if sha256(data) != entry["sha256"]:
            raise SchemaError(str(path), "", "differs from the sha256 in PINNED.json; restore it or run `make bump`")
        sources.append(Source(version, parse(data, str(path)), str(path)))
    return sorted(sources, key=lambda source: (source.is_extension, source.version))


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Our descriptions of definitions and properties of one version, which become docstrings."""

    definitions: dict[str, str]
    properties: dict[str, str]
    particular: dict[str, dict[str, str]]
    examples: frozenset[str]
    """Values that descriptions show, and that no schema names."""

    def of_definition(self, name: str) -> str | None:
        return self.definitions.get(name)

    def of_property(self, owners: list[str], name: str) -> str | None:
        """Find the description of a property: that of one of its definitions, or the general one of its name."""
        particular = (self.particular.get(owner, {}).get(name) for owner in owners)
        return next((text for text in particular if text), self.properties.get(name))


Words: TypeAlias = dict[str, str | dict[str, str]]
"""Name → its description, or its descriptions by the version from which each one holds."""


class DescriptionFile(msgspec.Struct, frozen=True):
    """The content of `docs.toml`."""

    definitions: Words
    properties: Words
    particular: dict[str, Words] = msgspec.field(name="properties-of")
    examples: frozenset[str] = frozenset()

    def of_version(self, version: str) -> Descriptions:
        """Select the descriptions that hold for a version. Extensions count as newer than all revisions."""
        return Descriptions(
            _select(self.definitions, version),
            _select(self.properties, version),
            {owner: _select(words, version) for owner, words in self.particular.items()},
            self.examples,
        )


def _select(words: Words, version: str) -> dict[str, str]:
    chosen = {name: text if isinstance(text, str) else _newest(text, version) for name, text in words.items()}
    return {name: text for name, text in chosen.items() if text is not None}


def _newest(texts: dict[str, str], version: str) -> str | None:
    return max(((since, text) for since, text in texts.items() if since <= version), default=(None, None))[1]


def load_descriptions(folder: Path) -> DescriptionFile:
    """Read `docs.toml`."""
    path = folder / "docs.toml"
    try:
        descriptions = msgspec.toml.decode(read_text(path), type=DescriptionFile)
    except msgspec.DecodeError as error:
        raise SchemaError(str(path), "", str(error)) from error
    for words in (descriptions.definitions, descriptions.properties, *descriptions.particular.values()):
        for name, text in words.items():
            for since, part in {"": text}.items() if isinstance(text, str) else text.items():
                if since:
                    check_version(since, str(path))
                _check_prose(part, str(path), name, *filter(None, [since]))
    return descriptions
