"""The feature record of a revision, read off its normalised schema and the supplement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import Schema, pointer_text

__all__ = ["check_log_levels", "check_name_params", "features"]

_BY_METHOD = {
    "has_handshake": "initialize",
    "has_discovery": "server/discover",
    "has_listen": "subscriptions/listen",
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
    names = {method.name for method in methods}
    return {
        **{member: name in names for member, name in _BY_METHOD.items()},
        **{member: name in document["$defs"] for member, name in _BY_DEFINITION.items()},
        **supplement,
    }


def check_name_params(
    document: Schema, methods: list[MethodDefinition], name_params: Mapping[str, str], file: str
) -> None:
    """Raise `SchemaError` unless each method in `name_params` requires that parameter, in revisions that have it."""
    for method in methods:
        param = name_params.get(method.name)
        if param is not None and param not in document["$defs"].get(method.params, {}).get("required", []):
            reason = f"{method.name} does not require the parameter {param!r}"
            raise SchemaError(file, pointer_text(("name_params", method.name)), reason)


def check_log_levels(document: Schema, log_levels: Sequence[str], file: str) -> None:
    """Raise `SchemaError` unless `log_levels` are the levels of the revision, in any order."""
    stated = document["$defs"].get("LoggingLevel", {}).get("enum", log_levels)
    if sorted(stated) != sorted(log_levels):
        raise SchemaError(file, pointer_text(("log_levels",)), f"expected the levels {', '.join(stated)}")
