"""Content blocks: text as it is, images, audio and files as media, everything else as JSON text.

Functions may return the protocol's types of either library, exact, of `mcpspec.compat`, or official. Content and
results become everyday Structs. Other types of the protocol are data, like any class.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec

from mcpspec.support.structs import may_contain_non_finite, reject_non_finite
from typedmcp import dialect
from typedmcp.errors import UsageError
from typedmcp.protocol.backends import check_struct, to_plain, to_struct
from typedmcp_schemas import enc_hook, to_builtins
from typedmcp_schemas.nesting import MAX_VALUE_DEPTH, encode_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BLOCK_NAMES", "BYTES_TYPES", "SEQUENCE_TYPES", "Audio", "ContentBlock", "File", "Image",
    "MediaFile", "OtherRevisionError", "contains_blocks", "detect_media_type", "encode_base64", "encode_text",
    "file_contents", "is_plain_text", "is_protocol_type", "to_block", "to_block_of", "to_blocks", "to_content",
    "to_everyday",
]  # fmt: skip

D = dialect.structs
BlockT = TypeVar("BlockT", "D.ImageContent", "D.AudioContent", "D.EmbeddedResource")

_SIGNATURES = {
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
"""Media types by the first bytes."""
_RIFF_TYPES = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_SUBTYPES = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "m4a": "mp4"}
"""Formats that have a different name in media types."""
_TEXT_SUFFIXES = ("/json", "+json", "/xml", "+xml", "/yaml", "/toml", "/javascript")
"""Suffixes of media types that are text, in addition to `text/…`."""
_UNKNOWN = "application/octet-stream"

BLOCK_NAMES: Final = frozenset({"TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource"})
_ROOTS: Final = ("mcpspec", "mcp", "mcp_types")
"""The packages with the protocol's types: ours, and the official ones of 1.x and 2.x."""
_EVERYDAY: Final = dialect.EVERYDAY
_DIALECT: Final = _EVERYDAY.split(".")[1]


class OtherRevisionError(TypeError):
    """A function returned content or a result of another revision."""


def is_protocol_type(kind: Any, names: frozenset[str]) -> bool:
    """Return whether a class is one of the protocol's types with these names, of any library and revision."""
    return getattr(kind, "__name__", None) in names and _path(kind)[0] in _ROOTS


def to_everyday(value: Any, names: frozenset[str]) -> Any:
    """Return a value of the protocol's types with these names as an everyday Struct, and any other value as it is.

    Raises `OtherRevisionError` for a type of another revision.
    """
    kind = value.__class__
    if kind.__name__ not in names or kind.__module__ == _EVERYDAY or not is_protocol_type(kind, names):
        return value
    root, package, *_ = _path(kind)
    if root == "mcpspec" and package not in (_DIALECT, "compat", "ext"):
        version = dialect.methods.PROTOCOL_VERSION
        raise OtherRevisionError(
            f"{kind.__name__} of {root}.{package}; return that of typedmcp.types, "
            f"or mcpspec.convert(value, to={version!r}).value"
        )
    made = to_struct(value)
    if made.__class__.__module__ == _EVERYDAY:
        return made
    return D.from_builtins(to_plain(made), getattr(D, kind.__name__))  # the same type in an extension


def _path(kind: Any) -> list[str]:
    return f"{kind.__module__}.".split(".")


def detect_media_type(data: bytes) -> str:
    """Return the media type of data by its first bytes, or `application/octet-stream` if it is unknown."""
    if data[:4] == b"RIFF":
        return _RIFF_TYPES.get(data[8:12], _UNKNOWN)
    if data[:2] == b"BM" and data[6:10] == bytes(4):
        return "image/bmp"
    return next((kind for signature, kind in _SIGNATURES.items() if data.startswith(signature)), _UNKNOWN)


class MediaFile:
    """Bytes, or a file that is read when the content is sent."""

    _family: str = ""
    """The first part of the media type."""

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | bytearray | memoryview | None = None,
        *,
        format: str | None = None,
        annotations: D.Annotations | Mapping[str, Any] | None = None,
    ) -> None:
        if (path is None) is (data is None):
            raise UsageError(f"{type(self).__name__} takes either path or data")
        if isinstance(path, bytes | bytearray | memoryview):
            raise UsageError(f"{type(self).__name__}: the first argument is a path; pass bytes as data=…")
        if isinstance(annotations, Mapping):
            annotations = D.from_builtins({**annotations}, D.Annotations)
        from pathlib import Path  # few servers send files

        self.path: Path | None = None if path is None else Path(path)
        self.data = data
        self.format = format
        self.annotations: D.Annotations | None = annotations
        self.name: str | None = None if self.path is None else self.path.name

    def read(self) -> bytes:
        """Return the bytes. Raises `OSError` for a file that cannot be read."""
        return self.path.read_bytes() if self.path is not None else bytes(self.data or b"")

    def mime_type(self, data: bytes) -> str:
        """Return the media type: from `format`, else from the first bytes, else from the name of the file."""
        if self.format is not None:
            return self.format if "/" in self.format else f"{self._family}/{_SUBTYPES.get(self.format, self.format)}"
        detected = detect_media_type(data)
        return detected if detected.startswith(self._family) else _guess_media_type(self.name) or detected

    def content(self) -> D.ImageContent | D.AudioContent | D.EmbeddedResource:
        """Return the content block."""
        raise NotImplementedError

    def _annotate(self, block: BlockT) -> BlockT:
        if self.annotations is not None:
            block.annotations = self.annotations
        return block


