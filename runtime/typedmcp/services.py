"""Services, such as gateways: handlers that pass requests on, and describe themselves while they are served.

`Service` is their base class, and `JsonResult` a result that is passed on as it is. A `Context` says who calls
(`ctx.caller`), what the client wrote (`ctx.raw_params()`), and when its session ends (`ctx.on_session_end`).
`docs/building-on-typedmcp.md` has an example.
"""

from __future__ import annotations

from typedmcp.client.http.authorization import Credentials
from typedmcp.protocol.codec import JsonResult
from typedmcp.protocol.notifications import Change
from typedmcp.server.extension_filters import ExtensionListener
from typedmcp.server.extension_setup import OfferedExtension
from typedmcp.server.service import AppLink, Caller, CallerKind, OpenMember, Service, WorkerLink

__all__ = [
    "AppLink", "Caller", "CallerKind", "Change", "Credentials", "ExtensionListener", "JsonResult", "OfferedExtension",
    "OpenMember", "Service", "WorkerLink",
]  # fmt: skip
