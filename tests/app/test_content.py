"""Images, sounds and files: their media types and content blocks."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from typedmcp import Audio, Diagnostic, File, Image, Server, UsageError, UserMessage
from typedmcp.app.content import detect_media_type, to_block
from typedmcp.dialect import structs

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
JPEG = b"\xff\xd8\xff\xe0" + bytes(8)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
PDF = b"%PDF-1.7\n"
UNKNOWN = b"\x00\x01\x02\x03"

SIGNATURES: list[tuple[bytes, str]] = [
    (PNG, "image/png"),
    (JPEG, "image/jpeg"),
    (b"GIF87a" + bytes(4), "image/gif"),
    (b"GIF89a" + bytes(4), "image/gif"),
    (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
    (b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00", "image/bmp"),
    (WAV, "audio/wav"),
    (b"ID3\x04" + bytes(8), "audio/mpeg"),
    (b"OggS" + bytes(8), "audio/ogg"),
    (b"fLaC" + bytes(8), "audio/flac"),
    (PDF, "application/pdf"),
    (b"PK\x03\x04" + bytes(8), "application/zip"),
    (b"BMW is a make of cars", "application/octet-stream"),
    (b"RIFF\x24\x00\x00\x00AVI LIST", "application/octet-stream"),
    (b"RIFF", "application/octet-stream"),
    (b"\x89PN", "application/octet-stream"),
    (b"hello", "application/octet-stream"),
    (b"", "application/octet-stream"),
]


@each("data, kind", SIGNATURES)
def test_the_media_type_of_bytes_is_detected_by_the_first_ones(data: bytes, kind: str) -> None:
    assert detect_media_type(data) == kind


@each("data", [data for data, kind in SIGNATURES if kind != "application/octet-stream"])
def test_the_first_bytes_are_enough_to_detect_a_media_type(data: bytes) -> None:
    assert detect_media_type(data) == detect_media_type(data + bytes(1000))
    assert detect_media_type(data[:1]) == "application/octet-stream"


def decoded(block: Any) -> bytes:
    return base64.b64decode(block.data)


@each(
    "media, kind",
    [
        (Image(data=PNG), "image/png"),
        (Image(data=PNG, format="webp"), "image/webp"),
        (Image(data=JPEG, format="jpg"), "image/jpeg"),
        (Image(data=b"<svg/>", format="svg"), "image/svg+xml"),
        (Image(data=PNG, format="image/x-own"), "image/x-own"),
        (Image(data=UNKNOWN), "application/octet-stream"),
        (Image(data=b""), "application/octet-stream"),
        (Image(data=bytearray(PNG)), "image/png"),
        (Image(data=memoryview(PNG)), "image/png"),
        (Audio(data=WAV), "audio/wav"),
        (Audio(data=UNKNOWN, format="mp3"), "audio/mpeg"),
        (Audio(data=UNKNOWN, format="ogg"), "audio/ogg"),
    ],
)
def test_the_media_type_of_image_bytes_follows_format_and_contents(media: Image | Audio, kind: str) -> None:
    block = media.content()
    assert block.mime_type == kind
    assert block.type == ("image" if isinstance(media, Image) else "audio")
    assert media.data is not None
    assert decoded(block) == bytes(media.data)


@each(
    "name, data, make, kind",
    [
        ("a.png", PNG, Image, "image/png"),
        ("a.PNG", UNKNOWN, Image, "image/png"),
        ("a.jpg", PNG, Image, "image/png"),  # the contents count more than the name
        ("a.svg", b"<svg/>", Image, "image/svg+xml"),
        ("picture", JPEG, Image, "image/jpeg"),
        ("picture", UNKNOWN, Image, "application/octet-stream"),
        ("a.wav", WAV, Audio, "audio/wav"),
        ("a.mp3", UNKNOWN, Audio, "audio/mpeg"),
        ("a.wav", WAV, Image, "audio/x-wav"),
    ],
)
def test_the_media_type_of_an_image_file_follows_its_contents_and_its_name(
    name: str, data: bytes, make: type[Image | Audio], kind: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    for path in (tmp_path / name, str(tmp_path / name)):
        block = make(path).content()
        assert block.mime_type.replace("vnd.wave", "x-wav") == kind
        assert decoded(block) == data


@each(
    "name, data, kind, is_text",
    [
        ("a.txt", "grün".encode(), "text/plain", True),
        ("a.md", b"# A", "text/markdown", True),
        ("a.json", b"{}", "application/json", True),
        ("a.svg", b"<svg/>", "image/svg+xml", True),
        ("README", b"hello", "text/plain", True),
        ("a.txt", b"\xff\xfe", "text/plain", False),
        ("a.txt", b"a\0b", "text/plain", False),
        ("a.docx", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", False),
        ("a.tar.gz", b"\x1f\x8b", "application/gzip", False),
        ("a.bin", b"hello", "application/octet-stream", False),
        ("report", PDF, "application/pdf", False),
        ("data", UNKNOWN, "application/octet-stream", False),
    ],
)
def test_a_file_with_text_is_embedded_as_text(name: str, data: bytes, kind: str, is_text: bool, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for file, uri in ((File(path), path.as_uri()), (File(data=data, name=name), f"file:///{name}")):
        found = file.content().resource
        assert (found.uri, found.mime_type) == (uri, kind)
        assert isinstance(found, structs.TextResourceContents) is is_text
        got = found.text.encode() if isinstance(found, structs.TextResourceContents) else base64.b64decode(found.blob)
        assert got == data


@each(
    "file, uri, kind",
    [
        (File(data=b"{}", format="json"), "file:///file", "application/json"),
        (File(data=b"a", format="txt"), "file:///file", "text/plain"),
        (File(data=b"a", format="own"), "file:///file", "application/own"),
        (File(data=b"a", format="text/x-own"), "file:///file", "text/x-own"),
        (File(data=b"a", name="two words#1.txt"), "file:///two%20words%231.txt", "text/plain"),
        (File(data=b"a", name="/etc/größe.txt"), "file:///etc/gr%C3%B6%C3%9Fe.txt", "text/plain"),
        (File(data=UNKNOWN), "file:///file", "application/octet-stream"),
        (File(data=b"hello"), "file:///file", "application/octet-stream"),
    ],
)
def test_the_media_type_of_bytes_follows_format_name_and_contents(file: File, uri: str, kind: str) -> None:
    assert (file.content().resource.uri, file.content().resource.mime_type) == (uri, kind)


def test_a_file_may_have_another_name_than_its_path(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a,b")
    found = File(tmp_path / "x", name="table.csv").content().resource
    assert (found.uri, found.mime_type) == ("file:///table.csv", "text/csv")


def test_the_uri_of_a_file_is_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b.txt").write_text("text")
    monkeypatch.chdir(tmp_path)
    assert File("a b.txt").content().resource.uri == (tmp_path / "a b.txt").as_uri()


def test_a_file_is_read_when_it_is_sent(tmp_path: Path) -> None:
    image = Image(tmp_path / "later.png")
    with pytest.raises(FileNotFoundError):
        image.content()
    (tmp_path / "later.png").write_bytes(PNG)
    assert decoded(image.content()) == PNG


@each("make", [Image, Audio, File])
@each("given", [{"priority": 0.5}, structs.Annotations(priority=0.5)], ids=["dict", "type"])
def test_the_content_has_the_annotations(make: Callable[..., Any], given: Any) -> None:
    assert make(data=b"", annotations=given).content().annotations == structs.Annotations(priority=0.5)
    assert not make(data=b"").content().annotations


@each("make", [Image, Audio, File])
def test_media_take_either_a_path_or_data(make: Callable[..., Any]) -> None:
    for given in ({}, {"path": "a", "data": b""}):
        with pytest.raises(UsageError, match=f"{make.__name__} takes either path or data"):
            make(**given)
    with pytest.raises(UsageError, match=f"{make.__name__}: the first argument is a path; pass bytes as data=…"):
        make(PNG)


@each(
    "data, type, kind",
    [
        (PNG, "image", "image/png"),
        (WAV, "audio", "audio/wav"),
        (PDF, "resource", "application/pdf"),
        (UNKNOWN, "resource", "application/octet-stream"),
    ],
)
def test_bare_bytes_become_the_block_for_their_media_type(data: bytes, type: str, kind: str) -> None:
    block: Any = to_block(data, "it")
    assert block.type == type
    assert (block.resource if type == "resource" else block).mime_type == kind


# Over a connection


async def call_tool(function: Callable[..., Any], reports: list[Diagnostic]) -> Any:
    server = Server()
    server.add_tool(function, name="it")
    service = typedmcp.ServerConfig(server, on_diagnostic=reports.append)
    async with typedmcp.connect(service) as client:
        return await client.call_tool("it")


def test_a_tool_may_return_several_media(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")

    def tool() -> list[str | Image | Audio | File]:
        return ["See:", Image(data=PNG), Audio(data=WAV, annotations={"audience": ["user"]}), File(tmp_path / "a.txt")]

    blocks = asyncio.run(call_tool(tool, [])).content
    assert [block.type for block in blocks] == ["text", "image", "audio", "resource"]
    assert blocks[2].annotations.audience == ["user"]
    assert blocks[3].resource.text == "text"


@each("path", ["missing.png", "."])
def test_a_file_that_cannot_be_read_is_an_error_of_the_tool(path: str, tmp_path: Path) -> None:
    def tool() -> Image:
        return Image(tmp_path / path)

    reports: list[Diagnostic] = []
    result = asyncio.run(call_tool(tool, reports))
    assert result.is_error
    assert [block.text for block in result.content] == ["it failed"]  # the path is not shown
    assert [isinstance(report.error, OSError) for report in reports] == [True]


@each("path, code", [("missing.png", -32602), (".", -32603)])
def test_a_resource_whose_file_is_missing_is_not_found(path: str, code: int, tmp_path: Path) -> None:
    server = Server()

    @server.resource("picture://it")
    def picture() -> Image:
        return Image(tmp_path / path)

    @server.resource("picture://broken")
    def broken() -> bytes:
        raise FileNotFoundError("a file of the function itself")

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            with pytest.raises(typedmcp.RemoteError) as caught:
                await client.read_resource("picture://it")
            assert caught.value.code == code
            assert isinstance(caught.value, typedmcp.ResourceNotFoundError) == (code == -32602)
            assert str(tmp_path) not in str(caught.value)  # the path is not shown
            with pytest.raises(typedmcp.RemoteError) as caught:
                await client.read_resource("picture://broken")
            assert caught.value.code == -32603

    asyncio.run(main())


def test_resources_and_prompts_may_return_media(tmp_path: Path) -> None:
    server = Server()
    (tmp_path / "a.png").write_bytes(PNG)

    @server.resource("picture://it")
    def picture() -> Image:
        return Image(tmp_path / "a.png")

    (tmp_path / "a.md").write_text("# Oslo\n")

    @server.resource("text://it")
    def text() -> File:
        return File(tmp_path / "a.md")

    @server.prompt
    def look() -> list[Any]:
        return ["Look:", UserMessage(Image(data=PNG))]

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            (found,) = (await client.read_resource("picture://it")).contents
            assert isinstance(found, structs.BlobResourceContents)
            assert (base64.b64decode(found.blob), found.mime_type) == (PNG, "image/png")
            (text,) = (await client.read_resource("text://it")).contents
            assert isinstance(text, structs.TextResourceContents)
            assert (text.uri, text.text, text.mime_type) == ("text://it", "# Oslo\n", "text/markdown")
            messages = (await client.get_prompt("look")).messages
            assert [message.content.type for message in messages] == ["text", "image"]

    asyncio.run(main())
