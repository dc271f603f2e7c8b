"""What tools, resources and prompts give: texts are printed as they are, other contents summarised, or saved."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from typedmcp import dialect
from typedmcp.cli.output import say
from typedmcp.cli.status import UNREACHABLE, Stop

__all__ = ["Part", "emit", "parts_of"]

D = dialect.structs


class Part(NamedTuple):
    """A piece of content. `data` is what could be saved; None for what is only a note."""

    text: str
    data: bytes | None = None
    is_text: bool = True


def parts_of(blocks: Sequence[Any]) -> Iterator[Part]:
    """Blocks of content, or contents of resources, as pieces. Raises `Stop` for data that is not base64."""
    for block in blocks:
        if isinstance(block, D.EmbeddedResource):
            yield from parts_of([block.resource])
        elif isinstance(block, D.TextContent | D.TextResourceContents):
            yield Part(block.text, block.text.encode(errors="surrogatepass"))
        elif isinstance(block, D.ResourceLink):
            yield Part(f"[{block.title or block.name}: {block.uri}]")
        elif isinstance(block, D.BlobResourceContents):
            yield _blob(block.blob, block.mime_type, block.uri)
        else:
            yield _blob(block.data, block.mime_type, "")


def _blob(data: str, kind: Any, name: str) -> Part:
    try:
        raw = b64decode(data, validate=True)
    except ValueError:
        raise Stop("the server sent data that is not base64", UNREACHABLE) from None
    label = "data" if kind is UNSET else kind
    where = f" of {name}" if name else ""
    return Part(f"[{label}{where}, {len(raw):,} bytes; --output FILE saves it]", raw, is_text=False)


def emit(parts: Sequence[Part], output: str | None = None) -> None:
    """Print pieces, or save them: those that are no text where there are some, else the texts.

    One is saved as `output` itself, further ones as `output-2` and so on; `-` writes them to standard output.
    """
    if output is None:
        for part in parts:
            say(part.text)
        return
    has_data = any(not part.is_text for part in parts)
    number = 0
    for part in parts:
        if part.data is None or (has_data and part.is_text):
            say(part.text, stderr=output == "-")
        else:
            number += 1
            _save(part.data, output, number)
    if not number:
        raise Stop("there is nothing to save", 1)


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
        raise Stop(f"cannot write {path}: {error.strerror}") from None
    say(f"{len(data):,} bytes saved to {path}", stderr=True)