class Image(MediaFile):
    """An image: a file, or bytes. `format` is `png`, `jpeg`, …, or a media type; by default it is detected."""

    _family = "image"

    def content(self) -> D.ImageContent:
        """Return the content block."""
        data = self.read()
        return self._annotate(D.ImageContent(data=encode_base64(data), mime_type=self.mime_type(data)))


class Audio(MediaFile):
    """Audio: a file, or bytes. `format` is `wav`, `mpeg`, …, or a media type; by default it is detected."""

    _family = "audio"

    def content(self) -> D.AudioContent:
        """Return the content block."""
        data = self.read()
        return self._annotate(D.AudioContent(data=encode_base64(data), mime_type=self.mime_type(data)))


class File(MediaFile):
    """Any file, or bytes, as an embedded resource. `name` is the name that clients see; by default that of the path."""

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
        """Return the media type: from `format`, else from the name of the file, else from the first bytes."""
        if self.format is not None:
            if "/" in self.format:
                return self.format
            return _guess_media_type(f"_.{self.format}") or f"application/{self.format}"
        if (guessed := _guess_media_type(self.name)) is not None:
            return guessed
        detected = detect_media_type(data)
        is_text = detected == _UNKNOWN and self.name is not None and _decode_text(data) is not None
        return "text/plain" if is_text else detected

    def content(self) -> D.EmbeddedResource:
        """Return the content block: a resource with text if the data is text, else with a blob."""
        from urllib.parse import quote

        data = self.read()
        uri = self._uri or f"file:///{quote((self.name or 'file').lstrip('/'))}"
        return self._annotate(D.EmbeddedResource(resource=file_contents(uri, data, self.mime_type(data))))


def to_block(data: bytes, name: str) -> D.ImageContent | D.AudioContent | D.EmbeddedResource:
    """Return bytes as a content block: an image, audio or a file, depending on the first bytes."""
    kind = detect_media_type(data)
    media = {"image": Image, "audio": Audio}.get(kind.partition("/")[0])
    return (
        File(data=data, format=kind, name=name).content() if media is None else media(data=data, format=kind).content()
    )


def file_contents(uri: str, data: bytes, kind: str) -> D.TextResourceContents | D.BlobResourceContents:
    """Return data as the contents of a resource: text if media type and data are textual, else a blob."""
    text = _decode_text(data) if kind.startswith("text/") or kind.endswith(_TEXT_SUFFIXES) else None
    if text is None:
        return D.BlobResourceContents(uri=uri, blob=encode_base64(data), mime_type=kind)
    return D.TextResourceContents(uri=uri, text=text, mime_type=kind)


def _decode_text(data: bytes) -> str | None:
    """Return data as text, or None if it is not UTF-8 or contains null bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _guess_media_type(name: str | None) -> str | None:
    """Return the media type by the name of a file."""
    import mimetypes

    kind, packed = (None, None) if name is None else mimetypes.guess_type(name)
    return kind if packed is None else f"application/{packed}"


def encode_base64(data: bytes) -> str:
    """Return bytes as Base64 text."""
    return base64.b64encode(data).decode()


ContentBlock: TypeAlias = "D.ContentBlock"

BYTES_TYPES: tuple[Any, ...] = (bytes, bytearray, memoryview)
SEQUENCE_TYPES: tuple[Any, ...] = (list, tuple, set, frozenset)
"""Sequence types. A value of these that contains blocks becomes one block for each item."""

_encode = msgspec.json.Encoder(enc_hook=enc_hook).encode


def to_blocks(value: object, name: str) -> list[ContentBlock]:
    """Return a value as content blocks. `name` is the file name of bytes."""
    return to_content(value, name)[0]


def to_content(value: object, name: str) -> tuple[list[ContentBlock], bool]:
    """Return a value as content blocks, and whether it is a sequence with blocks in it."""
    if value is None:
        return [], False
    if isinstance(value, SEQUENCE_TYPES) and contains_blocks(value):
        return [to_block_of(item, name) for item in cast("Iterable[object]", value)], True
    return [to_block_of(value, name)], False


def to_block_of(value: object, name: str) -> ContentBlock:
    """Return a value as one content block."""
    if isinstance(value, str):
        return D.TextContent(text=value)
    if isinstance(value, D.ContentBlock):
        return value if is_plain_text(value) else check_struct(value)
    if isinstance(value, MediaFile):
        return value.content()
    if isinstance(value, BYTES_TYPES):
        return to_block(bytes(cast("bytes", value)), name)
    if is_protocol_type(type(value), BLOCK_NAMES):
        return cast("ContentBlock", to_everyday(value, BLOCK_NAMES))
    return D.TextContent(text=encode_text(value))


def is_plain_text(block: object) -> bool:
    """Return whether a value is a block with a text and nothing else. Most are, and need no further check."""
    kind = block.__class__
    return kind is D.TextContent and block.text.__class__ is str and block.annotations is None and block.meta is None  # type: ignore[attr-defined]


def contains_blocks(value: object) -> bool:
    """Return whether a value is content, or a sequence with content in it."""
    items = cast("Iterable[object]", value) if isinstance(value, SEQUENCE_TYPES) else [value]
    return any(_is_block(item) for item in items)


def _is_block(value: object) -> bool:
    return isinstance(value, (D.ContentBlock, MediaFile, *BYTES_TYPES)) or is_protocol_type(type(value), BLOCK_NAMES)


def encode_text(value: object) -> str:
    """Return a value as JSON text. Raises `TypeError` or `ValueError` for a value that has no JSON form."""
    text = encode_json(value, _encode, MAX_VALUE_DEPTH)
    if may_contain_non_finite(text, value):
        reject_non_finite(to_builtins(value))
    return text.decode()
