"""Types that extend the dialect, in the form of a compiled package: tools have an owner, and content may be a card."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import field as member

from mcpspec.support.everyday_structs import ConstantStruct, Struct, constant
from mcpspec.support.methods import Method
from typedmcp.dialect import methods, structs

__all__ = [
    "CLIENT_NOTIFICATIONS", "CLIENT_REQUESTS", "METHODS", "PROTOCOL_VERSION", "CallToolResult", "CardContent",
    "ListToolsResult", "Tool", "ToolAnnotations",
]  # fmt: skip


class ToolAnnotations(Struct, kw_only=True):
    title: str | None = None
    read_only_hint: bool | None = member(name="readOnlyHint", default=None)
    destructive_hint: bool | None = member(name="destructiveHint", default=None)
    idempotent_hint: bool | None = member(name="idempotentHint", default=None)
    open_world_hint: bool | None = member(name="openWorldHint", default=None)
    cost: int | None = None


class Tool(Struct, kw_only=True):
    name: str
    title: str | None = None
    icons: list[structs.Icon] | None = None
    description: str | None = None
    input_schema: dict[str, Any] = member(name="inputSchema")
    output_schema: dict[str, Any] | None = member(name="outputSchema", default=None)
    annotations: ToolAnnotations | None = None
    meta: dict[str, Any] | None = member(name="_meta", default=None)
    owner: str | None = None


class CardContent(ConstantStruct, kw_only=True, tag_field="type", tag="acme/card"):
    card: str


class ListToolsResult(ConstantStruct, kw_only=True):
    result_type: str = constant("complete", name="resultType")
    ttl_ms: int = member(name="ttlMs", default=0)
    cache_scope: str = member(name="cacheScope", default="private")
    next_cursor: str | None = member(name="nextCursor", default=None)
    tools: list[Tool]
    meta: dict[str, Any] | None = member(name="_meta", default=None)


class CallToolResult(ConstantStruct, kw_only=True):
    result_type: str = constant("complete", name="resultType")
    content: list[structs.TextContent | CardContent]
    structured_content: Any = member(name="structuredContent", default=None)
    is_error: bool = member(name="isError", default=False)
    meta: dict[str, Any] | None = member(name="_meta", default=None)


PROTOCOL_VERSION = methods.PROTOCOL_VERSION
_OWN = {"tools/list": ListToolsResult, "tools/call": CallToolResult}
CLIENT_REQUESTS: dict[str, Method[Any, Any]] = {
    name: replace(method, result=_OWN[name]) if name in _OWN else method
    for name, method in methods.CLIENT_REQUESTS.items()
}
CLIENT_NOTIFICATIONS = methods.CLIENT_NOTIFICATIONS
METHODS: dict[str, Method[Any, Any]] = {**methods.METHODS, **CLIENT_REQUESTS}
