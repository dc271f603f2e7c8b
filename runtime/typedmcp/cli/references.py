"""`server.py`, `server.py:object` and `package.module:object`: where in Python a server is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from typedmcp.cli.status import Stop

__all__ = ["Reference", "reference_of", "served_by"]

_IN_MODULE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*\Z")


class Reference(NamedTuple):
    """A file or a module, and the name of an object in it, or None."""

    source: str
    name: str | None
    is_file: bool = True


def reference_of(text: str) -> Reference | None:
    """What is meant; None for what has another look. Raises `Stop` for a file that is not there, or is none."""
    head, colon, name = text.rpartition(":")
    source, name = (head, name) if colon and not Path(text).exists() else (text, "")
    path = Path(source)
    if path.is_dir():
        raise Stop(f"{source} is a folder: name a file in it")
    if path.is_file():
        return Reference(source, name or None)
    if path.suffix == ".py":
        raise Stop(f"no such file: {source}")
    if _IN_MODULE.match(text):
        return Reference(source, name, is_file=False)
    return None


def served_by(text: str) -> Reference:
    """What `typedmcp run` is to import. Raises `Stop` for what Python cannot."""
    reference = reference_of(text)
    if reference is None:
        raise Stop(f"{text!r} is neither a file nor module:object")
    if reference.is_file and Path(reference.source).suffix != ".py":
        raise Stop(f"{reference.source} is no Python file")
    return reference
