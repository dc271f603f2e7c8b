"""What older peers get of values of the dialect, of types that extend it, and of values that are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, get_args

import msgspec
import pytest

from mcpspec.support.everyday_structs import ConstantStruct
from mcpspec.support.structs import to_builtins
from tests.cases import each
from tests.revisions import own_types as own
from typedmcp.client.requests.encoder import META_PLACEHOLDER, RequestEncoder
from typedmcp.client.results.decoder import ResultProblem, result_decoder
from typedmcp.dialect import exact, methods, structs
from typedmcp.errors import DecodeError
from typedmcp.protocol.codec import Backend, OwnMethod, codec_for
from typedmcp.revisions.features import LEGACY, methods_of
from typedmcp.revisions.input_requests import downgrade_result

PARAMS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "x"},
    "prompts/get": {"name": "x"},
    "resources/read": {"uri": "a:b"},
    "completion/complete": {"ref": {"type": "ref/resource", "uri": "a"}, "argument": {"name": "a", "value": "b"}},
}
BACKENDS: Final[tuple[Backend, ...]] = get_args(Backend)
WITHOUT_RESOURCE_LINKS = [revision for revision in LEGACY if revision <= "2025-06-18"]
"""The revisions whose content has to be converted."""


def downgraded(method: str, result: Any, revision: str, table: Any = None) -> tuple[Any, list[str]]:
    """Return what a client on a revision gets of a result, as plain JSON, and what it loses."""
    lost: list[str] = []
    made = codec_for(revision, "msgspec", table).methods[method].downgrade(result, lost)
    return to_builtins(made), lost


@each("revision", LEGACY)
def test_every_request_of_a_client_has_its_metadata(revision: str) -> None:
    encoder = RequestEncoder(revision, None)
    for method in methods_of(revision).CLIENT_REQUESTS.keys() & methods.CLIENT_REQUESTS.keys():
        plain = {**PARAMS.get(method, {}), "_meta": META_PLACEHOLDER}
        params = structs.from_builtins(plain, methods.CLIENT_REQUESTS[method].params)
        sent = to_builtins(encoder.params(method, params, {"progressToken": 7}))
        assert sent["_meta"] == {"progressToken": 7}, method


class Derived(structs.TextContent, tag_field="type", tag="text"):
    pass


@each("revision", LEGACY)
def test_content_of_a_derived_class_is_sent_like_that_of_its_base(revision: str) -> None:
    result = structs.CallToolResult(content=[Derived(text="x")])
    assert downgraded("tools/call", result, revision) == ({"content": [{"type": "text", "text": "x"}]}, [])


TOOL = structs.Tool(name="t", input_schema={"type": "object"})
WRONG: dict[str, tuple[Any, str]] = {
    "a string": ("x", "got str"),
    "a tool": (TOOL, "got Tool"),
    "an exact type": (exact.TextContent(text="x"), "got mcpspec.v2026_07_28.exact.structs.TextContent"),
}


@each("revision", WITHOUT_RESOURCE_LINKS)
@each("wrong", WRONG)
def test_an_error_about_wrong_content_names_what_is_expected(revision: str, wrong: str) -> None:
    content, words = WRONG[wrong]
    expected = "expected TextContent or ImageContent or AudioContent or ResourceLink or EmbeddedResource"
    with pytest.raises(TypeError, match=f"^{expected}, {words}$"):
        downgraded("tools/call", structs.CallToolResult(content=[content]), revision)


@each("revision", LEGACY)
def test_members_that_extend_the_dialect_are_lost_on_older_revisions(revision: str) -> None:
    annotations = own.ToolAnnotations(read_only_hint=True, cost=0)
    tool = own.Tool(name="t", input_schema={"type": "object"}, owner="", annotations=annotations)
    sent, lost = downgraded("tools/list", own.ListToolsResult(tools=[tool]), revision, own)
    kept: dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}}
    if revision != "2024-11-05":
        kept["annotations"] = {"readOnlyHint": True}
    assert sent == {"tools": [kept]}
    assert {"Tool.owner", "ToolAnnotations.cost"} <= {*lost}


@each("revision", LEGACY)
def test_content_that_extends_the_dialect_is_reported_on_older_revisions(revision: str) -> None:
    content: list[structs.TextContent | own.CardContent] = [structs.TextContent(text="a"), own.CardContent(card="b")]
    sent, lost = downgraded("tools/call", own.CallToolResult(content=content), revision, own)
    assert sent == {"content": [{"type": "text", "text": "a"}, {"type": "acme/card", "card": "b"}]}
    assert lost == ["CardContent"]


class CompleteResult(ConstantStruct, kw_only=True):
    hits: list[str]


@each("revision", LEGACY)
@each("backend", BACKENDS)
def test_a_result_of_an_extension_stays_as_it_is_if_it_is_called_like_one_of_the_protocol(
    revision: str, backend: Backend
) -> None:
    method = OwnMethod(
        replace(methods.METHODS["completion/complete"], name="acme/complete", result=CompleteResult), None
    )
    lost: list[str] = []
    made = (
        codec_for(revision, backend, None, (method,))
        .methods["acme/complete"]
        .downgrade(CompleteResult(hits=["a"]), lost)
    )
    assert (to_builtins(made), lost) == ({"hits": ["a"]}, [])


@each("revision", LEGACY)
def test_a_schema_whose_dialect_is_no_string_is_a_problem(revision: str) -> None:
    schema = {"type": "object", "$schema": None}
    tools = [{"name": "a", "inputSchema": schema}, {"name": "b", "inputSchema": {"type": "object"}}]
    problems: list[ResultProblem] = []
    result = result_decoder("tools/list", revision)(msgspec.json.encode({"tools": tools}), problems)
    assert [tool.name for tool in result.tools] == ["b"]
    assert [problem.path for problem in problems] == ["result.tools[0].inputSchema.$schema"]


@each("revision", WITHOUT_RESOURCE_LINKS)
@each("is_list", [False, True])
def test_a_use_of_a_tool_is_no_answer_for_a_revision_without_it(revision: str, is_list: bool) -> None:
    use = structs.ToolUseContent(id="a", name="b", input={})
    result = structs.CreateMessageResult(role="assistant", content=[use] if is_list else use, model="m")
    with pytest.raises(DecodeError, match=r"^content\.type: expected .* got \"tool_use\""):
        downgrade_result("sampling/createMessage", result, revision)
