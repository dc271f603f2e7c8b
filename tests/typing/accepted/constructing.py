"""Constructors accept attribute names, need no constants and no optional members, and check types."""

from __future__ import annotations

from typing import Literal, assert_type

from mcpspec.ext.tasks.exact import models as tasks_models
from mcpspec.ext.tasks.exact import structs as tasks_structs
from mcpspec.v2024_11_05.exact import structs as structs_2024
from mcpspec.v2026_07_28.exact import models, structs


def structs_without_their_constants() -> structs.CallToolRequest:
    assert_type(structs.TextContent(text="x"), structs.TextContent)
    assert_type(structs.BooleanSchema(), structs.BooleanSchema)
    meta = structs.RequestMetaObject(
        protocol_version="2026-07-28", client_capabilities=structs.ClientCapabilities(roots={})
    )
    request = structs.CallToolRequest(id=1, params=structs.CallToolRequestParams(meta=meta, name="grep"))
    assert_type(request.jsonrpc, Literal["2.0"])
    return request


def models_without_their_constants() -> models.CallToolRequest:
    assert_type(models.TextContent(text="x"), models.TextContent)
    assert_type(models.BooleanSchema(), models.BooleanSchema)
    meta = models.RequestMetaObject(
        protocol_version="2026-07-28", client_capabilities=models.ClientCapabilities(roots={})
    )
    request = models.CallToolRequest(id=1, params=models.CallToolRequestParams(meta=meta, name="grep"))
    assert_type(request.jsonrpc, Literal["2.0"])
    return request


def results_without_their_defaults(page: list[structs.Tool], model_page: list[models.Tool]) -> None:
    assert_type(structs.CallToolResult(content=[]).result_type, str)
    assert_type(models.CallToolResult(content=[]).result_type, str)
    assert_type(structs.ListToolsResult(tools=page).cache_scope, Literal["private", "public"])
    assert_type(models.ListToolsResult(tools=model_page).cache_scope, Literal["private", "public"])
    structs.ListToolsResult(tools=page, ttl_ms=60_000, cache_scope="public", result_type="complete")
    models.ListToolsResult(tools=model_page, ttl_ms=60_000, cache_scope="public", result_type="complete")
    structs.InputRequiredResult(request_state="x")
    models.InputRequiredResult(request_state="x")
    structs.Result()
    models.Result()


def constants_may_still_be_passed() -> None:
    structs.JSONRPCNotification(jsonrpc="2.0", method="notifications/x")
    models.JSONRPCNotification(jsonrpc="2.0", method="notifications/x")
    models.TextContent(type="text", text="x")


def attribute_names_where_they_differ_from_the_wire() -> None:
    structs.ImageContent(data="", mime_type="image/png")
    models.ImageContent(data="", mime_type="image/png")
    structs.Implementation(name="x", version="1", website_url="https://example.com")
    models.Implementation(name="x", version="1", website_url="https://example.com")


def open_objects() -> None:
    capabilities = structs.ClientCapabilities()
    meta = structs.RequestMetaObject(protocol_version="2026-07-28", client_capabilities=capabilities)
    assert_type(meta, structs.RequestMetaObject)
    assert_type(meta.client_capabilities, structs.ClientCapabilities)
    meta["com.example/trace"] = {"id": 1}
    meta.progress_token = 7
    schema = structs.ToolInputSchema(schema_="https://json-schema.org/draft/2020-12/schema")
    assert_type(schema.type, Literal["object"])
    schema["properties"] = {"x": {"type": "string"}}


def members_of_a_struct_can_be_set(tool: structs.Tool) -> None:
    tool.title = "Grep"
    tool.title = structs.UNSET


def members_of_a_model_can_be_set(tool: models.Tool) -> None:
    tool.title = "Grep"


def other_revisions_and_extensions() -> None:
    assert_type(structs_2024.PingRequest(id=1), structs_2024.PingRequest)
    tasks_structs.GetTaskRequestParams(task_id="1")
    tasks_models.GetTaskRequestParams(task_id="1")
