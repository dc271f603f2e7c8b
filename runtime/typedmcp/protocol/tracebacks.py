"""Tracebacks that begin in the code of the author: leading frames of this library and of its dependencies are left out.

This module is imported when something has failed.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from itertools import dropwhile
from traceback import FrameSummary, StackSummary, TracebackException
from typing import Final

__all__ = ["format_traceback", "has_author_frame"]

_LIBRARIES: Final = (
    "typedmcp", "typedmcp_schemas", "mcpspec", "msgspec", "pydantic", "jsonschema", "typedmcp_redis", "redis",
    "uvicorn",
)  # fmt: skip
"""Packages that call the author's functions, or that stand between a call and them."""

_STDLIB: Final = sysconfig.get_path("stdlib") + os.sep
_PACKAGES: Final = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))


def format_traceback(error: BaseException, *, full: bool = False) -> str:
    """Format an exception and those behind it. Each traceback begins in the author's code if it leads there.

    A traceback without a frame of the author is kept whole: it shows a fault of the library, or of its surroundings.
    With `full`, all are.
    """
    made = TracebackException.from_exception(error)
    if not full:
        folders = _library_folders()
        for each in _chain(made):
            trimmed = [*dropwhile(lambda frame: _is_library_frame(frame, folders), each.stack)]
            each.stack = StackSummary.from_list(trimmed) if trimmed else each.stack
    return "".join(made.format())


def has_author_frame(error: BaseException) -> bool:
    """Return whether the traceback of an exception, or of one behind it, leads to the author's code."""
    folders = _library_folders()
    chain = _chain(TracebackException.from_exception(error))
    return any(not _is_library_frame(frame, folders) for each in chain for frame in each.stack)


def _chain(error: TracebackException) -> list[TracebackException]:
    """Return an exception, its causes and contexts, and the exceptions of groups."""
    found, waiting = list[TracebackException](), [error]
    while waiting:
        each = waiting.pop()
        found.append(each)
        behind = (each.__cause__, each.__context__, *(each.exceptions or ()))
        waiting += [other for other in behind if other is not None]
    return found


def _is_library_frame(frame: FrameSummary, folders: tuple[str, ...]) -> bool:
    name = frame.filename
    if name.startswith(("<frozen ", *folders)):
        return True
    return name.startswith(_STDLIB) and not any(part in name for part in _PACKAGES)


def _library_folders() -> tuple[str, ...]:
    """Return the folders of the libraries that are imported."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _LIBRARIES]
    return tuple(os.path.dirname(file) + os.sep for file in files if file)
