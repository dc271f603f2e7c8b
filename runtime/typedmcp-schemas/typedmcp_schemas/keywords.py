"""The keywords of JSON Schema 2020-12, by what their values hold."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANNOTATIONS", "INTEGER_KEY", "KEY_PATTERNS", "LIST_KEYWORDS", "MAP_KEYWORDS", "NATURAL_KEY", "NUMBER_KEY",
    "SCHEMA_KEYWORDS",
]  # fmt: skip

MAP_KEYWORDS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose values hold schemas by name."""
LIST_KEYWORDS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
"""Keywords whose values are lists of schemas."""
SCHEMA_KEYWORDS: Final = frozenset({
    "items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties",
})  # fmt: skip
"""Keywords whose values are schemas."""
ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
"""Keywords that restrict no values."""
INTEGER_KEY: Final = "^(0|-?[1-9][0-9]*)$"
NATURAL_KEY: Final = "^(0|[1-9][0-9]*)$"
NUMBER_KEY: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
KEY_PATTERNS: Final = {INTEGER_KEY: "integer", NATURAL_KEY: "integer >= 0", NUMBER_KEY: "number"}
"""The types of keys, by the pattern that types with such keys have in their schemas."""
