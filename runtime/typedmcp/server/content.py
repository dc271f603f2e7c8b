"""Pictures, sounds and files as content: what tools and prompts return beside text."""

from __future__ import annotations

import base64
import mimetypes
from os import PathLike
from pathlib import Path
from typing import Any

from typedmcp import dialect
from typedmcp.errors import UsageError

__all__ = ["Audio", "File", "Image", "blob", "kind_of"]

D = dialect.structs

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"BM": "image/bmp",
    b"%PDF-": "application/pdf",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"PK\x03\x04": "application/zip",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_UNKNOWN = "application/octet-stream"


def kind_of(data: bytes) -> str:
    """The media type that bytes begin like; `application/octet-stream` for none that is known."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12], _UNKNOWN)
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), _UNKNOWN)


class _Media:
    """Bytes, or a file with them, that is read when it is sent."""

    _family: str = ""

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        *,
        format: str | None = None,
        annotations: D.Annotations | None = None,
    ) -> None:
        if (path is None) is (data is None):
            raise UsageError(f"{type(self).__name__} takes a path or data, one of them")
        self.path: Path | None = None if path is None else Path(path)
        self.data = data
        self.format = format
        self.annotations = annotations

    def read(self) -> bytes:
        """The bytes. Raises `OSError` for a file that cannot be read."""
        return self.path.read_bytes() if self.path is not None else self.data or b""

    def mime_type(self, data: bytes) -> str:
        """The media type: of the format given, else of the file's name, else of how the bytes begin."""
        if self.format is not None:
            return self.format if "/" in self.format else f"{self._family}/{self.format}"
        named = mimetypes.guess_type(self.path.name)[0] if self.path is not None else None
        return named or kind_of(data)

    def _dressed(self, made: Any) -> Any:
        if self.annotations is not None:
            made.annotations = self.annotations
        return made


class Image(_Media):
    """A picture: a file, or bytes. `format` is `png`, `jpeg`, …, or a media type; without it, it is found out."""

    _family = "image"

    def content(self) -> D.ImageContent:
        """The block of content."""
        data = self.read()
        return self._dressed(D.ImageContent(data=_text(data), mime_type=self.mime_type(data)))  # type: ignore[no-any-return]


class Audio(_Media):
    """A sound: a file, or bytes. `format` is `wav`, `mpeg`, …, or a media type; without it, it is found out."""

    _family = "audio"

    def content(self) -> D.AudioContent:
        """The block of content."""
        data = self.read()
        return self._dressed(D.AudioContent(data=_text(data), mime_type=self.mime_type(data)))  # type: ignore[no-any-return]


class File(_Media):
    """Any file, or bytes, embedded as a resource. `name` is what it is called where that is not its path's."""

    _family = "application"

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        *,
        format: str | None = None,
        name: str | None = None,
        annotations: D.Annotations | None = None,
    ) -> None:
        super().__init__(path, data, format=format, annotations=annotations)
        self.name = name

    def content(self) -> D.EmbeddedResource:
        """The block of content: a text where it is one, else a blob."""
        data = self.read()
        if self.path is not None and self.name is None:
            uri = self.path.resolve().as_uri()
        else:
            uri = f"file:///{self.name or 'file'}"
        return self._dressed(D.EmbeddedResource(resource=_contents(uri, data, self.mime_type(data))))  # type: ignore[no-any-return]


def blob(data: bytes, name: str) -> Any:
    """Bytes that say nothing of themselves: a picture, a sound or a file, as they begin."""
    kind = kind_of(data)
    family = kind.partition("/")[0]
    if family == "image":
        return D.ImageContent(data=_text(data), mime_type=kind)
    if family == "audio":
        return D.AudioContent(data=_text(data), mime_type=kind)
    return File(data=data, format=kind, name=name).content()


def _contents(uri: str, data: bytes, kind: str) -> D.TextResourceContents | D.BlobResourceContents:
    if kind.startswith("text/") or kind in ("application/json", "application/xml", "application/yaml"):
        try:
            return D.TextResourceContents(uri=uri, text=data.decode(), mime_type=kind)
        except UnicodeDecodeError:
            pass
    return D.BlobResourceContents(uri=uri, blob=_text(data), mime_type=kind)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
