"""What a docstring says of a function and of its parameters, in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["Described", "described"]

_SECTION = re.compile(
    r"(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|returns?|yields?|raises|"
    r"examples?|notes?|warnings?|see also|references|attributes|todo)(:?)\Z",
    re.IGNORECASE,
)
_OF_PARAMETERS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
_GOOGLE = re.compile(r"\*{0,2}(?P<name>\w+)\s*(\(.*?\))?\s*:\s*(?P<text>.*)\Z")
_NUMPY = re.compile(r"\*{0,2}(?P<names>\w+(\s*,\s*\*{0,2}\w+)*)\s*(:.*)?\Z")
_SPHINX = re.compile(r":(?P<what>\w+)(?P<rest>[^:]*):\s*(?P<text>.*)\Z")
_RULE = re.compile(r"[-=~^]{3,}\Z")


class Described(NamedTuple):
    """What a docstring says: of the function, and of its parameters by name."""

    text: str
    parameters: Mapping[str, str]


def described(docstring: str | None) -> Described:
    """Read a docstring. One in none of the styles is all text."""
    if not docstring:
        return Described("", {})
    text: list[str] = []
    parameters: dict[str, list[str]] = {}
    for section, lines in _sections(inspect.cleandoc(docstring).splitlines()):
        if section is None:
            text += _without_fields(lines, parameters)
        elif section.lower().rstrip(":") in _OF_PARAMETERS:
            _read_parameters(lines, parameters, is_numpy=not section.endswith(":"))
    told = {name: " ".join(" ".join(parts).split()) for name, parts in parameters.items()}
    return Described("\n".join(text).strip(), {name: said for name, said in told.items() if said})


def _sections(lines: list[str]) -> Iterator[tuple[str | None, list[str]]]:
    """The parts of a docstring with their titles: a colon ends those of Google's, a rule is under those of NumPy's."""
    title: str | None = None
    part: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        found = _SECTION.match(line)
        if found and ((found[2] and following[:1] in ("", " ")) or (not found[2] and _RULE.match(following))):
            yield title, part
            title, part = line, []
        elif title is not None and line and not line[0].isspace() and title.endswith(":"):
            yield title, part  # what follows a section of Google's without being indented is text again
            title, part = None, [line]
        elif not (_RULE.match(line) and not part and title is not None):
            part.append(line)
    yield title, part


def _without_fields(lines: list[str], parameters: dict[str, list[str]]) -> list[str]:
    """The lines of a text without Sphinx's fields, of which those of parameters are noted."""
    kept: list[str] = []
    into: list[str] | None = None
    for line in lines:
        found = _SPHINX.match(line)
        if found:
            into = []
            if found["what"] in ("param", "parameter", "arg", "argument", "key", "keyword") and found["rest"].split():
                into = parameters.setdefault(found["rest"].split()[-1].lstrip("*"), [])
            into.append(found["text"])
        elif into is not None and (line[:1].isspace() or not line):
            into.append(line)
        else:
            into = None
            kept.append(line)
    return kept


def _read_parameters(lines: list[str], parameters: dict[str, list[str]], *, is_numpy: bool) -> None:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    into: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) > indent or not line.strip():
            into.append(line)
            continue
        found = (_NUMPY if is_numpy else _GOOGLE).match(line.strip())
        if found is None:
            into.append(line)
        elif is_numpy:
            into = []
            for name in found["names"].split(","):
                parameters[name.strip().lstrip("*")] = into
        else:
            into = parameters.setdefault(found["name"], [])
            into.append(found["text"])
