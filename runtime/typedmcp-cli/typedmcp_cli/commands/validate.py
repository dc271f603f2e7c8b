"""`typedmcp validate`: check recorded traffic, line by line."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Annotated, BinaryIO, NamedTuple

from cyclopts import Parameter

from mcpspec import VERSIONS
from typedmcp.building import visible
from typedmcp_cli.input import open_standard_input
from typedmcp_cli.output import encode_visible
from typedmcp_cli.recorded_traffic import RecordingChecker
from typedmcp_cli.status import FAILED, OK, CommandExit
from typedmcp_cli.traffic import MalformedLineError, TrafficFault, decode_line

__all__ = ["LineFault", "check_lines", "validate"]


class LineFault(NamedTuple):
    """A fault with the number of its line, from 1."""

    line: int
    fault: TrafficFault


def validate(
    file: Annotated[
        str,
        Parameter(
            name="FILE", allow_leading_hyphen=True, help="A file with a JSON message in each line; - is standard input."
        ),
    ],
    /,
    *,
    revision: Annotated[
        str | None,
        Parameter(
            alias="--version",
            choices=VERSIONS,
            help="The revision of messages that do not tell it, as those of recordings and handshakes do.",
        ),
    ] = None,
    json: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Print one JSON document instead of lines.")
    ] = False,
) -> int:
    """Check messages and print faults as file:line: method: path: reason."""
    checker = RecordingChecker(revision)
    with nullcontext(open_standard_input()) if file == "-" else _open(file) as source:
        faults = check_lines(source, checker)
        count = _print_document(faults, checker, file) if json else _print_lines(faults, checker, file)
    return FAILED if count else OK


def _open(file: str) -> BinaryIO:
    try:
        return open(file, "rb")
    except OSError as error:
        raise CommandExit(f"{file}: {error.strerror}") from None


def check_lines(source: Iterable[bytes], checker: RecordingChecker) -> Iterator[LineFault]:
    """Yield the faults of lines while they are read."""
    for number, line in enumerate(source, 1):
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if not text:
            continue
        try:
            value = decode_line(text)
        except MalformedLineError as error:
            yield LineFault(number, checker.count_malformed(str(error)))
            continue
        for fault in checker.check(value):
            yield LineFault(number, fault)


def _print_lines(faults: Iterable[LineFault], checker: RecordingChecker, file: str) -> int:
    """Print faults, a line for each, and a summary; return their number."""
    count = 0
    for count, (line, fault) in enumerate(faults, 1):  # noqa: B007  # used after the loop
        sys.stdout.write(f"{visible(file)}:{line}: {visible(str(fault))}\n")
    result = "valid" if not count else "1 fault" if count == 1 else f"{count} faults"
    sys.stdout.write(f"{checker.messages} message{'' if checker.messages == 1 else 's'}, {result}\n")
    return count


def _print_document(faults: Iterable[LineFault], checker: RecordingChecker, file: str) -> int:
    """Print a JSON document, written while the file is read; return the number of faults."""
    count = 0
    sys.stdout.write(f'{{"file": {_encode(file)}, "revision": {_encode(checker.revision)}, "faults": [')
    for count, (line, fault) in enumerate(faults, 1):
        comma = "," if count > 1 else ""
        sys.stdout.write(f"{comma}\n  {_encode({'line': line, **fault._asdict()})}")
    end = "\n" if count else ""
    sys.stdout.write(f'{end}], "messages": {checker.messages}}}\n')
    return count


def _encode(value: object) -> str:
    return encode_visible(value).decode()
