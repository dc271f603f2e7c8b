"""Read schemas of one's own: an extension of a revision, or an interface that stands alone."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpspec_codegen import names
from mcpspec_codegen.annotated_methods import METHOD_KEYWORDS, add_annotated_messages
from mcpspec_codegen.dialects import is_draft_07, list_ignored_siblings, modernise
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.identifiers import name_class, name_definitions, rename_definitions
from mcpspec_codegen.nodes import Pointer, Schema, definitions_key, is_schema, pointer_text, split_pointer
from mcpspec_codegen.openrpc import is_openrpc, read_openrpc
from mcpspec_codegen.restore import hoist_definitions
from mcpspec_codegen.source import read_text
from mcpspec_codegen.syntax import check, is_ignored, list_ignored

__all__ = ["OwnDocument", "OwnSchemas", "list_files", "read_own"]

_AT_THE_ROOT = frozenset({"$schema", "$id", "$comment", "title", "description", "$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class OwnDocument:
    """One file with definitions."""

    file: str
    content: Schema
    places: Mapping[str, Pointer] = field(default_factory=dict[str, Pointer])
    """Name of a definition → its place in the file, if it is not among the definitions there."""

    @property
    def key(self) -> str:
        return definitions_key(self.content)

    @property
    def definitions(self) -> Schema:
        definitions: Schema = self.content[self.key]
        return definitions

    def pointer(self, name: str, *below: str | int) -> str:
        """Return the pointer to a part of a definition."""
        return pointer_text((*self.places.get(name, (self.key, name)), *below))

    def locate(self, error: SchemaError) -> SchemaError:
        """Return an error about the content with its pointer in the file."""
        parts = split_pointer(error.pointer)
        if len(parts) < 2 or parts[1] not in self.places:
            return error
        return SchemaError(error.file, self.pointer(parts[1], *parts[2:]), error.reason)


@dataclass(frozen=True, slots=True)
class OwnSchemas:
    """The definitions of all files of one interface."""

    documents: Sequence[OwnDocument]
    protocol: Collection[str] = ()
    """The names of the definitions of a revision that they extend."""

    @property
    def definitions(self) -> dict[str, Schema]:
        """The definitions, in the spelling of JSON Schema 2020-12, under the names of their classes.

        With the messages that annotations describe.
        """
        found = {
            name: modernise(node, old=is_draft_07(document.content))
            for document in self.documents
            for name, node in document.definitions.items()
        }
        file = self.documents[0].file
        hoisted: dict[str, Schema] = hoist_definitions({"$defs": found}, "$defs", file)["$defs"]
        named = rename_definitions(hoisted, name_definitions(hoisted, file, "$defs", self.protocol))
        return add_annotated_messages(named, self.protocol, file)

    @property
    def notes(self) -> list[str]:
        """Lines about keywords that the types ignore."""
        contents = [document.content for document in self.documents]
        return [
            line
            for found in contents
            for line in (*list_ignored(found, METHOD_KEYWORDS), *list_ignored_siblings(found))
        ]

    def error(self, reason: str, name: str, *below: str | int) -> SchemaError:
        """Return the error about a definition, with its file and its name there."""
        known = [each for document in self.documents for each in document.definitions]
        name = name if name in known else next((each for each in known if name_class(each) == name), name)
        document = next((found for found in self.documents if name in found.definitions), self.documents[0])
        return SchemaError(document.file, document.pointer(name, *below), reason)

    def locate(self, error: SchemaError) -> SchemaError:
        """Return an error about the definitions of all files with the file and the pointer of its definition."""
        parts = split_pointer(error.pointer)[1:]
        return self.error(error.reason, *(parts or [""]))


def list_files(paths: Iterable[Path]) -> list[Path]:
    """List the files of an interface: those that are named, and the JSON files of folders."""
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


def read_own(paths: Sequence[Path], protocol: Collection[str]) -> OwnSchemas:
    """Read and check the files of an interface. `protocol` are the definitions that they may refer to as well.

    Raises `SchemaError` for anything that the compiler does not know, and for a name that two files define.
    """
    documents = [_read(path) for path in list_files(paths)]
    if not documents:
        raise SchemaError(", ".join(map(str, paths)), "", "no file ends in .json; name the files of the schema")
    files: dict[str, str] = {}
    for document in documents:
        for name in document.definitions:
            if (other := files.setdefault(name, document.file)) != document.file:
                raise SchemaError(document.file, document.pointer(name), f"{other} defines it, too")
    for document in documents:
        try:
            check(document.content, document.file, [*files, *protocol])
        except SchemaError as error:
            raise document.locate(error) from error
        except RecursionError as error:
            raise SchemaError(document.file, "", "nested too deeply") from error
    return OwnSchemas(documents, protocol)


def _read(path: Path) -> OwnDocument:
    """Read one file, and check what is outside of its definitions."""
    file, text = str(path), read_text(path)
    try:
        content: Any = json.loads(text, object_pairs_hook=_unique, parse_constant=_reject, parse_float=_finite)
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError as error:
        raise SchemaError(file, "", "nested too deeply") from error
    except UnicodeEncodeError as error:
        raise SchemaError(file, "", "a text with half a surrogate pair, which is no Unicode") from error
    except ValueError as error:
        raise SchemaError(file, "", f"not JSON: {error}") from error
    if not is_schema(content):
        raise SchemaError(file, "", "expected a JSON object with `$defs`")
    if is_openrpc(content):
        return OwnDocument(file, *read_openrpc(content, file))
    if {"$defs", "definitions"} <= content.keys():
        raise SchemaError(file, "/definitions", "a schema has either `$defs` or `definitions`; move them to one")
    key = definitions_key(content)
    if not is_schema(content.get(key)) or not content[key]:
        raise SchemaError(file, f"/{key}" if key in content else "", "expected definitions in `$defs`: name → schema")
    return OwnDocument(file, _name_root(content, key, file))


def _name_root(content: Schema, key: str, file: str) -> Schema:
    """Return a document whose root, if it describes values, is the definition that its title names."""
    if not (rest := {keyword for keyword in content.keys() - _AT_THE_ROOT if not is_ignored(keyword)}):
        return content
    name = names.to_pascal(str(content.get("title", "")))
    if not name or name in content[key]:
        text = f"`{min(rest)}` outside of `{key}` would not be compiled; name the schema in `{key}`, or by a `title`"
        raise SchemaError(file, pointer_text((min(rest),)), text)
    root = {each: value for each, value in content.items() if each in {*rest, "description"}}
    outer = {each: value for each, value in content.items() if each not in rest}
    return {**outer, key: {name: root, **content[key]}}


def _unique(pairs: list[tuple[str, Any]]) -> Schema:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _reject(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")


def _finite(text: str) -> float:
    if math.isfinite(value := float(text)):
        return value
    raise ValueError(f"{text} is out of range")
