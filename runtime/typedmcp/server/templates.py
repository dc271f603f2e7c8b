"""URI templates: which URIs one stands for, and the values in them.

The operators of RFC 6570 are known: `{name}`, `{+name}`, `{#name}`, `{.name}`, `{/name}`, `{;name}`, `{?name}` and
`{&name}`, with several names each. `{name*}` takes everything, slashes too. What a query names may be left out, and
come in any order. https://datatracker.ietf.org/doc/html/rfc6570
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from typedmcp.errors import UsageError

__all__ = ["UriTemplate"]

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAMES = re.compile(r"(?P<operator>[+#./;?&]?)(?P<names>[A-Za-z_]\w*\*?(,[A-Za-z_]\w*\*?)*)\Z")
_LONGEST = 8192
"""Of how many characters a URI may be to be looked at."""

_LEADS = {"": "", "+": "", "#": "#", ".": ".", "/": "/"}
_STOPS = {"": "/?#", "+": "", "#": "", ".": "/?#.", "/": "/?#", ";": "/?#;"}
"""Which characters end a value."""


class _Value(NamedTuple):
    name: str
    stops: str
    """Characters that it has not."""
    least: int
    """How many characters it has at least: one or none."""


class UriTemplate:
    """A template, compiled. Raises `UsageError` for one that cannot be read."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.names: list[str] = []
        """The names of its values, in order,"""
        self.optional: list[str] = []
        """and those of them that may be missing."""
        self._pieces: list[str | _Value] = []
        end = 0
        for found in _EXPRESSION.finditer(template):
            if self.optional:
                self._refuse_after_query(template[end : found.start()], found[1])
            self._pieces += [template[end : found.start()], *self._expression(found[1])]
            end = found.end()
        self._items: int = self._query_items(end)
        """How many items of a query are before those that may be missing."""
        rest = template[end:]
        if self.optional and rest:
            raise UsageError(f"URI template {template!r}: a query is its end, and {rest!r} follows")
        if "{" in (bare := _EXPRESSION.sub("", template)) or "}" in bare:
            raise UsageError(f"URI template {template!r}: braces do not match")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"URI template {template!r}: a name is there twice")
        self._pieces.append(rest)

    def _query_items(self, end: int) -> int:
        """As many as are in the literals, and in what these lead to, which `{&name}` goes on with."""
        bare = _EXPRESSION.sub("", self.template[:end])
        if not self.optional or "?" not in bare:
            return 0
        if "{?" in self.template:
            raise UsageError(f"URI template {self.template!r}: a query has begun where {{?…}} begins one")
        return bare.partition("?")[2].count("&") + 1

    def _refuse_after_query(self, between: str, expression: str) -> None:
        if between or not expression.startswith("&"):
            raise UsageError(f"URI template {self.template!r}: a query is its end, and {{{expression}}} follows")

    def _expression(self, expression: str) -> Iterator[str | _Value]:
        found = _NAMES.match(expression)
        if found is None:
            raise UsageError(f"URI template {self.template!r}: {{{expression}}} is no expression")
        operator, names = found["operator"], found["names"].split(",")
        self.names += [name.rstrip("*") for name in names]
        if operator in ("?", "&"):
            self.optional += [name.rstrip("*") for name in names]
            return
        is_list = operator in ("", "+", "#")
        for number, name in enumerate(names):
            if operator == ";":
                yield f";{name.rstrip('*')}="
            else:
                yield "," if is_list and number else _LEADS[operator]
            stops = _STOPS[operator] + ("," if is_list and len(names) > 1 else "")
            yield _Value(name.rstrip("*"), "" if name.endswith("*") else stops, operator != ";")

    def match(self, uri: str) -> dict[str, str] | None:
        """The values in a URI, decoded; None where it is none of the template's."""
        if len(uri) > _LONGEST:
            return None
        path, query = self._split(uri)
        found = _values(self._pieces, path)
        if found is None:
            return None
        values = {name: unquote(value) for name, value in found.items()}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in self.optional or name in values:
                return None
            values[name] = value
        return values

    def _split(self, uri: str) -> tuple[str, str]:
        """A URI up to the members that may be missing, and these."""
        if not self.optional:
            return uri, ""
        path, mark, query = uri.partition("?")
        if not self._items:
            return path, query
        items = query.split("&")
        return path + mark + "&".join(items[: self._items]), "&".join(items[self._items :])


# URIs come from clients, and a regular expression may take ages to find that one of them does not fit: what is here
# takes as many steps as the URI has characters, for every value in the template.


def _values(pieces: list[str | _Value], text: str) -> dict[str, str] | None:
    """The values in a text that is pieces one after the other, the first of them as long as can be."""
    if not text.startswith(str(pieces[0])):
        return None
    beginnings = [{len(text)}]
    """Where in the text the rest of the pieces can begin, from the last one on."""
    for piece in reversed(pieces):
        before = _before_text if isinstance(piece, str) else _before_value
        beginnings.append(before(piece, text, beginnings[-1]))  # type: ignore[arg-type]
    if 0 not in beginnings.pop():
        return None
    found: dict[str, str] = {}
    position = 0
    for piece in pieces:
        following = beginnings.pop()
        if isinstance(piece, str):
            position += len(piece)
            continue
        last = next((i for i in range(position, len(text)) if text[i] in piece.stops), len(text))
        end = max(i for i in following if position + piece.least <= i <= last)
        found[piece.name], position = text[position:end], end
    return found


def _before_text(piece: str, text: str, ends: set[int]) -> set[int]:
    """Where a literal begins that ends at one of these places."""
    return {end - len(piece) for end in ends if text.startswith(piece, end - len(piece)) and end >= len(piece)}


def _before_value(piece: _Value, text: str, ends: set[int]) -> set[int]:
    """Where a value begins that ends at one of these places."""
    found = set[int]() if piece.least else {*ends}
    can_begin = False
    for i in reversed(range(len(text))):
        can_begin = text[i] not in piece.stops and (can_begin or i + 1 in ends)
        if can_begin:
            found.add(i)
    return found
