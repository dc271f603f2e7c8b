"""`UNSET` and `MISSING` mark absent members."""

from __future__ import annotations

from typing import assert_type

from pydantic_core import MISSING

from mcpspec.v2025_11_25.exact import structs as structs_2025
from mcpspec.v2026_07_28.exact import models, structs
from mcpspec.v2026_07_28.exact.structs import UNSET, UnsetType


def an_optional_member_of_a_struct_may_be_unset(tool: structs.Tool) -> str:
    assert_type(tool.title, str | UnsetType)
    if tool.title is UNSET:
        return tool.name
    return assert_type(tool.title, str)


def a_member_of_a_struct_that_is_not_unset_is_there(tool: structs.Tool) -> None:
    if tool.annotations is not UNSET:
        assert_type(tool.annotations, structs.ToolAnnotations)
        assert_type(tool.annotations.read_only_hint, bool | UnsetType)
    if tool.output_schema is not UNSET:
        assert_type(tool.output_schema, structs.ToolOutputSchema)


def a_local_name_for_a_member_of_a_struct_narrows_too(result: structs.ListToolsResult) -> None:
    cursor = result.next_cursor
    while cursor is not UNSET:
        assert_type(cursor, str)
        cursor = UNSET


def an_optional_member_of_a_model_may_be_missing(tool: models.Tool) -> str:
    if tool.title is MISSING:
        return tool.name
    return assert_type(tool.title, str)


def a_member_of_a_model_that_is_not_missing_is_there(tool: models.Tool) -> None:
    if tool.annotations is not MISSING:
        assert_type(tool.annotations, models.ToolAnnotations)
    if tool.output_schema is not MISSING:
        assert_type(tool.output_schema, models.ToolOutputSchema)


def an_optional_member_of_an_open_object_may_be_unset(meta: structs.RequestMetaObject) -> None:
    assert_type(meta.protocol_version, str)
    assert_type(meta.client_info, structs.Implementation | UnsetType)
    if meta.client_info is not UNSET:
        assert_type(meta.client_info, structs.Implementation)


def null_is_not_absence(task: structs_2025.Task) -> None:
    assert_type(task.ttl, int | None)
