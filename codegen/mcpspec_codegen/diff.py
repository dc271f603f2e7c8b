"""Read an interface for a comparison with another one."""

from __future__ import annotations

from mcpspec_codegen.comparison.interfaces import InterfaceShape, MethodShape, Node
from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import CHECKS, Schema
from mcpspec_codegen.spelling import join_checks

__all__ = ["read_interface"]


def read_interface(document: Schema, methods: list[MethodDefinition], codes: dict[str, int]) -> InterfaceShape:
    """Read an interface off a normalised schema, its methods and its error codes."""
    defs = document["$defs"]
    return InterfaceShape(
        types={name: _plain(node) for name, node in defs.items()},
        methods={
            method.name: MethodShape(
                method.sender,
                method.kind,
                method.message,
                method.params if method.params in defs else None,
                method.params_required,
                method.result,
            )
            for method in methods
        },
        codes=codes,
    )


def _plain(node: Schema) -> Node:
    """Return a definition as JSON Schema, which says whether an object is open."""
    others: Schema = {"additionalProperties": {}} if node["x"]["kind"] == "open" else {}
    kept = {key: value for key, value in node.items() if key not in ("x", "discriminator", CHECKS)}
    check = join_checks(node) or {}
    return {**others, **kept, **(check if check.keys().isdisjoint(kept) else {"allOf": node[CHECKS]})}
