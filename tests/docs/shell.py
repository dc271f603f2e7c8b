"""Whether commands on a page exist, with their options: they are looked at, and not run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from tests.paths import ROOT

__all__ = ["EXTRAS", "faults"]

_TO_FILL_IN = re.compile(r"<[^<>]*>|\$\(.*?\)\s*$")
_MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_TARGETS = set(" ".join(re.findall(r"^([a-z][a-z -]+):", _MAKEFILE, re.MULTILINE)).split())
EXTRAS: list[str] = [*tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]]
"""The extras that there are."""


def faults(code: str) -> Iterator[str]:
    """What is wrong with the lines of a block."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(_TO_FILL_IN.sub("it", line), comments=True)
        for command in _commands(words):
            check = _CHECKS.get(command[0])
            if check is None:
                yield f"nothing is known of {command[0]}: say in tests/docs/shell.py how it is checked"
            else:
                yield from (f"{' '.join(command)}: {fault}" for fault in check(command[1:]))


def _commands(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in [*words, "&"]:
        if word not in ("&", "&&", "|", ";"):
            command.append(word)
        elif command:
            yield command
            command = []


def _make(words: list[str]) -> Iterator[str]:
    for word in words:
        name, is_variable, _ = word.partition("=")
        if is_variable and not re.search(rf"\$\({name}\)|needs,.*\b{name}\b|^{name} \?=", _MAKEFILE, re.MULTILINE):
            yield f"there is no {name}"
        if not is_variable and word not in _TARGETS:
            yield f"there is no target {word}"


def _pip(words: list[str]) -> Iterator[str]:
    action, *what = words
    if action != "install":
        yield "pip installs"
    for word in what:
        found = re.fullmatch(r"(typedmcp|\.)(\[(?P<extras>[\w,]+)\])?", word)
        if found is None:
            yield f"{word} is not ours"
        for extra in (found["extras"] or "").split(",") if found and found["extras"] else []:
            if extra not in EXTRAS:
                yield f"there is no extra {extra}"


def _uvicorn(words: list[str]) -> Iterator[str]:
    from uvicorn.main import main

    command: Any = main
    known = {option for parameter in command.params for option in parameter.opts}
    yield from (f"there is no {word}" for word in words if word.startswith("--") and word not in known)


def _typedmcp(words: list[str]) -> Iterator[str]:
    name, *rest = words
    try:
        known = _options_of(name)
    except KeyError:
        yield f"there is no command {name}"
        return
    for word in rest:
        if word == "--":
            return
        if word.startswith("--") and word.partition("=")[0] not in known:
            yield f"there is no option {word}"


@cache
def _options_of(name: str) -> set[str]:
    """The options of a command of ours, by its help. Raises `KeyError` for one that there is not."""
    command = [sys.executable, "-m", "typedmcp", name, *([] if name.startswith("--") else ["--help"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise KeyError(name)
    return {"--help", *re.findall(r"--[a-z][a-z-]*", done.stdout)}


def _python(words: list[str]) -> Iterator[str]:
    if words[:2] == ["-m", "typedmcp"]:
        yield from _typedmcp(words[2:])
    elif words[0] != "-c" and not any((ROOT / folder / words[0]).exists() for folder in (".", "examples")):
        yield f"there is no {words[0]}"


def _assigns(words: list[str]) -> Iterator[str]:
    yield from (f"{word} is no assignment" for word in words if not re.match(r"\w+=", word))


_CHECKS: dict[str, Callable[[list[str]], Iterator[str]]] = {
    "export": _assigns, "make": _make, "pip": _pip, "python": _python, "typedmcp": _typedmcp, "uvicorn": _uvicorn,
}  # fmt: skip
