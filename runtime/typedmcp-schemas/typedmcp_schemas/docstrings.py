"""Docstrings in the styles of Google, NumPy and Sphinx: the descriptions of a function and of its parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["ParsedDocstring", "parse_docstring"]

_SECTION = re.compile(
    r"(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|returns?|yields?|raises|"
    r"examples?|notes?|warnings?|see also|references|attributes|todo)(:?)\Z",
    re.IGNORECASE,
)
_PARAMETER_SECTIONS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
_PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_GOOGLE = re.compile(r"\*{0,2}(?P<name>\w++)\s*+(?:\(.*?\)\s*+)?:\s*(?P<text>.*)\Z")
_NUMPY = re.compile(r"\*{0,2}(?P<names>\w+(\s*,\s*\*{0,2}\w+)*)\s*(:.*)?\Z")
_SPHINX = re.compile(r":(?P<field>\w++)(?P<rest>[^:]*+):\s*(?P<text>.*)\Z")
_RULE = re.compile(r"[-=~^]{3,}\Z")
_RULES = ("-", "=", "~", "^")
_EMPTY_LINES = re.compile(r"\A(?:[ \t]*\n)+")


class ParsedDocstring(NamedTuple):
    """The descriptions in a docstring."""

    text: str
    """The description of the function: the text outside all sections."""
    parameters: Mapping[str, str]
    """The descriptions of its parameters, by name."""


def parse_docstring(docstring: str | None) -> ParsedDocstring:
    """Parse a docstring. Without sections, the whole docstring is the description."""
    if not docstring:
        return ParsedDocstring("", {})
    text: list[str] = []
    parameters: dict[str, list[str]] = {}
    for section, lines in _split_sections(_clean(docstring).splitlines()):
        if section is None:
            text += _remove_fields(lines, parameters)
        elif section.lower().rstrip(":") in _PARAMETER_SECTIONS:
            _read_parameters(lines, parameters, is_numpy=not section.endswith(":"))
    joined = {name: " ".join(" ".join(parts).split()) for name, parts in parameters.items()}
    return ParsedDocstring(
        "\n".join(text).strip(), {name: description for name, description in joined.items() if description}
    )


def _clean(docstring: str) -> str:
    """Remove the indentation, in linear time: `inspect.cleandoc` removes empty lines at the start one at a time."""
    return inspect.cleandoc(_EMPTY_LINES.sub("\n", docstring))


def _split_sections(lines: list[str]) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the sections with their titles: Google's titles end with a colon, NumPy's are underlined."""
    title: str | None = None
    section: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        match = _SECTION.match(line) if line.endswith(":") or following[:1] in _RULES else None
        if match and ((match[2] and following[:1] in ("", " ")) or (not match[2] and _RULE.match(following))):
            yield title, section
            title, section = line, []
        elif title is not None and line and not line[0].isspace() and title.endswith(":"):
            yield title, section  # text that is not indented ends a section of Google's style
            title, section = None, [line]
        elif section or title is None or not _RULE.match(line):
            section.append(line)
    yield title, section


def _remove_fields(lines: list[str], parameters: dict[str, list[str]]) -> list[str]:
    """Return the lines without Sphinx's fields, and add the fields of parameters to `parameters`."""
    kept: list[str] = []
    target: list[str] | None = None
    for line in lines:
        match = _SPHINX.match(line) if line.startswith(":") else None
        if match:
            target = []
            if match["field"] in _PARAMETER_FIELDS and match["rest"].split():
                target = parameters.setdefault(match["rest"].split()[-1].lstrip("*"), [])
            target.append(match["text"])
        elif target is not None and (line[:1].isspace() or not line):
            target.append(line)
        else:
            target = None
            kept.append(line)
    return kept


def _read_parameters(lines: list[str], parameters: dict[str, list[str]], *, is_numpy: bool) -> None:
    """Read a section about parameters, in Google's or NumPy's style."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    target: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) > indent or not line.strip():
            target.append(line)
            continue
        match = (_NUMPY if is_numpy else _GOOGLE).match(line.strip())
        if match is None:
            target.append(line)
        elif is_numpy:
            target = []
            for name in match["names"].split(","):
                parameters[name.strip().lstrip("*")] = target
        else:
            target = parameters.setdefault(match["name"], [])
            target.append(match["text"])
