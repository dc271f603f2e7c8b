"""Small functions for distributions that build on typedmcp: what they need to be as careful as it is.

`docs/building-on-typedmcp.md` has the modules whose names such a distribution may import.
"""

from __future__ import annotations

from mcpspec.support.error_text import format_value
from mcpspec.support.handlers import MaybeAwaitable
from mcpspec.support.objects import is_array, is_object
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp.nesting import decode_json, encode_json
from typedmcp.protocol.headers import decode_value as decode_header
from typedmcp.protocol.option_checks import check_integer, check_names, check_seconds
from typedmcp.protocol.text import log_failure, visible
from typedmcp.transports.concurrency import is_awaitable
from typedmcp.transports.locked_files import open_lock, replace_file
from typedmcp.transports.redaction import redact_url
from typedmcp.transports.turns import FairLimit

__all__ = [
    "FairLimit", "MaybeAwaitable", "check_integer", "check_names", "check_seconds", "decode_header", "decode_json",
    "encode_json", "format_value", "from_builtins", "is_array", "is_awaitable", "is_object", "log_failure",
    "open_lock", "redact_url", "replace_file", "to_builtins", "visible",
]  # fmt: skip
