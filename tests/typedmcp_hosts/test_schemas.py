"""Schemas of tools in the formats of the APIs: hostile ones end at a limit, and cost one tool only."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import typedmcp
import typedmcp_hosts
from tests.cases import each
from tests.hostile_schemas import HOSTILE, find_excess, input_schema
from tests.server.scripted import run
from tests.typedmcp_hosts.test_llm import APIS, schema_in
from typedmcp import Diagnostic, DiagnosticKind
from typedmcp.dialect import handlers, structs
from typedmcp_hosts import LlmApi, call_for, tools_for
from typedmcp_hosts.formats import FORMATS
from typedmcp_hosts.schemas import DeclarationError, to_gemini_schema, to_json_schema

LIMIT = 40_000
EXPLODING = input_schema(HOSTILE["members, twice"])
PLAIN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


class Handler(handlers.ServerStub[typedmcp.Context]):
    """Offers a tool with a hostile schema between two others."""

    def list_tools(self, params: Any, ctx: typedmcp.Context) -> structs.ListToolsResult:
        schemas = {"first": PLAIN, "bad\x1b": EXPLODING, "last": PLAIN}
        return structs.ListToolsResult(
            tools=[structs.Tool(name=name, input_schema=schema) for name, schema in schemas.items()]
        )

    def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        return structs.CallToolResult(content=[structs.TextContent(text=params.name)])


@each("name", HOSTILE)
@each("convert", [to_json_schema, to_gemini_schema])
def test_the_work_and_the_result_are_in_proportion_to_the_schema_and_the_limit(
    convert: Callable[[dict[str, Any], int], dict[str, Any]], name: str
) -> None:
    schema = input_schema(HOSTILE[name])
    sizes = [0]

    def attempt() -> None:
        with suppress(DeclarationError):
            sizes.append(len(json.dumps(convert(schema, LIMIT), separators=(",", ":"))))

    assert not find_excess(attempt, 4 * (LIMIT + len(json.dumps(schema)))), "too much work"
    assert sizes[-1] <= LIMIT


def test_a_schema_whose_references_do_not_fit_in_place_keeps_them() -> None:
    made = to_json_schema(EXPLODING, 5000)
    assert made["properties"]["a"] == {"$ref": "#/$defs/D0"}
    assert len(made["$defs"]) == 31


def test_a_tool_whose_schema_is_too_large_is_left_out_and_reported_and_the_others_can_be_called() -> None:
    async def main() -> None:
        reports: list[Diagnostic] = []
        async with typedmcp.connect(Handler(), on_diagnostic=reports.append) as client:
            declared = await tools_for(client, "gemini")
            assert [each["name"] for each in declared] == ["first", "last"]
            (report,) = reports
            assert (report.kind, report.method) == (DiagnosticKind.INVALID_DATA, "tools/list")
            assert report.text == (
                "the tool 'bad\\x1b' is not declared to gemini: its inputSchema has more than 262144 bytes "
                "(max_schema_bytes) in the format of the API; raise the limit, or let the server offer a smaller schema"
            )
            result = await call_for(client, "gemini", {"functionCall": {"name": "last", "args": {}}})
            assert result["functionResponse"]["response"] == {"output": "last"}
            assert len(await tools_for(client, "anthropic")) == 3

    run(main)


@each("api", APIS)
def test_the_limit_is_an_option(api: LlmApi) -> None:
    async def main() -> None:
        async with typedmcp.connect(Handler(), on_diagnostic=print) as client:
            declared = await tools_for(client, api, max_schema_bytes=100)
            assert [schema_in(each) is not None for each in declared] == [True, True]

    run(main)


def test_a_group_reports_such_a_tool(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reports: list[Diagnostic] = []
        async with typedmcp_hosts.connect_all({"a": Handler(), "b": Handler()}, on_diagnostic=reports.append) as group:
            assert len(await tools_for(group, "gemini")) == 4
            assert [report.params for report in reports] == ["a_bad\x1b", "b_bad\x1b"]
        async with typedmcp_hosts.connect_all({"a": Handler()}) as group:
            assert await tools_for(group, "openai", max_schema_bytes=1) == []

    run(main)
    assert caplog.text.count("max_schema_bytes") == 3


ODD: list[Any] = [
    {"properties": {"a": {"required": 5, "type": "object", "properties": {"b": {}}}}},
    {"properties": {"a": {"prefixItems": {"0": {}}, "type": "array", "items": False}}},
    {"properties": {"a": {"type": {"b": []}, "anyOf": [None, 3]}}},
]


@each("schema", ODD)
@each("api", APIS)
def test_a_schema_that_is_not_valid_is_any_object(api: LlmApi, schema: dict[str, Any]) -> None:
    made = schema_in(FORMATS[api].declare("tool", "", {"type": "object", **schema}, LIMIT))
    assert made["type"] == "object"
