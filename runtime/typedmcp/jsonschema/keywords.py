"""The keywords of JSON Schema 2020-12, by what their values hold."""

from __future__ import annotations

from typing import Final

__all__ = ["ANNOTATIONS", "LIST_KEYWORDS", "MAP_KEYWORDS", "SCHEMA_KEYWORDS"]

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
