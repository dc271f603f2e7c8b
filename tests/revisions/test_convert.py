"""Converted values match the schemas of older revisions, whatever a handler returned."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

import typedmcp
from mcpspec.support.objects import spread_union
from tests import official
from tests.pairs import examples
from tests.strategies import fuzzed, instances
from typedmcp.dialect import methods, structs
from typedmcp.revisions.conversions import downgrader
from typedmcp.revisions.features import DIALECT, LEGACY, methods_of, structs_of
from typedmcp.revisions.input_requests import downgrade_request

pytestmark = pytest.mark.long

RESULTS = sorted(
    {
        kind.__name__
        for method in methods.CLIENT_REQUESTS.values()
        for kind in spread_union(method.result)
        if hasattr(structs_of(LEGACY[-1]), kind.__name__)
    }
)
INPUTS = {"CreateMessageRequestParams": "sampling/createMessage", "ElicitRequestFormParams": "elicitation/create"}
"""The parameters of requests for input, with their methods."""


def validator(revision: str, name: str) -> Any:
    schema, key = official.patched_schema(revision)
    kind = Draft7Validator if key == "definitions" else Draft202012Validator
    return kind({**schema, "$ref": f"#/{key}/{name}"})


@pytest.mark.parametrize("name", RESULTS)
def test_every_downgraded_result_matches_the_schema_of_its_revision(name: str) -> None:
    seen = 0

    @fuzzed(instances(DIALECT, name), examples(120))
    def check(value: Any) -> None:
        nonlocal seen
        seen += 1
        result = structs.from_builtins(value, getattr(structs, name))
        for revision in LEGACY:
            older = getattr(structs_of(revision), name)
            convert = downgrader(revision).method(name)
            lost: list[str] = []
            sent = structs.to_builtins(result if convert is None else convert(result, lost))
            assert not [*validator(revision, name).iter_errors(sent)][:1], (revision, sent)
            structs_of(revision).from_builtins(sent, older)

    check()
    assert seen >= examples(100)


@pytest.mark.parametrize("name", INPUTS)
def test_every_downgraded_request_for_input_matches_the_types_of_its_revision(name: str) -> None:
    @fuzzed(instances(DIALECT, name), examples(60))
    def check(value: Any) -> None:
        params = structs.from_builtins(value, getattr(structs, name))
        for revision in LEGACY:
            method = methods_of(revision).METHODS.get(INPUTS[name])
            if method is not None:
                lost: list[str] = []
                structs_of(revision).encode(downgrade_request(INPUTS[name], params, revision, lost))

    check()


def test_a_derived_class_is_converted_like_its_base() -> None:
    class Mine(structs.TextContent, tag_field="type", tag="text"):
        pass

    older = structs_of("2024-11-05")
    convert = downgrader("2024-11-05").method("CallToolResult")
    made = convert(structs.CallToolResult(content=[Mine(text="x")], result_type="complete"), [])
    assert older.encode(made) == b'{"content":[{"type":"text","text":"x"}]}'


def test_a_server_supports_every_revision_by_default() -> None:
    assert {*LEGACY, DIALECT} == set(typedmcp.ServerConfig(_Tools()).revisions)


class _Tools:
    async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
        raise NotImplementedError
