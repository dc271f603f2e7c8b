"""Structured results are validated against the schema of their tool. Neither is trusted."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import Any

import pytest

from tests.cases import each
from typedmcp.client.results import output_validation
from typedmcp.client.results.output_validation import ListedTools
from typedmcp.dialect import structs
from typedmcp.errors import ProtocolError
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp_schemas import validate
from typedmcp_schemas.validate import can_validate

HUGE = 10**5000
WEATHER = {
    "type": "object",
    "properties": {"degrees": {"type": "number"}, "unit": {"enum": ["C", "F"]}, "days": {"items": {"type": "string"}}},
    "required": ["degrees"],
}


def tool(schema: Any = ..., name: str = "t") -> structs.Tool:
    members: dict[str, Any] = {} if schema is ... else {"outputSchema": schema}
    return structs.from_builtins({"name": name, "inputSchema": {"type": "object"}, **members}, structs.Tool)


def result(value: Any = ..., **members: Any) -> structs.CallToolResult:
    content: dict[str, Any] = {} if value is ... else {"structuredContent": value}
    return structs.from_builtins(
        {"content": [], "resultType": "complete", **content, **members}, structs.CallToolResult
    )


def check(schema: Any, value: Any = ..., **members: Any) -> str | None:
    tools, _ = listed(tool(schema))
    return tools.find_fault("t", result(value, **members))


def listed(*tools: structs.Tool, **options: Any) -> tuple[ListedTools, list[str]]:
    """Return listed tools, and the texts of what is reported about them."""
    reports: list[str] = []
    made = ListedTools(DEFAULT_LIMITS, lambda diagnostic: reports.append(diagnostic.text), **options)
    made.add(tools)
    return made, reports


def find_problem(schema: Any) -> str | None:
    """Return what is reported of a schema before the first call of its tool."""
    tools, reports = listed(tool(schema))
    with suppress(ProtocolError):
        tools.prepare("t")
    return reports[0] if reports else None


# Without the extra


def test_availability_is_known_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> None: ...

    monkeypatch.setattr(validate, "find_spec", find_spec)
    can_validate.cache_clear()
    try:
        assert not can_validate()
    finally:
        can_validate.cache_clear()


def nested(depth: int, leaf: Any, key: str = "a") -> Any:
    value = leaf
    for _ in range(depth):
        value = {key: value}
    return value


# Valid results


@pytest.fixture
def validator() -> None:
    pytest.importorskip("jsonschema_rs")


with_validator = pytest.mark.usefixtures("validator")

VALID: list[tuple[Any, Any]] = [
    (WEATHER, {"degrees": 21.5}),
    (WEATHER, {"degrees": 21, "unit": "C", "days": ["Mon"], "more": None}),
    ({}, None),
    ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
    ({"type": ["string", "null"]}, None),
    ({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}, "a"),
    ({"$defs": {"a b/c": {"type": "string"}}, "$ref": "#/$defs/a%20b~1c"}, "a"),
    ({"$defs": {"a": {"$anchor": "here", "type": "string"}}, "$ref": "#here"}, "a"),
    ({"$id": "https://a.b/c", "$defs": {"a": {"type": "string"}}, "$ref": "https://a.b/c#/$defs/a"}, "a"),
    ({"$id": "https://a.b/c", "properties": {"a": {"$ref": "c"}}}, {"a": {"a": 1}}),
    ({"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}, {"a": {"a": {}}}),
    ({"prefixItems": [{"type": "string"}], "items": {"type": "number"}}, ["a", 1, 2]),
    ({"properties": {"a": {"default": {"$ref": "https://x/"}, "examples": [{"$id": "q"}]}}}, {"a": 1}),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, ["a", 1]),
    ({"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "string"}, "a"),
    ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "object"}),
    ({"pattern": r"^(?!\.)[a-z.]+@[a-z]+$"}, "a.b@c"),
    ({"pattern": r"^(?=.*[0-9])(?=.*[)|(])(?!.*\s)\S{8,}$"}, "abcdef1)"),
    ({"pattern": r"^(?!\.)[a-z.]+@[a-z]+$"}, 7),
    ({"properties": {"pattern": {"const": {"pattern": "^(?!a)b"}}}}, {"pattern": {"pattern": "^(?!a)b"}}),
    ({"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}, {"x-a": 1}),
    (
        {"items": {"properties": {"id": {"pattern": "^[0-9a-f]{8}$"}, "text": {"pattern": "^.{1,255}$"}}}},
        [{"id": "00c0ffee", "text": "long " * 50}] * 5000,
    ),
    ({"maximum": 10**30}, 10**30),
    ({"format": "email"}, "no address"),  # only an annotation in 2020-12
]


@with_validator
@each("schema, value", VALID)
def test_a_valid_result_has_no_fault(schema: Any, value: Any) -> None:
    assert find_problem(schema) is None
    assert check(schema, value) is None


@with_validator
def test_errors_and_tools_without_a_schema_are_not_validated() -> None:
    tools, _ = listed(tool(), tool(WEATHER, "w"), tool({"type": "objekt"}, "x"))
    assert tools.find_fault("t", result()) is None
    assert tools.find_fault("t", result({"degrees": "warm"})) is None
    assert tools.find_fault("w", result(isError=True)) is None
    assert tools.find_fault("w", result({"degrees": "warm"}, isError=True)) is None
    assert tools.find_fault("x", result(isError=True)) is None


# Invalid results

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMaximum": True, "maximum": 3}
INVALID: list[tuple[Any, Any, str]] = [
    (WEATHER, {"degrees": "warm"}, 'structuredContent.degrees: "warm" is not of type "number"'),
    (WEATHER, {}, 'structuredContent: "degrees" is a required property'),
    (WEATHER, {"degrees": 1, "unit": "K"}, 'structuredContent.unit: "K" is not one of "C" or "F"'),
    (WEATHER, {"degrees": 1, "days": ["a", 2]}, 'structuredContent.days[1]: 2 is not of type "string"'),
    (WEATHER, None, 'structuredContent: null is not of type "object"'),
    (WEATHER, ..., "structuredContent: required by the tool's outputSchema, but missing"),
    ({"properties": {"a b\n": False}}, {"a b\n": 1}, 'structuredContent["a b\\n"]: False schema does not allow 1'),
    (DRAFT_4, 3, "structuredContent: 3 is greater than or equal to the maximum of 3"),
    (
        {"pattern": "^(?!-)[a-z-]+$"},
        "-a",
        'structuredContent: {"pattern":"^(?:-)","type":"string"} is not allowed for "-a"',
    ),
    ({"maxLength": 1}, "\u2028\n\x1b", 'structuredContent: "\\u2028\\n\\u001b" is longer than 1 character'),
]


@with_validator
@each("schema, value, text", INVALID)
def test_a_fault_names_its_place(schema: Any, value: Any, text: str) -> None:
    assert check(schema, value) == text


@with_validator
def test_values_that_are_not_json_have_a_fault() -> None:
    for value in (HUGE, [HUGE], {"a": HUGE}, object(), float("nan")):
        text = check({"type": "string"}, value)
        assert text is not None
        assert text.startswith("structuredContent: ")


@with_validator
def test_faults_are_short_for_any_value() -> None:
    text = check({"type": "string"}, ["x" * 100_000])
    assert text is not None
    assert len(text) < 400


# Schemas that cannot be used

CHAIN: dict[str, Any] = {
    **{f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)},
    "d40": {"type": "number"},
}
UNEVALUATED: dict[str, Any] = {
    **{f"d{i}": {"unevaluatedProperties": False, "allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(12)},
    "d12": {"properties": {"a": True}},
}
BELOW: dict[str, Any] = {
    **{f"d{i}": {"anyOf": [{"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}}] * 2} for i in range(40)},
    "d40": {"type": "number"},
}
TWICE = {"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}, "$ref": "#x"}
INSIDE: dict[str, Any] = {"$defs": {"a": {"$id": "https://q/", "$defs": {"b": {}}}}}

UNUSABLE: list[tuple[Any, str, str]] = [
    ({"type": "objekt"}, "outputSchema.type", '"objekt" is not valid'),
    ({"properties": {"a": {"minimum": "x"}}}, "outputSchema.properties.a.minimum", '"x" is not of type "number"'),
    ({"pattern": "("}, "outputSchema.pattern", '"(" is not a "regex"'),
    ({"pattern": r"^(a*)\1$"}, "outputSchema.pattern", "backreferences and very large patterns are not supported"),
    ({"pattern": "a(?=b)"}, "outputSchema.pattern", "lookaround"),
    ({"pattern": "^(?!a)b|c"}, "outputSchema.pattern", "lookaround"),
    ({"pattern": "^(?=a)?b"}, "outputSchema.pattern", "lookaround"),
    ({"pattern": "(((a{100}){100}){100}){10}"}, "outputSchema.pattern", 'is not a "regex"'),
    (
        {"$ref": "https://x.y/z"},
        "outputSchema.$ref",
        'refers to "https://x.y/z", which is outside it and is not fetched',
    ),
    ({"items": {"$ref": "file:///etc/passwd"}}, "outputSchema.items.$ref", "is not fetched"),
    ({"allOf": [{"$ref": "other.json"}]}, "outputSchema.allOf[0].$ref", "is not fetched"),
    ({"$id": "https://a.b/c", "$ref": "d"}, "outputSchema.$ref", "is not fetched"),
    ({"$defs": {"unused": {"$ref": "https://x.y/z"}}}, "outputSchema", "https://x.y/z"),
    ({"$ref": "#/$defs/a"}, "outputSchema.$ref", 'refers to "/$defs/a", which does not exist'),
    ({"$ref": "#a"}, "outputSchema.$ref", 'refers to "a", which does not exist'),
    (TWICE, "outputSchema.$ref", 'refers to "x", which is ambiguous'),
    ({**INSIDE, "$ref": "#/$defs/a"}, "outputSchema.$ref.$id", "inner schemas with an $id"),
    ({**INSIDE, "$ref": "#/$defs/a/$defs/b"}, "outputSchema.$ref.$id", "inner schemas with an $id"),
    ({"$schema": "https://x.y/z"}, "outputSchema.$schema", '"https://x.y/z" is not a supported dialect'),
    ({"$schema": "http://json-schema.org/draft-03/schema#"}, "outputSchema.$schema", "not a supported dialect"),
    ({"$defs": CHAIN, "$ref": "#/$defs/d0"}, "outputSchema", "too complex"),
    ({"$defs": BELOW, "$ref": "#/$defs/d0"}, "outputSchema", "too complex"),
    ({"$defs": UNEVALUATED, "$ref": "#/$defs/d0"}, "outputSchema", "too complex"),
    (nested(400, {}, "not"), "outputSchema", "nested too deeply"),
    ({"description": "x" * 300_000}, "outputSchema", "too large: 300018 bytes"),
]


@with_validator
@each("schema, path, reason", UNUSABLE, ids=[f"{p} {r}" for _, p, r in UNUSABLE])
def test_an_unusable_schema_is_a_problem_and_never_accepts_everything(schema: Any, path: str, reason: str) -> None:
    start = time.process_time()
    text = find_problem(schema)
    assert text is not None
    is_refused = "$schema" in path or "is not fetched" in reason
    what = "calls of t are refused" if is_refused else "the results of t cannot be validated"
    assert text.startswith(f"{what}: {path}: ")
    assert reason in text
    assert time.process_time() - start < 1


@with_validator
@each("dialect", ["https://x.y/z", "http://json-schema.org/draft-03/schema#", "urn:\x1b[31m"])
def test_a_tool_whose_output_schema_names_an_unknown_dialect_is_not_called(dialect: str) -> None:
    tools, _ = listed(tool({"$schema": dialect, "type": "object"}))
    with pytest.raises(ProtocolError, match=r"'t' is refused: outputSchema\.\$schema: ") as caught:
        tools.prepare("t")
    assert "is not a supported dialect" in str(caught.value)
    assert "`check_output=False` calls it all the same" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "is not a supported dialect" in str(tools.find_fault("t", result({})))  # listed again during the call


@with_validator
def test_a_schema_that_is_not_json_is_a_problem() -> None:
    text = find_problem({"maximum": HUGE})
    assert text is not None
    assert text.startswith("the results of t cannot be validated: outputSchema: cannot be encoded as JSON: ")


@with_validator
def test_references_are_never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("socket.socket", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    for reference in ("http://127.0.0.1:9/x", "file:///etc/hostname", "ftp://x/y", "//x/y", "x"):
        assert find_problem({"properties": {"a": {"$ref": reference}}}) is not None


# Values and schemas that could take long


SELF = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}
TREE = {"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}, "type": "object"}
RANDOM = "".join(random.Random(1).choices("ab", k=300_000))
EXPENSIVE = [{"pattern": f"(?:a{{1,40}}){{1,{40 + number}}}b"} for number in range(30)]
HEAVY: dict[str, tuple[Any, Any]] = {
    **{
        f"recursive {word}": (
            {"$ref": "#/$defs/x", "$defs": {"x": {word: [SELF, {**SELF, "title": "b"}]}}},
            nested(60, 1),
        )
        for word in ("allOf", "anyOf", "oneOf")
    },
    "catastrophic pattern": ({"pattern": "^(a+)+$"}, "a" * 5000 + "!"),
    "patterns of many states": ({"items": {"anyOf": EXPENSIVE}}, ["a" * 30] * 11_000),
    "pattern of many states": ({"pattern": "(a{1,50}){1,50}b"}, "a" * 300_000),
    "pattern of many states, at the end": ({"pattern": "(a{1,50}){1,50}b"}, "!" * 20_000 + "a" * 300_000),
    "names of many states": ({"patternProperties": {"[ab]*a[ab]{200}c": False}}, {RANDOM: 1}),
    "a pattern that applies often": (
        {"allOf": [{"$ref": "#/$defs/x"}] * 500, "$defs": {"x": {"pattern": "[ab]*a[ab]{150}c"}}},
        RANDOM,
    ),
    "many alternatives": ({"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}, list(range(100_000))),
    "deep tree": (TREE, nested(300, 1)),
    "hundreds of alternatives": (
        {"type": "object", "anyOf": [{"type": "null"}] * 400},
        {f"{number:x}": 1 for number in range(7500)},
    ),
    "thousands of alternatives": ({"anyOf": [{"type": "null"}] * 2000}, list(range(12_000))),
    "many schemas for many values": ({"allOf": [{"items": {"type": "integer"}}] * 2000}, [1] * 200_000),
}


@with_validator
@each("name", HEAVY)
def test_validation_takes_bounded_time(name: str) -> None:
    start = time.process_time()
    text = check(*HEAVY[name])
    assert text is not None
    assert text.startswith("structuredContent")
    assert time.process_time() - start < 2


@with_validator
@each(
    "number, pattern, is_usable",
    [
        (31, "^.{{1,240}}{}$", True),
        (33, "^.{{1,240}}{}$", False),
        (1000, "^[a-z]+{}$", True),
        (1100, "^[a-z]+{}$", False),
    ],
)
@each("keyword", ["pattern", "default"])
def test_the_patterns_of_a_schema_are_limited_by_their_compiled_size(
    number: int, pattern: str, is_usable: bool, keyword: str
) -> None:
    names = {f"p{each}": {"pattern": pattern.format(each)} for each in range(number)}
    problem = find_problem({"properties" if keyword == "pattern" else "default": names})
    assert (problem is None) is is_usable
    assert is_usable or "its patterns take more than 16777216 bytes" in str(problem)


@with_validator
def test_schemas_with_large_patterns_push_out_older_ones(compiled: list[bytes]) -> None:
    schemas = [
        {"properties": {f"p{each}": {"pattern": f"^.{{1,240}}{number}_{each}$"} for each in range(30)}}
        for number in range(8)
    ]
    tools, reports = listed(*[tool(schema, str(number)) for number, schema in enumerate(schemas)])
    for name in (*map(str, range(8)), "7", "4", "3"):
        tools.prepare(name)
    assert len(compiled) == 9
    assert reports == []


# Compiled schemas


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The schemas that were compiled, in order."""
    made: list[bytes] = []
    real = vars(output_validation)["_compile"]

    def compile_it(schema: bytes) -> Any:
        made.append(schema)
        return real(schema)

    monkeypatch.setattr(output_validation, "_compile", compile_it)
    return made


@with_validator
def test_a_schema_is_compiled_once_and_the_most_recently_used_are_kept(compiled: list[bytes]) -> None:
    every = [tool({"const": number}, str(number)) for number in range(3)]
    tools, _ = listed(*every, max_compiled=2)
    for name in "00010200":
        tools.prepare(name)
    assert len(compiled) == 3
    tools.add(every)  # listed again, with the same schemas
    tools.prepare("2")
    assert len(compiled) == 3
    tools.prepare("1")  # the least recently used
    assert len(compiled) == 4


@with_validator
def test_a_changed_schema_is_compiled_again() -> None:
    tools, _ = listed(tool({"type": "string"}))
    assert tools.find_fault("t", result(1)) is not None
    tools.add([tool({"type": "number"})])
    assert tools.find_fault("t", result(1)) is None


@with_validator
def test_a_problem_names_the_path_in_the_schema() -> None:
    reason = "\"x\" is not valid under any of the schemas listed in the 'anyOf' keyword"
    assert find_problem({"type": "x"}) == f"the results of t cannot be validated: outputSchema.type: {reason}"
