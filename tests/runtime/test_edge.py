"""What is sent to an older peer is exactly what its revision's schema says, whatever a handler returned."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

import typedmcp
from mcpspec._support.objects import leaves
from tests import official
from tests.strategies import fuzzed, instances
from typedmcp.dialect import methods, structs
from typedmcp.edge.convert import Compiler
from typedmcp.edge.revisions import DIALECT, LEGACY, types
from typedmcp.edge.revisions import methods as methods_of
from typedmcp.edge.rules import down, older_input

pytestmark = pytest.mark.long

RESULTS = sorted(
    {
        kind.__name__
        for method in methods.CLIENT_REQUESTS.values()
        for kind in leaves(method.result)
        if hasattr(types(LEGACY[-1]), kind.__name__)
    }
)
INPUTS = {"CreateMessageRequestParams": "sampling/createMessage", "ElicitRequestFormParams": "elicitation/create"}
"""Parameters of questions to the client, which are sent to those that have them."""


def validator(revision: str, name: str) -> Any:
    schema, key = official.patched_schema(revision)
    kind = Draft7Validator if key == "definitions" else Draft202012Validator
    return kind({**schema, "$ref": f"#/{key}/{name}"})


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_fits_the_schema_of_every_older_revision(name: str) -> None:
    seen = 0

    @fuzzed(instances(DIALECT, name), 120)
    def check(value: Any) -> None:
        nonlocal seen
        seen += 1
        result = structs.from_builtins(value, getattr(structs, name))
        for revision in LEGACY:
            older = getattr(types(revision), name)
            convert = down(revision).between(type(result), older)
            lost: list[str] = []
            sent = structs.to_builtins(result if convert is None else convert(result, lost))
            assert not [*validator(revision, name).iter_errors(sent)][:1], (revision, sent)
            types(revision).from_builtins(sent, older)

    check()
    assert seen >= 100


@pytest.mark.parametrize("name", INPUTS)
def test_every_question_fits_the_schema_of_the_older_revisions_that_have_it(name: str) -> None:
    @fuzzed(instances(DIALECT, name), 60)
    def check(value: Any) -> None:
        params = structs.from_builtins(value, getattr(structs, name))
        for revision in LEGACY:
            method = methods_of(revision).METHODS.get(INPUTS[name])
            if method is not None:
                lost: list[str] = []
                types(revision).encode(older_input(INPUTS[name], params, revision, lost))

    check()


def test_a_member_that_nothing_gives_is_an_error_when_a_converter_is_compiled() -> None:
    with pytest.raises(TypeError, match=r"TextContent.data: .* requires it"):
        Compiler({}).between(structs.TextContent, structs.ImageContent)


def test_a_derived_class_is_converted_like_its_base() -> None:
    class Mine(structs.TextContent, tag_field="type", tag="text"):
        pass

    older = types("2024-11-05")
    convert = down("2024-11-05").between(structs.CallToolResult, older.CallToolResult)
    assert convert is not None
    made = convert(structs.CallToolResult(content=[Mine(text="x")], result_type="complete"), [])
    assert older.encode(made) == b'{"content":[{"type":"text","text":"x"}]}'


def test_typedmcp_knows_every_revision() -> None:
    assert {*LEGACY, DIALECT} == set(typedmcp.Service(_Tools()).revisions)


class _Tools:
    async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
        raise NotImplementedError
