"""`typedmcp validate`: recorded traffic, line by line."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from mcpspec import VERSIONS
from typedmcp.cli.input import standard_input
from typedmcp.cli.status import FAILED, OK, Stop
from typedmcp.cli.traffic import Checker, Fault, Malformed, parsed

__all__ = ["Found", "check", "validate"]


class Found(NamedTuple):
    """A fault, and the line that it is in."""

    line: int
    fault: Fault


def validate(
    file: Annotated[
        str,
        Parameter(name="FILE", allow_leading_hyphen=True, help="A message of JSON in each line; - is standard input."),
    ],
    /,
    *,
    revision: Annotated[
        str, Parameter(alias="--version", choices=VERSIONS, help="The revision that the messages are of.")
    ],
    json: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Print one JSON document instead of lines.")
    ] = False,
) -> int:
    """Print what is wrong, as file:line: method: path: reason."""
    checker = Checker(revision)
    with nullcontext(standard_input()) if file == "-" else _opened(file) as source:
        found = check(source, checker)
        return _as_document(found, checker, file) if json else _as_lines(found, checker, file)


def _opened(file: str) -> Any:
    try:
        return open(file, "rb")
    except OSError as error:
        raise Stop(f"{file}: {error.strerror}") from None


def check(source: Iterable[bytes], checker: Checker) -> Iterator[Found]:
    """The faults in lines, as they are read."""
    for number, line in enumerate(source, 1):
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if not text:
            continue
        try:
            value = parsed(text)
        except Malformed as error:
            checker.messages += 1
            yield Found(number, Fault(None, "", str(error)))
            continue
        for fault in checker.check(value):
            yield Found(number, fault)


def _as_lines(found: Iterable[Found], checker: Checker, file: str) -> int:
    count = 0
    for count, (line, fault) in enumerate(found, 1):  # noqa: B007  # how many there were
        sys.stdout.write(f"{file}:{line}: {fault}\n")
    what = "valid" if not count else "1 fault" if count == 1 else f"{count} faults"
    sys.stdout.write(f"{checker.messages} message{'' if checker.messages == 1 else 's'}, {what}\n")
    return FAILED if count else OK


def _as_document(found: Iterable[Found], checker: Checker, file: str) -> int:
    """The same as a document, which is written while the file is read."""
    count = 0
    sys.stdout.write(f'{{"file": {_json(file)}, "revision": {_json(checker.version)}, "faults": [')
    for count, (line, fault) in enumerate(found, 1):
        comma = "," if count > 1 else ""
        sys.stdout.write(f"{comma}\n  {_json({'line': line, **fault._asdict()})}")
    end = "\n" if count else ""
    sys.stdout.write(f'{end}], "messages": {checker.messages}}}\n')
    return FAILED if count else OK


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
