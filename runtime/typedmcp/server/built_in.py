"""The methods that the server handles itself, unless its handler does. Each acts on the session of its request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from typedmcp import dialect
from typedmcp.errors import INVALID_REQUEST, RemoteError
from typedmcp.protocol.backends import to_model, to_plain, to_struct
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind, cancellation_diagnostic
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context, ServedSession
from typedmcp.server.handshake import REPEATED_INITIALIZE

__all__ = ["served_functions"]

D = dialect.structs


def _session_of(ctx: Context) -> ServedSession:
    return cast("ServedSession", ctx.connection)  # contexts of calls that no session has reach no built-in method


def served_functions(config: ServerConfig) -> dict[str, Callable[..., Any]]:
    """Return the functions of all methods of a server, by the names of handlers."""
    return {
        "ping": _return_nothing,
        "initialized": _return_nothing,
        "initialize": _reject_initialize,
        "discover": _discover,
        "set_level": _set_level,
        "subscriptions_listen": _of_subscriptions("listen"),
        "subscribe": _of_subscriptions("subscribe"),
        "unsubscribe": _of_subscriptions("unsubscribe"),
        "progress": _report_notification,
        "roots_list_changed": _report_notification,
        "task_status": _report_notification,
        **config.empty_lists,
        **config.functions,
        "cancelled": _on_cancelled,
    }


def _return_nothing(_params: Any, _ctx: Context) -> dict[str, Any]:
    return {}


def _reject_initialize(_params: Any, _ctx: Context) -> None:
    raise RemoteError(INVALID_REQUEST, REPEATED_INITIALIZE)


def _discover(_params: Any, ctx: Context) -> Any:
    config = ctx.config
    result = D.DiscoverResult(
        supported_versions=config.revisions,
        capabilities=config.capabilities,
        instructions=config.instructions,
        result_type="complete",
        cache_scope="public",
        ttl_ms=0,
    )
    return result if config.codec == "msgspec" else to_model(result)


def _of_subscriptions(name: str) -> Callable[[Any, Context], Awaitable[Any]]:
    return lambda params, ctx: getattr(_session_of(ctx).subscriptions, name)(params, ctx)


def _set_level(params: Any, ctx: Context) -> dict[str, Any]:
    _session_of(ctx).set_log_level(params.level)
    return {}


def _on_cancelled(params: Any, ctx: Context) -> Any:
    cancelled, config = to_struct(params), ctx.config
    id = cancelled.request_id
    if id is None or not _session_of(ctx).cancel(id):
        text = "the cancelled request is not in flight"
        config.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, ctx.method, params=to_plain(params)))
    elif cancelled.reason:
        config.report(cancellation_diagnostic("client", id, cancelled.reason))
    on_cancelled = config.functions.get("cancelled")
    return None if on_cancelled is None else on_cancelled(params, ctx)


def _report_notification(params: Any, ctx: Context) -> None:
    text = f"{ctx.method} from the client"
    ctx.config.report(Diagnostic(DiagnosticKind.LEGACY_NOTIFICATION, text, ctx.method, params=to_plain(params)))
