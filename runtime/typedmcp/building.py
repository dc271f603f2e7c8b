"""Small functions for distributions that build on typedmcp: what they need to be as careful as it is.

`docs/building-on-typedmcp.md` has the modules whose names such a distribution may import.
"""

from __future__ import annotations

from mcpspec.support.objects import is_array, is_object
from typedmcp.nesting import decode_json, encode_json
from typedmcp.protocol.text import visible
from typedmcp.transports.concurrency import is_awaitable
from typedmcp.transports.redaction import redact_url

__all__ = ["decode_json", "encode_json", "is_array", "is_awaitable", "is_object", "redact_url", "visible"]
