"""URLs in error messages, without the secrets that they may have."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["redact_url"]

_HIDDEN: Final = "…"


def redact_url(url: str) -> str:
    """Return a URL, valid or not, without user, password, query and fragment."""
    scheme, separator, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in rest and (rest.count("@") > 1 or "@" not in authority):  # where the password ends is not clear
        return f"{scheme}{separator}{_HIDDEN}"
    shown = re.split(r"[?#]", rest, maxsplit=1)[0]
    user, at, host = shown.rpartition("@")
    return f"{scheme}{separator}{_HIDDEN if user else ''}{at}{host}{_HIDDEN if shown != rest else ''}"
