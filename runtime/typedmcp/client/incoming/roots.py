"""Roots: the files and folders that a client offers to servers, as `file://` URIs.

https://modelcontextprotocol.io/specification/2026-07-28/client/roots
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from typedmcp import dialect
from typedmcp.errors import UsageError

__all__ = ["to_root"]

D = dialect.structs

_URI: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
"""The characters of a `file://` URI after its scheme: one without a query and a fragment."""


def to_root(value: Any) -> D.Root:
    """Return a root from a URI or a `Root`. Raises `UsageError` unless its URI is an absolute `file://` URI."""
    root: Any = D.Root(uri=value) if isinstance(value, str) else value
    fault = _find_fault(getattr(root, "uri", None))
    if fault is not None:
        raise UsageError(f"roots: {value!r} {fault}; expected a URI such as Path.cwd().as_uri()")
    return root  # type: ignore[no-any-return]


def _find_fault(uri: object) -> str | None:
    if not isinstance(uri, str):
        return "is neither a URI nor a Root"
    scheme, _, rest = uri.partition("://")
    if scheme.lower() != "file":
        return "is not a file:// URI"
    if not _URI.fullmatch(rest):
        return "has characters that must be percent-encoded"
    path = unquote(urlsplit(uri).path)
    if not path.startswith("/"):
        return "has no absolute path"
    if any(part in (".", "..") for part in re.split(r"[/\\]", path)) or "\0" in path:
        return "has segments that lead out of a folder"
    return None
