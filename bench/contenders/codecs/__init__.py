"""The contenders among codecs: each module has a `codec(message)`, which gives its two functions for a message.

`worker` runs one of them in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Codec"]


class Codec(NamedTuple):
    """How a contender reads and writes messages of one kind."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    checks: bool = True
    """Whether values of wrong types are found."""
