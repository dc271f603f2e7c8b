"""Small functions for distributions that build on typedmcp: what they need to be as careful as it is.

`docs/building-on-typedmcp.md` has the modules whose names such a distribution may import. A name is imported when it is
first used, so that a program that only reads JSON does not load an event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp_schemas.lazy import lazy_names

if TYPE_CHECKING:
    from mcpspec.support.error_text import format_value
    from mcpspec.support.handlers import MaybeAwaitable
    from mcpspec.support.objects import is_array, is_object
    from mcpspec.support.structs import from_builtins, to_builtins
    from typedmcp.fetch import FetchClient
    from typedmcp.protocol.diagnostics import deliver_diagnostic
    from typedmcp.protocol.headers import decode_header, header_params
    from typedmcp.protocol.input_checks import find_answer_fault
    from typedmcp.protocol.option_checks import check_flag, check_integer, check_list, check_names, check_seconds
    from typedmcp.protocol.text import escape_controls, log_failure, visible
    from typedmcp.transports.concurrency import FairLimit, is_awaitable, limit_time, run_in_daemon_thread
    from typedmcp.transports.hosts import is_loopback
    from typedmcp.transports.locked_files import open_lock, replace_file
    from typedmcp.transports.redaction import redact_url
    from typedmcp_schemas.flat import find_field_fault
    from typedmcp_schemas.nesting import decode_json, encode_json
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        "mcpspec.support.error_text": ["format_value"],
        "mcpspec.support.handlers": ["MaybeAwaitable"],
        "mcpspec.support.objects": ["is_array", "is_object"],
        "mcpspec.support.structs": ["from_builtins", "to_builtins"],
        "typedmcp.fetch": ["FetchClient"],
        "typedmcp_schemas.flat": ["find_field_fault"],
        "typedmcp_schemas.nesting": ["decode_json", "encode_json"],
        "typedmcp.protocol.diagnostics": ["deliver_diagnostic"],
        "typedmcp.protocol.input_checks": ["find_answer_fault"],
        "typedmcp.protocol.headers": ["decode_header", "header_params"],
        "typedmcp.protocol.option_checks": [
            "check_flag", "check_integer", "check_list", "check_names", "check_seconds",
        ],
        "typedmcp.protocol.text": ["escape_controls", "log_failure", "visible"],
        "typedmcp.transports.concurrency": ["FairLimit", "is_awaitable", "limit_time", "run_in_daemon_thread"],
        "typedmcp.transports.hosts": ["is_loopback"],
        "typedmcp.transports.locked_files": ["open_lock", "replace_file"],
        "typedmcp.transports.redaction": ["redact_url"],
    })  # fmt: skip

__all__ = [
    "FairLimit", "FetchClient", "MaybeAwaitable", "check_flag", "check_integer", "check_list", "check_names",
    "check_seconds", "decode_header", "decode_json", "deliver_diagnostic", "encode_json", "escape_controls",
    "find_answer_fault", "find_field_fault", "format_value", "from_builtins", "header_params", "is_array",
    "is_awaitable",
    "is_loopback", "is_object", "lazy_names", "limit_time", "log_failure", "open_lock", "redact_url", "replace_file",
    "run_in_daemon_thread", "to_builtins", "visible",
]  # fmt: skip
