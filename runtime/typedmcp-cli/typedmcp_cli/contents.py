"""Contents of results, resources and prompts: text is printed, other data is summarised or saved."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from typedmcp import types
from typedmcp_cli.output import print_text, print_value
from typedmcp_cli.status import FAILED, UNREACHABLE, CommandExit

__all__ = ["ContentPart", "print_or_save", "split_contents"]


Block: TypeAlias = types.ContentBlock | types.TextResourceContents | types.BlobResourceContents


class ContentPart(NamedTuple):
    """A part of some content: text to print, and data to save. A link has no data."""

    text: str
    data: bytes | None = None
    is_text: bool = True


def split_contents(blocks: Sequence[Block]) -> Iterator[ContentPart]:
    """Yield the parts of content blocks or resource contents. Raises `CommandExit` for invalid base64."""
    for block in blocks:
        if isinstance(block, types.EmbeddedResource):
            yield from split_contents([block.resource])
        elif isinstance(block, types.TextContent | types.TextResourceContents):
            yield ContentPart(block.text, block.text.encode(errors="surrogatepass"))
        elif isinstance(block, types.ResourceLink):
            yield ContentPart(f"[{block.title or block.name}: {block.uri}]")
        elif isinstance(block, types.BlobResourceContents):
            yield _data_part(block.blob, block.mime_type, block.uri)
        else:
            yield _data_part(block.data, block.mime_type, "")


def _data_part(data: str, mime_type: str | None, uri: str) -> ContentPart:
    try:
        raw = b64decode(data, validate=True)
    except ValueError:
        raise CommandExit("the server sent data that is not base64", UNREACHABLE) from None
    origin = f" of {uri}" if uri else ""
    return ContentPart(
        f"[{mime_type or 'data'}{origin}, {len(raw):,} bytes; save with --output FILE]", raw, is_text=False
    )


def print_or_save(parts: Sequence[ContentPart], output: str | None = None) -> None:
    """Print parts, or save them to `output`: the data if there is any, otherwise the text.

    The first part is saved as `output`, further ones as `output-2` and so on; `-` writes them to standard output.
    Raises `CommandExit` if there is nothing to save or a file cannot be written.
    """
    if output is None:
        for part in parts:
            print_value(part.text)
        return
    has_data = any(not part.is_text for part in parts)
    number = 0
    for part in parts:
        if part.data is None or (has_data and part.is_text):
            print_text(part.text, stderr=output == "-")
        else:
            number += 1
            _save(part.data, output, number)
    if not number:
        raise CommandExit("there is nothing to save", FAILED)


def _save(data: bytes, output: str, number: int) -> None:
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    if number > 1:
        path = path.with_name(f"{path.stem}-{number}{path.suffix}")
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CommandExit(f"cannot write {path}: {error.strerror}") from None
    print_text(f"saved {len(data):,} bytes to {path}", stderr=True)
