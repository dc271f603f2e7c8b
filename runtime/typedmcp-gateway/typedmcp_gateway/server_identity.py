"""A server's description of itself, and its standard error, as a gateway passes them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from typedmcp import StdioServerParameters
from typedmcp.dialect import structs
from typedmcp_hosts import ServerEntry

__all__ = ["OnStderr", "passed_info", "read_stderr"]

OnStderr = Callable[[str, str], object]
"""Takes the name of a server and a line that its process wrote to standard error."""

_MAX_INFO: Final = 8192
"""Bytes of a description as JSON: modern servers repeat it in each result."""


def passed_info(info: structs.Implementation | None) -> structs.Implementation | None:
    """Return the description of a server as clients get it; None for none.

    One that is long has neither icons nor a text. One that still is long is not passed.
    """
    if info is None or len(msgspec.json.encode(info)) <= _MAX_INFO:
        return info
    short = structs.Implementation(name=info.name, version=info.version, title=info.title)
    return short if len(msgspec.json.encode(short)) <= _MAX_INFO else None


@dataclass(frozen=True)
class _Lines:
    """Passes the lines of one server on. Equal for equal servers, so that a configuration can be compared."""

    name: str
    on_stderr: OnStderr

    def __call__(self, line: str) -> None:
        self.on_stderr(self.name, line)


def read_stderr(entry: ServerEntry, on_stderr: OnStderr | None) -> ServerEntry:
    """Return a server whose lines on standard error are passed on, if it is a process that would inherit it."""
    target = entry.target
    if on_stderr is None or not isinstance(target, StdioServerParameters) or target.stderr != "inherit":
        return entry
    return replace(entry, target=replace(target, stderr=_Lines(entry.name, on_stderr)))
