"""Pictures, sounds and files as content: what tools and prompts return beside text."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

from typedmcp import dialect
from typedmcp.errors import UsageError

__all__ = ["Audio", "File", "Image", "blob", "contents_of", "kind_of"]

D = dialect.structs

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": "application/pdf",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"PK\x03\x04": "application/zip",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_FORMATS = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "m4a": "mp4"}
"""What formats are called that have another name in media types."""
_TEXTUAL = ("/json", "+json", "/xml", "+xml", "/yaml", "/toml", "/javascript")
"""How media types end that are texts, beside `text/…`."""
_UNKNOWN = "application/octet-stream"


def kind_of(data: bytes) -> str:
    """The media type that bytes begin like; `application/octet-stream` for none that is known."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12], _UNKNOWN)
    if data[:2] == b"BM" and data[6:10] == bytes(4):
        return "image/bmp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), _UNKNOWN)


class _Media:
    """Bytes, or a file with them, that is read when it is sent."""

    _family: str = ""

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | bytearray | memoryview | None = None,
        *,
        format: str | None = None,
        annotations: D.Annotations | Mapping[str, Any] | None = None,
    ) -> None:
        if (path is None) is (data is None):
            raise UsageError(f"{type(self).__name__} takes a path or data, one of them")
        if isinstance(path, bytes | bytearray | memoryview):
            raise UsageError(f"{type(self).__name__} takes bytes as data=…: the first argument is a path")
        if isinstance(annotations, Mapping):
            annotations = D.from_builtins({**annotations}, D.Annotations)
        self.path: Path | None = None if path is None else Path(path)
        self.data = data
        self.format = format
        self.annotations: D.Annotations | None = annotations
        self.name: str | None = None if self.path is None else self.path.name

    def read(self) -> bytes:
        """The bytes. Raises `OSError` for a file that cannot be read."""
        return self.path.read_bytes() if self.path is not None else bytes(self.data or b"")

    def mime_type(self, data: bytes) -> str:
        """The media type: of the format given, else of how the bytes begin, else of the file's name."""
        if self.format is not None:
            return self.format if "/" in self.format else f"{self._family}/{_FORMATS.get(self.format, self.format)}"
        begun = kind_of(data)
        return begun if begun.startswith(self._family) else _named(self.name) or begun

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

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | bytearray | memoryview | None = None,
        *,
        format: str | None = None,
        name: str | None = None,
        annotations: D.Annotations | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, data, format=format, annotations=annotations)
        self._uri = None if self.path is None or name is not None else self.path.absolute().as_uri()
        self.name: str | None = name or self.name

    def mime_type(self, data: bytes) -> str:
        """The media type: of the format given, else of the file's name, else of how the bytes begin."""
        if self.format is not None:
            return self.format if "/" in self.format else _named(f"_.{self.format}") or f"application/{self.format}"
        if (named := _named(self.name)) is not None:
            return named
        begun = kind_of(data)
        is_text = begun == _UNKNOWN and self.name is not None and _decoded(data) is not None
        return "text/plain" if is_text else begun

    def content(self) -> D.EmbeddedResource:
        """The block of content: a text where it is one, else a blob."""
        data = self.read()
        uri = self._uri or f"file:///{quote((self.name or 'file').lstrip('/'))}"
        return self._dressed(D.EmbeddedResource(resource=contents_of(uri, data, self.mime_type(data))))  # type: ignore[no-any-return]


def blob(data: bytes, name: str) -> Any:
    """Bytes that say nothing of themselves: a picture, a sound or a file, as they begin."""
    kind = kind_of(data)
    family = kind.partition("/")[0]
    if family == "image":
        return D.ImageContent(data=_text(data), mime_type=kind)
    if family == "audio":
        return D.AudioContent(data=_text(data), mime_type=kind)
    return File(data=data, format=kind, name=name).content()


def contents_of(uri: str, data: bytes, kind: str) -> D.TextResourceContents | D.BlobResourceContents:
    """The contents of a file as a resource: a text where its media type is one, and it is, else a blob."""
    text = _decoded(data) if kind.startswith("text/") or kind.endswith(_TEXTUAL) else None
    if text is None:
        return D.BlobResourceContents(uri=uri, blob=_text(data), mime_type=kind)
    return D.TextResourceContents(uri=uri, text=text, mime_type=kind)


def _decoded(data: bytes) -> str | None:
    """The text that bytes are; None if they are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _named(name: str | None) -> str | None:
    """The media type that a file's name says."""
    kind, packed = (None, None) if name is None else mimetypes.guess_type(name)
    return kind if packed is None else f"application/{packed}"


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
