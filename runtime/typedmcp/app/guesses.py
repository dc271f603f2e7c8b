"""Names that other libraries have, and what is used for them here. Errors about unknown names say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from typedmcp.errors import UsageError
from typedmcp.protocol.guesses import GuessedAttribute
from typedmcp.protocol.option_checks import unknown_option

__all__ = ["ATTRIBUTES", "OPTIONS", "reject_options"]

_ASGI = "use typedmcp.asgi(server)"
_SERVE = "use await typedmcp.serve_async(server), or server.run()"

_ATTRIBUTES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("http_app", "streamable_http_app", "sse_app"), _ASGI),
    **dict.fromkeys(("run_async", "run_stdio_async", "run_http_async", "run_streamable_http_async"), _SERVE),
    "add_middleware": "use server.middleware(function), also as a decorator",
    "add_template": "use server.add_resource(function, uri); a URI with {…} is a template",
    "custom_route": f"{_ASGI} in an application with routes, such as Starlette's",
    "settings": "the options are those of server.run and typedmcp.asgi",
}
ATTRIBUTES: Final = {name: GuessedAttribute(meant) for name, meant in _ATTRIBUTES.items()}
"""Attributes of servers."""

OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("auth", "auth_server_provider", "token_verifier"),
        'it belongs to HTTP: typedmcp.asgi(server, auth=…), or server.run("http", auth=…)',
    ),
    **dict.fromkeys(("host", "port", "stateless_http", "json_response", "path", "streamable_http_path"),
                    "it belongs to where the server is served: server.run, typedmcp.asgi"),
    "tags": "the protocol has no tags; meta={…} is sent with it",
    "on_duplicate_tools": "an equal name is an error, unless replace=True is given",
    "mask_error_details": "errors are masked, unless debug=True is given",
}  # fmt: skip
"""Options of servers and decorators."""


def reject_options(names: Iterable[str], known: Iterable[str], of: str) -> None:
    """Raise `UsageError` for an option that is not known, with what is used for it here."""
    known = list(known)
    for name in sorted(set(names).difference(known)):
        meant = OPTIONS.get(name)
        raise UsageError(f"unknown option {name!r}{of}; {meant}" if meant else unknown_option(name, known, of))
