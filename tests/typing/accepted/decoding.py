"""`decode` returns the given type, a class or a union."""

from __future__ import annotations

from typing import Any, assert_type

from mcpspec.v2026_07_28.exact import models, structs


def a_class_of_structs(raw: bytes, parsed: object) -> None:
    assert_type(structs.decode(raw, structs.Tool), structs.Tool)
    assert_type(structs.from_builtins(parsed, structs.Tool), structs.Tool)


def a_class_of_models(raw: bytes, parsed: object) -> None:
    assert_type(models.decode(raw, models.Tool), models.Tool)
    assert_type(models.from_builtins(parsed, models.Tool), models.Tool)


def a_tagged_union_of_structs(raw: bytes, parsed: object) -> None:
    assert_type(structs.decode(raw, structs.ContentBlock), structs.ContentBlock)
    assert_type(structs.from_builtins(parsed, structs.ClientRequest), structs.ClientRequest)
    if (block := structs.decode(raw, structs.ContentBlock)).type == "text":
        assert_type(block, structs.TextContent)


def a_tagged_union_of_models(raw: bytes, parsed: object) -> None:
    assert_type(models.decode(raw, models.ContentBlock), models.ContentBlock)
    assert_type(models.from_builtins(parsed, models.ClientRequest), models.ClientRequest)
    if (block := models.decode(raw, models.ContentBlock)).type == "text":
        assert_type(block, models.TextContent)


def an_untagged_union_of_structs(raw: bytes) -> None:
    assert_type(structs.decode(raw, structs.JSONRPCMessage), structs.JSONRPCMessage)
    assert_type(
        structs.decode(raw, structs.JSONRPCResponse), structs.JSONRPCResultResponse | structs.JSONRPCErrorResponse
    )


def an_untagged_union_of_models(raw: bytes) -> None:
    assert_type(models.decode(raw, models.JSONRPCMessage), models.JSONRPCMessage)
    assert_type(models.decode(raw, models.JSONRPCResponse), models.JSONRPCResultResponse | models.JSONRPCErrorResponse)


def other_types_than_objects(raw: bytes) -> None:
    assert_type(structs.decode(raw, structs.RequestId), str | int)
    assert_type(models.decode(raw, models.RequestId), str | int)
    assert_type(structs.decode(raw, list[structs.Tool]), list[structs.Tool])
    assert_type(models.decode(raw, list[models.Tool]), list[models.Tool])


def all_forms_of_json_text(text: str, array: bytearray, view: memoryview) -> None:
    for raw in (text, array, view):
        assert_type(structs.decode(raw, structs.Tool), structs.Tool)
        assert_type(models.decode(raw, models.Tool), models.Tool)


def what_encoding_yields(tool: structs.Tool, model: models.Tool) -> None:
    assert_type(structs.encode(tool), bytes)
    assert_type(models.encode(model), bytes)
    assert_type(structs.to_builtins(tool), Any)
    assert_type(models.to_builtins(model), Any)


def what_an_error_tells(error: structs.DecodeError) -> None:
    assert_type(error.path, str)
    assert_type(error.reason, str)
