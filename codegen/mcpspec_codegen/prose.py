"""The text of docstrings: descriptions of definitions and members, and links to the specification."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcpspec_codegen import names
from mcpspec_codegen.inline import name_variants
from mcpspec_codegen.nodes import Schema, is_schema
from mcpspec_codegen.source import Descriptions

__all__ = ["CombinedProse", "ExactProse", "OfficialProse", "OwnProse", "Prose", "docstring"]


class Prose(Protocol):
    """The docstrings and links of the classes of a package."""

    def of_definition(self, name: str) -> str | None:
        """Return the description of a definition."""
        ...

    def of_property(self, owners: list[str], name: str) -> str | None:
        """Return the description of a member. `owners` are its definition and those that it was hoisted out of."""
        ...

    def reference(self, name: str) -> str | None:
        """Return the URL of a definition's specification."""
        ...


@dataclass(frozen=True, slots=True)
class OfficialProse:
    """Our descriptions of a revision, with links to the published specification."""

    descriptions: Descriptions
    link: str
    """URL of a definition, with `{anchor}` in place of its name."""

    def of_definition(self, name: str) -> str | None:
        return self.descriptions.of_definition(name)

    def of_property(self, owners: list[str], name: str) -> str | None:
        return self.descriptions.of_property(owners, name)

    def reference(self, name: str) -> str | None:
        return self.link.format(anchor=name.lower())


@dataclass(frozen=True, slots=True)
class CombinedProse:
    """The descriptions of types free of revisions: those of the newest revision that has them.

    Members, and the pages of the specification, are those of a revision: its types describe them.
    """

    revisions: list[tuple[frozenset[str], Prose]]
    """Definitions and descriptions, newest first."""
    former_names: dict[str, list[str]]
    """Definition → its names in the revisions."""

    def of_definition(self, name: str) -> str | None:
        texts = (prose.of_definition(old) for old, prose in self._places(name))
        return next(filter(None, texts), None)

    def of_property(self, owners: list[str], name: str) -> None:
        """Return no description."""

    def reference(self, name: str) -> None:
        """Return no page."""

    def _places(self, name: str) -> Iterator[tuple[str, Prose]]:
        """Yield the names of a definition in the revisions, each with the descriptions there."""
        for known, prose in self.revisions:
            yield from ((old, prose) for old in (name, *self.former_names.get(name, ())) if old in known)


@dataclass(frozen=True, slots=True)
class ExactProse:
    """The descriptions of exact types. Those that are everyday types, too, are described there, with their members."""

    base: Prose
    everyday: frozenset[str]
    """The definitions that are everyday classes, too."""

    def of_definition(self, name: str) -> str | None:
        return None if name in self.everyday else self.base.of_definition(name)

    def of_property(self, owners: list[str], name: str) -> str | None:
        return None if owners[0] in self.everyday else self.base.of_property(owners, name)

    def reference(self, name: str) -> str | None:
        return None if name in self.everyday else self.base.reference(name)


@dataclass(frozen=True, slots=True)
class OwnProse:
    """The descriptions that schemas of one's own state, and those of the revision that they extend."""

    base: Prose | None = None
    protocol: frozenset[str] = frozenset()
    """The definitions of the revision."""
    definitions: dict[str, str] = field(default_factory=dict[str, str])
    properties: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Name of a class → name of a member → text."""
    links: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, defs: Mapping[str, Any], identity: object) -> None:
        """Collect the descriptions of a schema, whose `$id` is the link of its definitions if it is a web address."""
        for name, node in defs.items():
            for place, member, text in _descriptions(node, name):
                if member is None:
                    self.definitions.setdefault(place, text)
                else:
                    self.properties.setdefault(place, {}).setdefault(member, text)
            if isinstance(identity, str) and _LINK.fullmatch(identity):
                self.links.setdefault(name, identity)

    def of_definition(self, name: str) -> str | None:
        inherited = self.base.of_definition(name) if self.base and name in self.protocol else None
        return self.definitions.get(name) or inherited

    def of_property(self, owners: list[str], name: str) -> str | None:
        inherited = self.base.of_property(owners, name) if self.base and owners[-1] in self.protocol else None
        return self.properties.get(owners[0], {}).get(name) or inherited

    def reference(self, name: str) -> str | None:
        return self.base.reference(name) if self.base and name in self.protocol else self.links.get(name)


_LINK = re.compile(r"https?://[\w.~:/?#@!$&'()*+,;=%-]+", re.ASCII)


def _descriptions(node: Any, place: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield the texts in a schema, each with its class, and its member or None.

    A class is named as its type will be: by its definition, or by its place.
    """
    if not is_schema(node):
        return
    if text := _text(node):
        yield place, None, text
    for key, child in node.get("properties", {}).items():
        if is_schema(child) and (text := _text(child)):
            yield place, key, text
        yield from _descriptions(child, place + names.to_pascal(key))
    for part in node.get("allOf", []):
        yield from _descriptions(part, place)
    members = [*node.get("anyOf", []), *node.get("oneOf", [])]
    members = [member if is_schema(member) else {} for member in members]
    for member, name in zip(members, name_variants(members), strict=True):
        yield from _descriptions(member, place + name)
    yield from _descriptions(node.get("items"), place + "Item")
    yield from _descriptions(node.get("additionalProperties"), place + "Value")


def _text(node: Schema) -> str | None:
    """Return the description of a schema, or else its title, as the text of a docstring."""
    given: object = node.get("description") or node.get("title")
    return docstring(given) if isinstance(given, str) and given.strip() else None


def docstring(text: str) -> str:
    """Return a text as the content of a docstring: no text ends the docstring, or is an escape in it."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n")]
    return "\n    ".join(_escape(line) if line else "" for line in lines).replace("\n    \n", "\n\n")


def _escape(line: str) -> str:
    escaped = line.replace("\\", "\\\\")
    if '"""' in escaped or escaped.endswith('"'):
        escaped = escaped.replace('"', '\\"')
    return "".join(char if char.isprintable() or char == "\t" else _code(char) for char in escaped)


def _code(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
