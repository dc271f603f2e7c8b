"""Conversion of capabilities between the dialect and the revision of a peer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpspec.support.objects import is_object
from mcpspec.support.structs import from_builtins
from typedmcp.errors import DecodeError
from typedmcp.revisions.features import methods_of, structs_of

__all__ = [
    "capability_of", "client_capabilities", "extensions_of", "has_sampling_context", "known_capabilities",
    "missing_capabilities", "undeclared_methods", "upgrade_capabilities",
]  # fmt: skip

_CAPABILITIES: Final = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "logging": "logging",
}
"""The capability of a server that belongs to the requests with a prefix."""


def capability_of(method: str) -> str:
    """Return the capability of a server that a request of clients needs; an empty string if it needs none."""
    return _CAPABILITIES.get(method.partition("/")[0], "")


def client_capabilities(revision: str, *, sampling: bool, forms: bool, urls: bool, roots: bool) -> dict[str, Any]:
    """Build the capabilities that a client declares on a revision, as plain JSON.

    `forms` and `urls` are the modes of elicitation. Revisions without modes have forms only.
    """
    declared: dict[str, Any] = {}
    if sampling:
        declared["sampling"] = {}
    has_modes = hasattr(structs_of(revision), "ElicitRequestURLParams")
    if forms or (urls and has_modes):
        modes: dict[str, Any] = {**({"form": {}} if forms else {}), **({"url": {}} if urls else {})}
        declared["elicitation"] = modes if has_modes else {}
    if roots:
        is_notified = "notifications/roots/list_changed" in methods_of(revision).CLIENT_NOTIFICATIONS
        declared["roots"] = {"listChanged": True} if is_notified else {}
    return declared


def has_sampling_context(revision: str) -> bool:
    """Return whether a client declares on a revision that it heeds `includeContext`, with `sampling.context`."""
    sampling: Any = getattr(structs_of(revision), "ClientCapabilitiesSampling", None)
    return sampling is not None and "context" in sampling.__annotations__


def known_capabilities(declared: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return the capabilities of a client, as plain JSON, without modes of elicitation that the revision lacks.

    A client declares what it can do on the newest revision, before the server chooses an older one.
    """
    if "elicitation" not in declared or hasattr(structs_of(revision), "ElicitRequestURLParams"):
        return declared
    return {**declared, "elicitation": {}}


def missing_capabilities(request: Any, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that an input request needs and that the client has not declared.

    `request` is one of the dialect, `declared` and the result are plain JSON, such as `{"sampling": {"tools": {}}}`.
    """
    missing: dict[str, Any] = {}
    for name, parts in _needed_capabilities(request, declared).items():
        if name not in declared:
            missing[name] = parts
        elif any(part not in declared[name] for part in parts):
            missing[name] = {part: {} for part in parts if part not in declared[name]}
    return missing


def _needed_capabilities(request: Any, declared: Mapping[str, Any]) -> dict[str, Any]:
    if request.method == "roots/list":
        return {"roots": {}}
    if request.method == "elicitation/create":
        if request.params.mode == "url":
            return {"elicitation": {"url": {}}}
        # A client that declares elicitation without modes means forms.
        return {"elicitation": {"form": {}} if declared.get("elicitation") else {}}
    has_tools = request.params.tools is not None or request.params.tool_choice is not None
    return {"sampling": {"tools": {}} if has_tools else {}}


def undeclared_methods(capabilities: Any, revision: str) -> dict[str, str]:
    """Return the requests of clients whose capability a server has not declared, each with that capability.

    `capabilities` are the server's, in the dialect. A capability that the revision does not know is not needed.
    """
    known = structs_of(revision).ServerCapabilities.__annotations__
    undeclared: dict[str, str] = {}
    for method in methods_of(revision).CLIENT_REQUESTS:
        name = capability_of(method)
        if name in known and getattr(capabilities, name) is None:
            undeclared[method] = name
        elif method.endswith("subscribe") and not capabilities.resources.subscribe:
            undeclared[method] = "resources.subscribe"
    return undeclared


def extensions_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extensions in the capabilities of a peer, of `initialize` or its result, as plain JSON.

    The schemas of legacy revisions do not have them, and allow them. Anything that is no object is left out.
    https://modelcontextprotocol.io/seps/2133-extensions#client-capabilities
    """
    capabilities: object = described.get("capabilities")
    declared: object = capabilities.get("extensions") if is_object(capabilities) else None
    if not is_object(declared):
        return {}
    return {name: settings for name, settings in declared.items() if is_object(settings)}


def upgrade_capabilities(plain: dict[str, Any], kind: Any) -> Any:
    """Convert the capabilities of a peer, as plain JSON, to a type of the dialect.

    A capability whose details the dialect does not allow is kept without its details.
    """
    made: dict[str, Any] = {}
    for name, value in plain.items():
        try:
            from_builtins({name: value}, kind)
        except DecodeError:
            value = {}
        made[name] = value
    return from_builtins(made, kind)
