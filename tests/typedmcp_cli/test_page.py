"""`docs/cli.md`: every command prints what the page shows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import each
from tests.paths import ROOT
from tests.typedmcp_cli.command import ENVIRONMENT
from typedmcp_cli import command_line

_FENCE = r'^```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^```$'
_BLOCK = re.compile(_FENCE, re.MULTILINE | re.DOTALL)
_BLOCKS = [*_BLOCK.finditer((ROOT / "docs" / "cli.md").read_text(encoding="utf-8"))]


def _commands() -> Iterator[tuple[str, str]]:
    """The commands on the page with their output."""
    for block in _BLOCKS:
        if block["language"] == "console":
            for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block["text"], re.MULTILINE):
                yield found[1], found[2]


COMMANDS = [*_commands()]
_SHELL = shutil.which("sh") or ""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page shows, and with the command."""
    folder = tmp_path_factory.mktemp("page")
    for block in _BLOCKS:
        if block["title"]:
            (folder / block["title"]).write_text(block["text"], encoding="utf-8")
    for command, shown in COMMANDS:
        if command.startswith("cat "):
            (folder / command.removeprefix("cat ")).write_text(shown, encoding="utf-8")
    tools = folder / "bin"
    tools.mkdir()
    for name, line in (("python", ""), ("typedmcp", " -m typedmcp")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable}{line} "$@"\n')
        (tools / name).chmod(0o755)
    return folder


def test_the_page_shows_every_command() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert all(f"typedmcp {name} " in text for name in command_line.COMMANDS)


@pytest.mark.long
@pytest.mark.skipif(not _SHELL, reason="no shell")
@each("command, shown", COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_page_shows(command: str, shown: str, place: Path) -> None:
    environment = {**ENVIRONMENT, "PATH": f"{place / 'bin'}:{ENVIRONMENT['PATH']}"}
    done = subprocess.run(
        [_SHELL, "-c", command], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == shown
