"""The offer of a server: its tools, prompts, resources and templates, and the lock file that keeps it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from typedmcp import Client, types
from typedmcp.building import decode_json
from typedmcp.errors import RemoteError, UsageError

__all__ = ["Offer", "fetch_offer", "read_lock", "write_lock"]

_FORMAT: Final = 1
_METHOD_NOT_FOUND: Final = -32601


class Offer(msgspec.Struct, kw_only=True):
    """The offer of a server, as plain JSON in the dialect, sorted by name."""

    format: int = _FORMAT
    server: str
    """The name of the server."""
    tools: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    prompts: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    resources: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    templates: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])


async def fetch_offer(client: Client) -> Offer:
    """List all that a server offers. A list that the server does not have is empty.

    Raises the exceptions of calls.
    """
    declared = client.server.capabilities
    info = client.server.info
    offer = Offer(server=info.name if info is not None else "server")
    if declared.tools is not None:
        offer.tools = await _list(client.tools, "name")
    if declared.prompts is not None:
        offer.prompts = await _list(client.prompts, "name")
    if declared.resources is not None:
        offer.resources = await _list(client.resources, "uri")
        offer.templates = await _list(client.resource_templates, "uriTemplate")
    return offer


async def _list(fetch: Callable[[], AsyncIterator[Any]], key: str) -> list[dict[str, Any]]:
    """Return the items of a list as JSON, sorted and without `_meta`, of which nothing is generated."""
    items: dict[str, dict[str, Any]] = {}
    try:
        async for item in fetch():
            plain: dict[str, Any] = types.to_builtins(item)
            items.setdefault(
                plain[key], {name: value for name, value in plain.items() if name not in ("_meta", "icons")}
            )
    except RemoteError as error:
        if error.code != _METHOD_NOT_FOUND:  # a server may have resources and no templates
            raise
    return [items[name] for name in sorted(items)]


def write_lock(offer: Offer, file: str | os.PathLike[str]) -> None:
    """Write an offer to a lock file, one definition after the other, so that a version control shows changes well."""
    text = msgspec.json.format(msgspec.json.encode(offer, order="deterministic"), indent=2)
    try:
        with open(file, "wb") as target:
            target.write(text + b"\n")
    except OSError as error:
        raise UsageError(f"{os.fspath(file)} cannot be written: {error.strerror}") from error


def read_lock(file: str | os.PathLike[str]) -> Offer:
    """Read a lock file. Raises `UsageError` if it is none."""
    name = os.fspath(file)
    try:
        with open(file, "rb") as source:
            offer: Offer = decode_json(source.read(), Offer)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}; write it with --out and --lock") from error
    except ValueError as error:
        raise UsageError(f"{name} is not a lock file: {error}; write it again with --out and --lock") from error
    if offer.format != _FORMAT:
        raise UsageError(f"{name} is a lock file of another version; write it again with --out and --lock")
    return offer
