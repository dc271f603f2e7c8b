"""`validate` checks values that were made by hand, as they would be encoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcpspec.v2026_07_28 import models as everyday_models
from mcpspec.v2026_07_28 import structs as everyday_structs
from mcpspec.v2026_07_28.exact import models, structs
from tests.cases import each
from tests.generated.backends import FACES, backend
from tests.generated.vectors import REVISIONS, valid_values

STRUCTS = [structs, everyday_structs]
ALL = [*STRUCTS, models, everyday_models]
each_structs = each("types", STRUCTS, ids=["exact.structs", "structs"])
each_models = each("types", [models, everyday_models], ids=["exact.models", "models"])


def tool(types: Any, **members: Any) -> Any:
    return types.Tool(
        **{"name": "a", "input_schema": types.from_builtins({"type": "object"}, types.ToolInputSchema), **members}
    )


def result(types: Any, *content: Any, **members: Any) -> Any:
    return types.CallToolResult(content=[*content], **members)


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another type": (lambda t: tool(t, name=3), "name: expected string, got 3"),
    "a bound": (lambda t: t.Annotations(priority=2), "priority: expected at most 1, got 2"),
    "a literal": (lambda t: t.Annotations(audience=["me"]), 'audience[0]: expected "assistant" or "user", got "me"'),
    "a part": (
        lambda t: result(t, t.TextContent(text="a"), t.TextContent(text=None)),
        "content[1].text: expected string, got null",
    ),
    "plain data": (lambda t: result(t, {"type": "text"}), "content[0].text: required, but missing"),
    "a key of another name": (lambda t: tool(t, annotations={"readOnlyHint": 1}), "annotations.readOnlyHint: expected"),
    "no JSON": (lambda t: result(t, structured_content=1j), "Encoding objects of type complex is unsupported"),
    "not a number": (lambda t: result(t, structured_content=float("nan")), "JSON has neither NaN nor infinity"),
}
OWN: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "null in exact types": (structs, lambda t: tool(t, title=None), "title: expected string, got null"),
    "an open object": (
        structs,
        lambda t: tool(t, input_schema={"type": "array"}),
        'inputSchema.type: expected "object", got "array"',
    ),
    "null in plain types": (
        everyday_structs,
        lambda t: tool(t, annotations=t.ToolAnnotations(title=t.NULL)),
        "annotations.title: expected a value, or None for absence, got NULL",
    ),
    "a required member": (structs, lambda t: tool(t, name=t.UNSET), "name: required, but missing"),
}


@each_structs
@each("make, message", CASES.values(), ids=CASES)
def test_an_invalid_struct_is_rejected_at_its_place(types: Any, make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(types.DecodeError) as caught:
        types.validate(make(types))
    assert str(caught.value).startswith(message)


@each("types, make, message", OWN.values(), ids=OWN)
def test_what_only_one_face_has_is_checked(types: Any, make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(types.DecodeError) as caught:
        types.validate(make(types))
    assert str(caught.value) == message


@each_models
def test_assignments_and_copies_of_models_are_checked(types: Any) -> None:
    made = tool(types)
    made.name = 3
    with pytest.raises(types.DecodeError, match="name: expected string, got 3"):
        types.validate(made)
    with pytest.raises(types.DecodeError, match=r"content\[0\].text: expected string, got 3"):
        types.validate(result(types, types.TextContent(text="a").model_copy(update={"text": 3})))
    with pytest.raises(types.DecodeError, match="Unable to serialize unknown type: <class 'object'>"):
        types.validate(result(types, structured_content=object()))


@each("types", ALL)
def test_a_valid_value_is_returned(types: Any) -> None:
    made = tool(types, annotations=types.ToolAnnotations(title="b"))
    assert types.validate(made) is made
    blocks = [types.TextContent(text="a")]
    assert types.validate(blocks, list[types.ContentBlock]) is blocks
    with pytest.raises(types.DecodeError, match=r"\[0\]: expected object, got 3"):
        types.validate([3], list[types.ContentBlock])


@each("version", REVISIONS)
@each("face", FACES)
def test_all_valid_values_pass(version: str, face: str) -> None:
    types = backend(version, face)
    for vector in valid_values(version):
        value = types.decode(vector.text, types.type(vector.definition))
        assert types.module.validate(value, types.type(vector.definition)) is value
        assert types.module.validate(value) is value
