"""Python files on disk: find them, decode them, and replace them as a whole."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SourceFile", "decode_source", "find_files"]

_SUFFIXES = {".py", ".pyi"}
_SKIPPED = {".git", ".hg", ".svn", ".eggs", ".nox", ".tox", "__pycache__", "node_modules", "site-packages"}
_MARKERS = {"CACHEDIR.TAG", "conda-meta", "pyvenv.cfg"}
"""Names in a folder that say that it is a cache or a virtual environment."""


def find_files(paths: Iterable[Path], on_error: Callable[[OSError], None]) -> Iterator[Path]:
    """Yield each file once: those that are given, and the Python files of folders.

    Links in a folder, virtual environments, caches and the folders of version control are skipped.
    """
    seen: set[Path] = set()
    for path in paths:
        for found in [path] if os.path.isfile(path) else _walk(path, on_error):
            if (real := found.resolve()) not in seen:
                seen.add(real)
                yield found


def _walk(folder: Path, on_error: Callable[[OSError], None]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, onerror=on_error):
        parent = Path(place)
        if parent != folder and _MARKERS & {*folders, *names}:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        found = (parent / name for name in sorted(names))
        yield from (
            path for path in found if path.suffix in _SUFFIXES and os.path.isfile(path) and not path.is_symlink()
        )


@dataclass(frozen=True)
class SourceFile:
    """A Python file with its text, whose line ends are those of the file."""

    path: Path
    text: str
    encoding: str

    def replace(self, text: str) -> None:
        """Replace the file by one with another text, and the same encoding and mode. A link stays a link."""
        target = self.path.resolve()
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode(self.encoding))
            shutil.copymode(target, name)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise


def decode_source(path: Path, data: bytes) -> SourceFile:
    """Decode a file as it declares. Raises `SyntaxError` and `UnicodeDecodeError` like the parser of Python."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return SourceFile(path, data.decode(encoding), encoding)
