"""URI templates: which URIs match a template, and the values in them.

All operators of RFC 6570 are supported: `{name}`, `{+name}`, `{#name}`, `{.name}`, `{/name}`, `{;name}`, `{?name}`
and `{&name}`, with several names each. `{name*}` matches everything, including slashes. The variables of a query may
be missing, and may come in any order. https://datatracker.ietf.org/doc/html/rfc6570
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from typedmcp.errors import UsageError

__all__ = ["UriTemplate", "normalize_uri"]

_EXPRESSION = r"\{([^{}]*)\}"
_NAMES = r"(?P<operator>[+#./;?&]?)(?P<names>[A-Za-z_]\w*\*?(,[A-Za-z_]\w*\*?)*)\Z"
_MAX_URI_CHARACTERS = 8192
"""Longer URIs match no template."""
_RESPELLED = r"\{[^{}]*\}|%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]"
"""Expressions of templates, and what has several spellings: escapes, and characters that have to be escaped."""

_OPERATORS = {"": ("", "/?#"), "+": ("", ""), "#": ("#", ""), ".": (".", "/?#."), "/": ("/", "/?#"), ";": (";", "/?#;")}
"""The character before the first value of an operator, and those that its values cannot contain."""


class _Variable(NamedTuple):
    name: str
    stops: str
    """Characters that the value cannot contain."""
    min_length: int
    """The least length of the value, 0 or 1."""


class UriTemplate:
    """A compiled template. Raises `UsageError` for a template that is malformed."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.names: list[str] = []
        """The names of all variables, in order."""
        self.optional: list[str] = []
        """The names of the variables in the query, which may be missing."""
        self._pieces: list[str | _Variable] = []
        end = 0
        for match in re.finditer(_EXPRESSION, template):
            if self.optional and (match.start() > end or match[1][:1] != "&"):
                raise UsageError(f"URI template {template!r}: the query must be its end, but {{{match[1]}}} follows")
            self._pieces += [template[end : match.start()], *self._parse_expression(match[1])]
            end = match.end()
        self._fixed_query_items: int = self._count_query_items(end)
        """Items of the query before those that may be missing."""
        rest = template[end:]
        if self.optional and rest:
            raise UsageError(f"URI template {template!r}: the query must be its end, but {rest!r} follows")
        if "{" in (bare := re.sub(_EXPRESSION, "", template)) or "}" in bare:
            raise UsageError(f"URI template {template!r}: unbalanced braces")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"URI template {template!r}: a variable occurs twice")
        self._pieces.append(rest)

    def _count_query_items(self, end: int) -> int:
        """Count the items of a query in the literals and variables before `{&name}`, which continues it."""
        bare = re.sub(_EXPRESSION, "", self.template[:end])
        if not self.optional or "?" not in bare:
            return 0
        if "{?" in self.template:
            raise UsageError(f"URI template {self.template!r}: {{?…}} begins a second query; use {{&…}}")
        return bare.partition("?")[2].count("&") + 1

    def _parse_expression(self, expression: str) -> Iterator[str | _Variable]:
        match = re.match(_NAMES, expression)
        if match is None:
            raise UsageError(f"URI template {self.template!r}: {{{expression}}} is not an expression")
        operator, names = match["operator"], match["names"].split(",")
        self.names += [name.rstrip("*") for name in names]
        if operator in ("?", "&"):
            self.optional += [name.rstrip("*") for name in names]
            return
        prefix, stops = _OPERATORS[operator]
        is_list = operator in ("", "+", "#")
        stops += "," * (is_list and len(names) > 1)
        for number, name in enumerate(names):
            separator = "," if is_list and number else prefix
            yield f";{name.rstrip('*')}=" if operator == ";" else separator
            yield _Variable(name.rstrip("*"), "" if name.endswith("*") else stops, operator != ";")

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values in a URI, or None if it does not match."""
        if len(uri) > _MAX_URI_CHARACTERS:
            return None
        from urllib.parse import parse_qsl, unquote  # few servers have templates

        path, query = self._split(uri)
        values = _match_pieces(self._pieces, path)
        if values is None:
            return None
        values = {name: unquote(value) for name, value in values.items()}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in self.optional or name in values:
                return None
            values[name] = value
        return values

    def _split(self, uri: str) -> tuple[str, str]:
        """Split a URI before the items of the query that may be missing."""
        if not self.optional:
            return uri, ""
        path, mark, query = uri.partition("#")[0].partition("?")
        items = query.split("&")
        fixed = items[: self._fixed_query_items]
        return path + mark * bool(fixed) + "&".join(fixed), "&".join(items[len(fixed) :])


def normalize_uri(uri: str) -> str:
    """Return the spelling that all equal URIs or templates share; long URIs as they are, since they match nothing.

    https://datatracker.ietf.org/doc/html/rfc3986#section-6.2, https://datatracker.ietf.org/doc/html/rfc3987#section-3.1
    """
    scheme, colon, rest = uri[:_MAX_URI_CHARACTERS].partition(":")
    if len(uri) > _MAX_URI_CHARACTERS or "{" in scheme:
        return uri
    scheme, rest = scheme.lower(), re.sub(_RESPELLED, _respell, rest)
    if scheme in ("http", "https") and rest.startswith("//"):
        host, *others = re.split("(?=[/?#{])", rest[2:], maxsplit=1)
        path = "".join(others)
        slash = "/" if path[:1] in ("", "?", "#") or path[:2] in ("{?", "{#") else ""
        rest = f"//{host.lower().removesuffix(':80' if scheme == 'http' else ':443')}{slash}{path}"
    return scheme + colon + rest


def _respell(match: re.Match[str]) -> str:
    from urllib.parse import quote, unquote_to_bytes

    return match[0] if match[0][0] == "{" else quote(unquote_to_bytes(match[0]), safe="")


# Clients choose the URIs, and a regular expression may take very long to find that one does not match. The functions
# below take, for each variable, as many steps as the URI has characters.


def _match_pieces(pieces: list[str | _Variable], text: str) -> dict[str, str] | None:
    """Match pieces one after the other. The first variables get the longest values."""
    if not text.startswith(str(pieces[0])):
        return None
    starts = [{len(text)}]
    """Positions at which the remaining pieces can start, beginning with the last piece."""
    for piece in reversed(pieces):
        find_starts = _literal_starts if isinstance(piece, str) else _value_starts
        starts.append(find_starts(piece, text, starts[-1]))  # type: ignore[arg-type]
    if 0 not in starts.pop():
        return None
    values: dict[str, str] = {}
    position = 0
    for piece in pieces:
        next_starts = starts.pop()
        if isinstance(piece, str):
            position += len(piece)
            continue
        last = next((i for i in range(position, len(text)) if text[i] in piece.stops), len(text))
        end = max(i for i in next_starts if position + piece.min_length <= i <= last)
        values[piece.name], position = text[position:end], end
    return values


def _literal_starts(piece: str, text: str, ends: set[int]) -> set[int]:
    """Return the positions at which a literal can start so that it ends at one of `ends`."""
    return {end - len(piece) for end in ends if text.startswith(piece, end - len(piece)) and end >= len(piece)}


def _value_starts(piece: _Variable, text: str, ends: set[int]) -> set[int]:
    """Return the positions at which a value can start so that it ends at one of `ends`."""
    starts = set[int]() if piece.min_length else {*ends}
    can_start = False
    for i in reversed(range(len(text))):
        can_start = text[i] not in piece.stops and (can_start or i + 1 in ends)
        if can_start:
            starts.add(i)
    return starts
