"""Pictures and sounds as results of tools, under the names of `mcp.server.fastmcp.utilities.types`."""

from __future__ import annotations

import base64
from os import PathLike
from pathlib import Path
from typing import ClassVar

from typedmcp_mcp1 import types

__all__ = ["Audio", "Image"]


class _Media:
    """A file or bytes, with a media type by `format`, or by the end of the file's name."""

    _kind: ClassVar[str]
    _default: ClassVar[str]
    _types: ClassVar[dict[str, str]]

    def __init__(
        self, path: str | PathLike[str] | None = None, data: bytes | None = None, format: str | None = None
    ) -> None:
        if (path is None) == (data is None):
            raise ValueError("one of path and data must be given")
        self.path: Path | None = None if path is None else Path(path)
        self.data: bytes | None = data
        suffix = "" if self.path is None else self.path.suffix.lower().removeprefix(".")
        by_name = self._types.get(suffix, "application/octet-stream") if self.path else f"{self._kind}/{self._default}"
        self._mime_type = f"{self._kind}/{format.lower()}" if format else by_name

    def _encoded(self) -> str:
        data = self.data if self.path is None else self.path.read_bytes()
        return base64.b64encode(data or b"").decode()


class Image(_Media):
    """A picture, from a file or from bytes."""

    _kind, _default = "image", "png"
    _types: ClassVar[dict[str, str]] = {
        "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    }  # fmt: skip

    def to_image_content(self) -> types.ImageContent:
        """Return the picture as a block of content."""
        return types.ImageContent(data=self._encoded(), mime_type=self._mime_type)


class Audio(_Media):
    """A sound, from a file or from bytes."""

    _kind, _default = "audio", "wav"
    _types: ClassVar[dict[str, str]] = {
        "wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg", "flac": "audio/flac", "aac": "audio/aac",
        "m4a": "audio/mp4",
    }  # fmt: skip

    def to_audio_content(self) -> types.AudioContent:
        """Return the sound as a block of content."""
        return types.AudioContent(data=self._encoded(), mime_type=self._mime_type)
