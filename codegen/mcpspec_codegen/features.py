"""The feature record of a revision, read off its normalised schema and the supplement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import Schema, pointer_text

__all__ = ["check_facts", "features", "find_log_level_gaps", "find_name_param_gaps"]

_BY_METHOD = {
    "has_handshake": "initialize",
    "has_discovery": "server/discover",
    "has_listen": "subscriptions/listen",
    "has_tasks": "tasks/result",
}
_BY_DEFINITION = {
    "has_batches": "JSONRPCBatchRequest",
    "has_input_requests": "InputRequiredResult",
    "has_cache_hints": "CacheableResult",
}


def features(document: Schema, methods: list[MethodDefinition], supplement: dict[str, bool]) -> dict[str, bool]:
    """Compute the boolean members of `mcpspec.features.Features` for one revision.

    `supplement` holds the features that upstream states in prose alone, by member.
    """
    names = _names(methods)
    return {
        **{member: name in names for member, name in _BY_METHOD.items()},
        **{member: name in document["$defs"] for member, name in _BY_DEFINITION.items()},
        **supplement,
    }


def check_facts(
    revisions: Sequence[tuple[Schema, list[MethodDefinition]]],
    name_params: Mapping[str, str],
    log_levels: Sequence[str],
    file: str,
) -> None:
    """Raise `SchemaError` for a fact of the supplement that no revision confirms.

    A fact that a newer revision contradicts is a gap and not an error, so that a bump ends.
    """
    gaps = [find_name_param_gaps(document, methods, name_params) for document, methods in revisions]
    for method in name_params:
        found = [
            gap.get(method) for gap, (_, methods) in zip(gaps, revisions, strict=True) if method in _names(methods)
        ]
        if found and all(found):
            raise SchemaError(file, pointer_text(("name_params", method)), f"{found[0]}; name one that it requires")
    known = {level for document, _ in revisions for level in _levels(document)}
    if known and (unknown := [level for level in log_levels if level not in known]):
        reason = f"no revision has the level {unknown[0]!r}; known: {', '.join(sorted(known))}"
        raise SchemaError(file, pointer_text(("log_levels",)), reason)


def _names(methods: list[MethodDefinition]) -> set[str]:
    return {method.name for method in methods}


def _levels(document: Schema) -> list[str]:
    levels: list[str] = document["$defs"].get("LoggingLevel", {}).get("enum", [])
    return levels


def find_name_param_gaps(
    document: Schema, methods: list[MethodDefinition], name_params: Mapping[str, str]
) -> dict[str, str]:
    """Return the methods of a revision that do not require their parameter in `name_params`, each with a text."""
    return {
        method.name: f"{method.name} does not require the parameter {name_params[method.name]!r}"
        for method in methods
        if method.name in name_params
        and name_params[method.name] not in document["$defs"].get(method.params, {}).get("required", [])
    }


def find_log_level_gaps(document: Schema, log_levels: Sequence[str]) -> list[str]:
    """List the log levels of a revision that `log_levels` lacks."""
    return [level for level in _levels(document) if level not in log_levels]
