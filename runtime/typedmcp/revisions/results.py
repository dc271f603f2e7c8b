"""Conversion of results of older revisions to the dialect, which requires more members.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Struct

from mcpspec.support.converters import ConverterCompiler, DroppedFields, Rule
from mcpspec.support.objects import spread_union
from mcpspec.support.rules import RENAMED, RESULT_DEFAULTS, upgrade_rules
from mcpspec.support.structs import OpenObject
from typedmcp import dialect
from typedmcp.revisions.features import DIALECT, structs_of

__all__ = [
    "CACHEABLE_METHODS", "STALE_METHODS", "build_open_object", "exact_result_upgrader", "result_upgrader",
]  # fmt: skip

_REQUESTS = dialect.methods.CLIENT_REQUESTS

CACHEABLE_METHODS: Final = frozenset(
    name
    for name, method in _REQUESTS.items()
    if any("ttl_ms" in kind.__struct_fields__ for kind in spread_union(method.result))
)
"""The methods whose results say how long they may be cached."""

STALE_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(
        method
        for method in _REQUESTS
        if method.endswith("/list") and method.split("/")[0] == name.split("/")[1]  # the feature, such as `tools`
    )
    for name in dialect.methods.SERVER_NOTIFICATIONS
    if name.endswith("/list_changed")
}
"""The methods whose cached results a notification makes stale, by its name."""

_BuildSchema: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

_IGNORED_FIELDS: Final = frozenset({"Tool.execution"})
"""Members of older revisions without a place in the dialect, where tasks are an extension. They are not reported."""


@cache
def result_upgrader(revision: str) -> ConverterCompiler:
    """Return the compiler of converters from exact results of a revision to results of the dialect."""
    rules = {**upgrade_rules(dialect.structs), **dict(_result_rules(revision, dict, dict))}
    return ConverterCompiler(rules, _IGNORED_FIELDS, renamed=RENAMED, reuse=False, absent=None)


@cache
def exact_result_upgrader(revision: str) -> ConverterCompiler:
    """Return the compiler of converters from exact results of a revision to exact results of the dialect."""
    exact = dialect.exact
    input_schema = partial(build_open_object, exact.ToolInputSchema)
    output_schema = partial(build_open_object, exact.ToolOutputSchema)
    own = _result_rules(revision, input_schema, output_schema, absent=UNSET)
    rules = {**upgrade_rules(exact), **dict(own)}
    return ConverterCompiler(rules, _IGNORED_FIELDS, renamed=RENAMED, reuse=False)


def _result_rules(
    revision: str, input_schema: _BuildSchema, output_schema: _BuildSchema, absent: Any = None
) -> Iterator[tuple[str, Rule]]:
    older = structs_of(revision)
    for method in _REQUESTS.values():
        for kind in spread_union(method.result):
            missing = _fields(kind) - _fields(getattr(older, kind.__name__, None))
            for name in RESULT_DEFAULTS.keys() & missing:
                yield f"{kind.__name__}.{name}", _constant(RESULT_DEFAULTS[name])
    if revision != DIALECT:
        yield "Tool.input_schema", _schema_rule("input_schema", input_schema, absent)
        yield "Tool.output_schema", _schema_rule("output_schema", output_schema, absent)


def _fields(kind: Any) -> set[str]:
    return set(kind.__struct_fields__) if isinstance(kind, type) and issubclass(kind, Struct) else set()


def _constant(value: Any) -> Rule:
    return lambda _result, _dropped: value


def _schema_rule(name: str, build: _BuildSchema, absent: Any) -> Rule:
    """Build the rule for a tool's schema, whose members are copied unchanged."""

    def rule(tool: Any, _dropped: DroppedFields) -> Any:
        schema = getattr(tool, name, UNSET)
        if schema is UNSET:
            return absent
        if not isinstance(schema.get("$schema", ""), str):  # older revisions do not declare it
            raise ValueError("$schema")
        return build(schema)

    return rule


def build_open_object(kind: type[OpenObject], members: dict[str, Any]) -> OpenObject:
    """Build an open object from members that have been checked already."""
    made = kind.__new__(kind)
    made.update(members)
    return made
