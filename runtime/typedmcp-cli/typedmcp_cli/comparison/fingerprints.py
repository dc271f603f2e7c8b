"""Tell whether two types are the same but for the names in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from typedmcp_cli.comparison.containment import ANNOTATIONS
from typedmcp_cli.comparison.interfaces import Node, is_array, is_node, ref_name

__all__ = ["Fingerprints"]


class Fingerprints:
    """Texts of the types of an interface that are equal for equal types."""

    def __init__(self, types: Mapping[str, Node]) -> None:
        self._types = types
        self._known: dict[str, str] = {}

    def of(self, node: Node) -> str:
        """Return the text of a type, in which references are texts of what they lead to."""
        return json.dumps(self._expand(node), sort_keys=True)

    def _expand(self, part: Any) -> Any:
        if is_array(part):
            return [self._expand(each) for each in part]
        if not is_node(part):
            return part
        if isinstance(reference := part.get("$ref"), str):
            return self._of_type(ref_name(reference))
        kept = {key: value for key, value in part.items() if key not in ANNOTATIONS}
        if kept.get("additionalProperties") in ({}, True):
            del kept["additionalProperties"]
        for key in ("anyOf", "enum", "required", "type"):
            if is_array(kept.get(key)):  # in any order
                kept[key] = sorted(json.dumps(self._expand(each), sort_keys=True) for each in kept[key])
        return {key: self._expand(value) for key, value in kept.items()}

    def _of_type(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = "itself"  # while it is looked at
            node = self._types.get(name)
            self._known[name] = name if node is None else sha256(self.of(node).encode()).hexdigest()
        return self._known[name]
