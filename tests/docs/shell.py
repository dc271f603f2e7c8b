"""Check that the commands on a page exist, with their options, without running them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from tests.forks import run_forked
from tests.paths import ROOT
from tools.dist import SATELLITES, SCHEMAS

__all__ = ["EXTRAS", "errors_in"]

_TO_FILL_IN = re.compile(r"<[^<>]*>|\$\(.*?\)\s*$")
_MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_TARGETS = set(" ".join(re.findall(r"^([a-z][a-z -]+):", _MAKEFILE, re.MULTILINE)).split())
EXTRAS: list[str] = [*tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]]
"""The extras of the runtime."""
_EXTRAS_OF: dict[str, list[str]] = {
    "typedmcp": EXTRAS, ".": EXTRAS, "mcpspec": ["pydantic"], "./generated": ["pydantic"],
    "mcpspec-codegen": ["migrate"], "./codegen": ["migrate"],
    SCHEMAS.name: ["jsonschema", "pydantic"], f"./runtime/{SCHEMAS.name}": ["jsonschema", "pydantic"],
    **{name: [] for satellite in SATELLITES for name in (satellite.name, f"./runtime/{satellite.name}")},
}  # fmt: skip
"""The projects, and their folders → their extras."""


def errors_in(code: str) -> Iterator[str]:
    """Yield the errors in the lines of a block."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(_TO_FILL_IN.sub("it", line), comments=True)
        for command in _commands(words):
            check = _CHECKS.get(command[0])
            if check is None:
                yield f"unknown command {command[0]!r}: add a check for it to tests/docs/shell.py"
            else:
                yield from (f"{' '.join(command)}: {error}" for error in check(command[1:]))


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
            yield f"unknown variable {name}"
        if not is_variable and word not in _TARGETS:
            yield f"unknown target {word}"


def _pip(words: list[str]) -> Iterator[str]:
    action, *what = words
    if action != "install":
        yield "expected `pip install`"
    for word in what:
        found = re.fullmatch(r"(?P<project>[\w./-]+)(\[(?P<extras>[\w,]+)\])?", word)
        if found is None or found["project"] not in _EXTRAS_OF:
            yield f"{word} is not one of our projects"
            continue
        for extra in found["extras"].split(",") if found["extras"] else []:
            if extra not in _EXTRAS_OF[found["project"]]:
                yield f"unknown extra {extra}"


def _uvicorn(words: list[str]) -> Iterator[str]:
    from uvicorn.main import main

    command: Any = main
    known = {option for parameter in command.params for option in parameter.opts}
    yield from (f"unknown option {word}" for word in words if word.startswith("--") and word not in known)


def _typedmcp(words: list[str]) -> Iterator[str]:
    name, *rest = words
    try:
        known = _options_of(name)
    except KeyError:
        yield f"unknown command {name}"
        return
    for word in rest:
        if word == "--":
            return
        if word.startswith("--") and word.partition("=")[0] not in known:
            yield f"unknown option {word}"


@cache
def _options_of(name: str) -> set[str]:
    """Return the options that the help of a command of typedmcp lists. Raises `KeyError` for an unknown command."""
    done = run_forked(["-m", "typedmcp", name, *([] if name.startswith("--") else ["--help"])])
    if done.returncode:
        raise KeyError(name)
    return {"--help", *re.findall(r"--[a-z][a-z-]*", done.stdout)}


def _codegen(words: list[str]) -> Iterator[str]:
    done = run_forked(["-m", "mcpspec_codegen", words[0], "--help"])
    if done.returncode:
        yield f"unknown command {words[0]}"
    known = re.findall(r"--[a-z][a-z-]*", done.stdout)
    yield from (f"unknown option {word}" for word in words[1:] if word.startswith("--") and word not in known)


def _python(words: list[str]) -> Iterator[str]:
    if words[:2] == ["-m", "typedmcp"]:
        yield from _typedmcp(words[2:])
    elif words[0] == "tools/install.py":
        yield from (
            f"no such extra: {extra}" for extra in ",".join(words[1:]).split(",") if extra and extra not in EXTRAS
        )
    elif words[0] == "-m":
        if not any((ROOT / folder / f"{words[1].replace('.', '/')}.py").exists() for folder in (".", "generated")):
            yield f"no such module: {words[1]}"
    elif words[0] != "-c" and not any((ROOT / folder / words[0]).exists() for folder in (".", "examples")):
        yield f"no such file: {words[0]}"


def _assigns(words: list[str]) -> Iterator[str]:
    yield from (f"{word} is not an assignment" for word in words if not re.match(r"\w+=", word))


_CHECKS: dict[str, Callable[[list[str]], Iterator[str]]] = {
    "export": _assigns, "make": _make, "mcpspec-codegen": _codegen, "pip": _pip,
    "python": _python, "typedmcp": _typedmcp, "uvicorn": _uvicorn,
}  # fmt: skip
