"""Exit statuses of the command, and one-line errors on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import TextIO, cast

from typedmcp.building import escape_controls
from typedmcp.errors import (
    AuthorizationRequiredError,
    ConnectionLostError,
    DecodeError,
    Error,
    InputUnavailableError,
    ProtocolError,
    RemoteError,
    UnsupportedVersionError,
    UsageError,
)

__all__ = [
    "ALREADY_REPORTED",
    "FAILED",
    "GRACE_SECONDS",
    "INTERRUPTED",
    "OK",
    "UNREACHABLE",
    "USAGE",
    "CommandExit",
    "describe_error",
    "print_error",
    "run_with_status",
    "suggest_names",
]  # fmt: skip

OK = 0
FAILED = 1
"""The request or the check failed: a tool failed, the server returned an error, traffic is invalid."""
USAGE = 2
"""The command line is wrong: an unknown option, a file or a tool that does not exist."""
UNREACHABLE = 3
"""The server cannot be reached or understood: no connection, no response in time, an invalid response."""
INTERRUPTED = 130
"""Ctrl-C."""
ALREADY_REPORTED = 64
"""Added to the exit status of a server that `typedmcp` started, if the server has printed the error itself."""
GRACE_SECONDS = 6.0
"""Time for a server to finish open requests before it is killed. The server itself gives them 5 seconds."""

_CLOSE_MATCH = 0.65
_MAX_LISTED_NAMES = 10


class CommandExit(Exception):  # noqa: N818  # control flow; the status may be 0
    """Ends the command with a status, and with a message on standard error unless that is empty."""

    def __init__(self, text: str, status: int = USAGE) -> None:
        super().__init__(text)
        self.status = status


def run_with_status(work: Callable[[], int], *, has_user_code: bool = False) -> int:
    """Run `work` and return its status; print an expected error and return the status for it.

    With `has_user_code`, an `OSError` may come from the user's file, so it is raised with its traceback.
    """
    try:
        status = work()
        if cast("TextIO | None", sys.stdout) is not None:
            sys.stdout.flush()
        return status
    except (CommandExit, Error, DecodeError) as error:
        if text := describe_error(error):
            print_error(text)
        return _status_of(error)
    except KeyboardInterrupt:
        print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output(1)  # the reader has closed the pipe, as `head` does
        return OK
    except OSError as error:
        if has_user_code:
            raise
        _discard_output(1)  # standard output may be a file on a full disk
        print_error(error.strerror or str(error))
        return FAILED


def _discard_output(descriptor: int) -> None:
    """Point a descriptor at the null device. Otherwise Python reports unwritten output again when it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _flush(stream: TextIO | None, descriptor: int) -> None:
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        _discard_output(descriptor)


def print_error(text: str, label: str = "error") -> None:
    """Print a labelled message on standard error; red for errors and yellow for other labels on a terminal."""
    _flush(sys.stdout, 1)
    text = escape_controls(text, keep_lines=True)
    if sys.stderr.isatty():
        from typedmcp_cli.output import style_text

        label = style_text(label, "red" if label == "error" else "yellow")
    with suppress(OSError):  # standard error is closed
        sys.stderr.write(f"{label}: {text}\n")
    _flush(sys.stderr, 2)


def suggest_names(name: str, names: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: similar names, or all if they are few, or nothing."""
    known = [*names]
    similar = get_close_matches(name, known, cutoff=_CLOSE_MATCH)
    if similar:
        return f"; did you mean {' or '.join(similar)}?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= _MAX_LISTED_NAMES else ""


def _status_of(error: Exception) -> int:
    if isinstance(error, CommandExit):
        return error.status
    if isinstance(error, ConnectionLostError | ProtocolError | UnsupportedVersionError | InputUnavailableError):
        return UNREACHABLE
    return FAILED if isinstance(error, RemoteError) else USAGE


def describe_error(error: Exception) -> str:
    """Describe an error in one line."""
    if isinstance(error, RemoteError):
        data = f"; {json.dumps(error.data, ensure_ascii=False)}" if error.data is not None else ""
        return f"the server returned an error: {error.message} ({error.code}){data}"
    if not isinstance(error, Error):
        return str(error)
    method, error.method = error.method, None  # leaves out the request's id, which is of no use here
    text = f"{method}: {error}" if method and not isinstance(error, UsageError) else str(error)
    if isinstance(error, AuthorizationRequiredError) and error.status == 401:
        text += "; send a token with --header 'Authorization: Bearer …', or sign in with --oauth"
    # On a terminal, the server's own lines have already been shown.
    return text.partition("; last lines on standard error:")[0] if sys.stderr.isatty() else text
