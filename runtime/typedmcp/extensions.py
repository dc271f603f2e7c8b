"""Extensions of the protocol: what their authors need on servers, on clients, and on both.

A name is imported when it is first used, so that a server loads nothing of clients. The chapter "Extensions" of
`docs/building-on-typedmcp.md` describes how an extension uses them.
https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp_schemas.lazy import lazy_names

if TYPE_CHECKING:
    from typedmcp.client.extensions import ClientExtension, ExtendedCall, ExtensionClient, LegacyCallForm
    from typedmcp.protocol.extensions import DeclaredExtensions, Extension
    from typedmcp.server.config import TaskSupport
    from typedmcp.server.extension_setup import AdaptTool, HandleWithin, LegacyForm, RunTool, ToolTask
    from typedmcp.server.extensions import ExtensionListener, ServerExtension
    from typedmcp.server.runs import (
        DetachedContext,
        DetachedRun,
        SessionHandle,
        answers_given,
        detach,
        encode_result,
        exact_result,
        find_answer_fault,
        restore_call,
        store_call,
    )
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".client.extensions": ["ClientExtension", "ExtendedCall", "ExtensionClient", "LegacyCallForm"],
        ".protocol.extensions": ["DeclaredExtensions", "Extension"],
        ".server.config": ["TaskSupport"],
        ".server.extension_setup": ["AdaptTool", "HandleWithin", "LegacyForm", "RunTool", "ToolTask"],
        ".server.extensions": ["ExtensionListener", "ServerExtension"],
        ".server.runs": [
            "DetachedContext", "DetachedRun", "SessionHandle", "answers_given", "detach", "encode_result",
            "exact_result", "find_answer_fault", "restore_call", "store_call",
        ],
    })  # fmt: skip

__all__ = [
    "AdaptTool", "ClientExtension", "DeclaredExtensions", "DetachedContext", "DetachedRun", "ExtendedCall", "Extension",
    "ExtensionClient", "ExtensionListener", "HandleWithin", "LegacyCallForm", "LegacyForm", "RunTool",
    "ServerExtension", "SessionHandle", "TaskSupport", "ToolTask", "answers_given", "detach", "encode_result",
    "exact_result", "find_answer_fault", "restore_call", "store_call",
]  # fmt: skip
