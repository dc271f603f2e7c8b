"""How the command ends: a status, and one line on standard error where something was wrong."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import TextIO, cast

from typedmcp.errors import (
    ConnectionLost,
    DecodeError,
    Error,
    InputUnavailable,
    ProtocolError,
    RemoteError,
    UnsupportedVersion,
    UsageError,
)

__all__ = [
    "FAILED", "GRACE", "INTERRUPTED", "OK", "TOLD", "UNREACHABLE", "USAGE", "Stop", "complain", "guarded", "near",
    "said",
]  # fmt: skip

OK = 0
FAILED = 1
"""What was asked for failed: a tool says so, the server answered with an error, traffic is invalid."""
USAGE = 2
"""The command line makes no sense: an unknown option, a file or a tool that is not there."""
UNREACHABLE = 3
"""The server cannot be talked to: no connection, no answer in time, an answer that is none."""
INTERRUPTED = 130
"""Ctrl-C."""
TOLD = 64
"""Added to the status of a server of ours that has said itself why it ends, for the command that started it."""
GRACE = 6.0
"""Seconds that a server has for open requests when it is to end; it gives them 5 by itself."""


class Stop(Exception):  # noqa: N818  # it is the end, and not always an error
    """Ends the command: what is said on standard error, unless it is nothing, and the status."""

    def __init__(self, text: str, status: int = USAGE) -> None:
        super().__init__(text)
        self.status = status


def guarded(work: Callable[[], int], *, is_ours: bool = True) -> int:
    """The status of a piece of work, whatever it raises that was to be expected.

    `is_ours` says that no file of anybody's is run, whose errors are shown where they come from.
    """
    try:
        status = work()
        if cast("TextIO | None", sys.stdout) is not None:
            sys.stdout.flush()
        return status
    except (Stop, Error, DecodeError) as error:
        if text := said(error):
            complain(text)
        return _status(error)
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _let_go(1)  # who reads has seen enough, as `head` does
        return OK
    except OSError as error:
        if not is_ours:
            raise
        _let_go(1)  # which may be a file on a disk that is full
        complain(error.strerror or str(error))
        return FAILED


def _let_go(descriptor: int) -> None:
    """Throw away what cannot be written. Python would complain of it once more at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _flush(stream: TextIO | None, descriptor: int) -> None:
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        _let_go(descriptor)


def complain(text: str, kind: str = "error") -> None:
    """Say what is wrong on standard error."""
    _flush(sys.stdout, 1)
    if sys.stderr.isatty():
        from typedmcp.cli.output import coloured, visible

        text = visible(text)
        kind = coloured(kind, "red" if kind == "error" else "yellow")
    with suppress(OSError):  # there is nobody left to tell
        sys.stderr.write(f"{kind}: {text}\n")
    _flush(sys.stderr, 2)


def near(name: str, names: Iterable[str]) -> str:
    """What else there is, for the end of an error message: names that are much alike, or all if they are few."""
    known = [*names]
    found = get_close_matches(name, known, cutoff=0.65)
    if found:
        return f"; did you mean {' or '.join(found)}?"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 10 else ""


def _status(error: Exception) -> int:
    if isinstance(error, Stop):
        return error.status
    if isinstance(error, ConnectionLost | ProtocolError | UnsupportedVersion | InputUnavailable):
        return UNREACHABLE
    return FAILED if isinstance(error, RemoteError) else USAGE


def said(error: Exception) -> str:
    """An error in one line, for people."""
    if isinstance(error, RemoteError):
        data = f"; {json.dumps(error.data, ensure_ascii=False)}" if error.data is not None else ""
        return f"the server answered: {error.message} ({error.code}){data}"
    if not isinstance(error, Error):
        return str(error)
    method, error.method = error.method, None  # ids are of no use here
    text = f"{method}: {error}" if method and not isinstance(error, UsageError) else str(error)
    # On a terminal the lines that the server wrote stand there already.
    return text.partition("; last lines on standard error:")[0] if sys.stderr.isatty() else text
