"""Compressed data that is inflated as it arrives."""

from __future__ import annotations

import zlib
from typing import Final

__all__ = ["Inflater"]

_WINDOW_BITS: Final = 47
"""The largest window, with the header of gzip or of zlib."""
_PIECE_BYTES: Final = 1 << 16
"""Bytes that are inflated at once. A body of 1 KB may hold 1 MB, which the reader must be able to reject."""


class Inflater:
    """Inflates a body as it arrives, in pieces of bounded size."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_WINDOW_BITS)
        self._input = b""

    def feed(self, data: bytes) -> None:
        """Add bytes of the body, once `read` has returned nothing."""
        self._input = data

    def read(self) -> bytes:
        """Return the next piece, or nothing if that needs more bytes. Raises `zlib.error` for an invalid body."""
        if self._stream.eof:  # another call would keep the input, and copy it each time
            if self._input or self._stream.unused_data:
                raise zlib.error("data follows after its end")
            return b""
        piece = self._stream.decompress(self._input, _PIECE_BYTES)
        self._input = self._stream.unconsumed_tail
        return piece

    @property
    def has_input(self) -> bool:
        """True while `read` can return another piece of what was fed."""
        return bool(self._input)

    @property
    def is_complete(self) -> bool:
        """True after the end of the compressed data."""
        return self._stream.eof
