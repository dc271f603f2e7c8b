"""The tools, resources, templates and prompts of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, TypeAlias

from typedmcp import Client, types
from typedmcp.errors import MethodNotFoundError

__all__ = ["JSON_NAMES", "Feature", "Kind", "list_features"]


Feature: TypeAlias = types.Tool | types.Resource | types.ResourceTemplate | types.Prompt
Kind: TypeAlias = Literal["tools", "resources", "templates", "prompts"]

JSON_NAMES: dict[Kind, str] = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resourceTemplates",
    "prompts": "prompts",
}
"""The names of the lists in the protocol's results."""


async def list_features(client: Client, kind: Kind | None = None) -> dict[Kind, Sequence[Feature]]:
    """List everything of one kind, or of all kinds that the server declares."""
    if kind is not None:
        return {kind: await _list_kind(client, kind)}
    declared = client.server.capabilities
    found: dict[Kind, Sequence[Feature]] = {}
    if declared.tools is not None:
        found["tools"] = await _list_kind(client, "tools")
    if declared.resources is not None:
        found["resources"] = await _list_kind(client, "resources")
        try:
            found["templates"] = await _list_kind(client, "templates")
        except MethodNotFoundError:  # a server without templates may answer so
            found["templates"] = ()
    if declared.prompts is not None:
        found["prompts"] = await _list_kind(client, "prompts")
    return found


async def _list_kind(client: Client, kind: Kind) -> Sequence[Feature]:
    lists: dict[Kind, Callable[[], AsyncIterator[Feature]]] = {
        "tools": client.tools,
        "resources": client.resources,
        "templates": client.resource_templates,
        "prompts": client.prompts,
    }
    return [item async for item in lists[kind]()]
