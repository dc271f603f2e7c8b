"""Constructor arguments that are unknown, missing or of a wrong type."""

from __future__ import annotations

from mcpspec.v2026_07_28.exact import models, structs


def unknown_arguments(schema: structs.ToolInputSchema, model_schema: models.ToolInputSchema) -> None:
    structs.Tool(name="x", input_schema=schema, colour="red")  # E
    structs.Tool(name="x", inputSchema=schema)  # E
    structs.TextContent(text="x", mime_type="text/plain")  # E
    structs.ToolInputSchema(properties={})  # E
    models.Tool(name="x", input_schema=model_schema, colour="red")  # E
    models.Tool(name="x", inputSchema=model_schema)  # E
    models.TextContent(text="x", mime_type="text/plain")  # E


def missing_arguments(schema: structs.ToolInputSchema, model_schema: models.ToolInputSchema) -> None:
    structs.Tool(input_schema=schema)  # E
    structs.TextContent()  # E
    structs.CallToolRequest(id=1)  # E
    structs.RequestMetaObject(protocol_version="2026-07-28")  # E
    models.Tool(input_schema=model_schema)  # E
    models.TextContent()  # E
    models.CallToolRequest(id=1)  # E
    models.RequestMetaObject(protocol_version="2026-07-28")  # E


def positional_arguments() -> None:
    structs.TextContent("x")  # E
    models.TextContent("x")  # E


def arguments_of_wrong_types(schema: structs.ToolInputSchema, model_schema: models.ToolInputSchema) -> None:
    structs.Tool(name=1, input_schema=schema)  # E
    structs.Tool(name="x", input_schema=schema, title=None)  # E
    structs.Tool(name="x", input_schema={"type": "object"})  # E
    structs.CallToolResult(content=["x"], result_type="complete")  # E
    structs.ProgressNotificationParams(progress_token=1.5, progress=1)  # E
    structs.RequestMetaObject(protocol_version=1, client_capabilities=structs.ClientCapabilities())  # E
    structs.ImageContent(data=b"", mime_type="image/png")  # E
    models.Tool(name=1, input_schema=model_schema)  # E
    models.Tool(name="x", input_schema=model_schema, title=None)  # E
    models.Tool(name="x", input_schema=schema)  # E
    models.CallToolResult(content=["x"], result_type="complete")  # E
    models.ProgressNotificationParams(progress_token=1.5, progress=1)  # E
    models.ImageContent(data=b"", mime_type="image/png")  # E


def defaults_of_wrong_types(page: list[structs.Tool], model_page: list[models.Tool]) -> None:
    structs.ListToolsResult(tools=page, ttl_ms="1")  # E
    structs.ListToolsResult(tools=page, cache_scope="secret")  # E
    models.ListToolsResult(tools=model_page, ttl_ms="1")  # E
    models.ListToolsResult(tools=model_page, cache_scope="secret")  # E


def other_constants() -> None:
    structs.CancelledNotification(jsonrpc="1.0", params=structs.CancelledNotificationParams(request_id=1))  # E
    structs.TextContent(type="image", text="x")  # E
    structs.TextContent(type="text", text="x")  # E
    structs.BooleanSchema(type="string")  # E
    structs.ToolInputSchema(type="array")  # E
    models.CancelledNotification(jsonrpc="1.0", params=models.CancelledNotificationParams(request_id=1))  # E
    models.TextContent(type="image", text="x")  # E
    models.BooleanSchema(type="string")  # E
