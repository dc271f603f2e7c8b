"""URI templates: which URIs one stands for, and the values in them.

The operators of RFC 6570 are known: `{name}`, `{+name}`, `{#name}`, `{.name}`, `{/name}`, `{;name}`, `{?name}` and
`{&name}`, with several names each. `{name*}` takes everything, slashes too. What a query names may be left out, and
come in any order. https://datatracker.ietf.org/doc/html/rfc6570
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from typedmcp.errors import UsageError

__all__ = ["UriTemplate"]

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAMES = re.compile(r"(?P<operator>[+#./;?&]?)(?P<names>[A-Za-z_]\w*\*?(,[A-Za-z_]\w*\*?)*)\Z")
_LONGEST = 8192
"""Of how many characters a URI may be to be looked at."""

_LEADS = {"": "", "+": "", "#": "#", ".": r"\.", "/": "/", ";": ";"}
_VALUES = {"": "[^/?#]+", "+": ".+", "#": ".+", ".": "[^/?#.]+", "/": "[^/?#]+", ";": "[^/?#;]*"}


class UriTemplate:
    """A template, compiled. Raises `UsageError` for one that cannot be read."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.names: list[str] = []
        """The names of its values, in order,"""
        self.optional: list[str] = []
        """and those of them that may be missing."""
        pattern: list[str] = []
        end = 0
        for found in _EXPRESSION.finditer(template):
            if self.optional:
                self._refuse_after_query(template[end : found.start()], found[1])
            pattern += [re.escape(template[end : found.start()]), self._expression(found[1])]
            end = found.end()
        rest = template[end:]
        if self.optional and rest:
            raise UsageError(f"URI template {template!r}: a query is its end, and {rest!r} follows")
        if "{" in (bare := _EXPRESSION.sub("", template)) or "}" in bare:
            raise UsageError(f"URI template {template!r}: braces do not match")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"URI template {template!r}: a name is there twice")
        self._pattern = re.compile("".join([*pattern, re.escape(rest)]) + r"\Z", re.DOTALL)

    def _refuse_after_query(self, between: str, expression: str) -> None:
        if between or not expression.startswith("&"):
            raise UsageError(f"URI template {self.template!r}: a query is its end, and {{{expression}}} follows")

    def _expression(self, expression: str) -> str:
        found = _NAMES.match(expression)
        if found is None:
            raise UsageError(f"URI template {self.template!r}: {{{expression}}} is no expression")
        operator, names = found["operator"], found["names"].split(",")
        self.names += [name.rstrip("*") for name in names]
        if operator in ("?", "&"):
            self.optional += [name.rstrip("*") for name in names]
            return ""
        several = len(names) > 1 and operator in ("", "+", "#")
        groups = [_group(name, operator, several=several) for name in names]
        lead = _LEADS[operator]
        if operator == ";":
            return "".join(f";{name.rstrip('*')}={group}" for name, group in zip(names, groups, strict=True))
        return "".join(lead + group for group in groups) if operator in ("/", ".") else lead + ",".join(groups)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values in a URI, decoded; None where it is none of the template's."""
        if len(uri) > _LONGEST:
            return None
        path, query = uri, ""
        if self.optional:
            path, _, query = uri.partition("?")
        found = self._pattern.match(path)
        if found is None:
            return None
        values = {name: unquote(value) for name, value in found.groupdict().items()}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in self.optional or name in values:
                return None
            values[name] = value
        return values


def _group(name: str, operator: str, *, several: bool) -> str:
    value = ".+" if name.endswith("*") else _VALUES[operator]
    if several and not name.endswith("*"):
        value = "[^,]+" if operator else "[^/?#,]+"
    return f"(?P<{name.rstrip('*')}>{value})"
