"""The command at a terminal: colours, progress, elicitation, Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, ENVIRONMENT, typedmcp

BOLD, RED = "\x1b[1m", "\x1b[31m"


_WITH_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""A program that makes its terminal the controlling one, for Ctrl-C, and becomes another program."""


def _run_at_terminal(
    *arguments: str, cwd: Path, typed: Sequence[tuple[str, str]] = (), **environment: str
) -> tuple[int, str]:
    """Run the command at a terminal; return its status and what it showed. `typed` has texts to wait for and input."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _WITH_TERMINAL, *COMMAND, *arguments], stdin=inside, stdout=inside, stderr=inside,
        cwd=cwd, env={**ENVIRONMENT, "COLUMNS": "100", **environment}, start_new_session=True,
    )  # fmt: skip
    os.close(inside)
    shown, seen, left = "", 0, [*typed]
    while data := _read(terminal):
        shown += data.decode(errors="replace")
        if left and left[0][0] in shown[seen:]:
            seen = len(shown)
            os.write(terminal, left.pop(0)[1].encode())
    os.close(terminal)
    return process.wait(30), shown.replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Read what the command wrote; nothing at the end and after a timeout."""
    if not select.select([terminal], [], [], 30)[0]:
        return b""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux reports the end of a terminal like this
        return b""


def test_lists_are_coloured_only_at_a_terminal(folder: Path, url: str) -> None:
    status, shown = _run_at_terminal("list", url, "prompts", cwd=folder)
    assert status == 0
    assert f"{BOLD}Prompts" in shown
    assert "\x1b" not in typedmcp("list", url, "prompts").out


def test_no_color_is_respected(folder: Path, url: str) -> None:
    _, shown = _run_at_terminal("list", url, "prompts", cwd=folder, NO_COLOR="1")
    assert "packing" in shown
    assert "\x1b[36m" not in shown
    status, shown = _run_at_terminal("list", "nowhere.py", cwd=folder, NO_COLOR="1")
    assert (status, shown) == (2, "error: no such file: nowhere.py\n")
    _, shown = _run_at_terminal("list", "nowhere.py", cwd=folder)
    assert shown == f"{RED}error\x1b[0m: no such file: nowhere.py\n"


def test_progress_is_a_bar_between_other_lines(folder: Path, url: str) -> None:
    status, shown = _run_at_terminal("call", url, "slow", "steps=3", cwd=folder)
    assert status == 0
    assert "100%" in shown
    assert "step 3" in shown
    assert "warning: stairs: finished 1" in shown
    assert shown.endswith("done\n")


def test_output_of_a_server_is_shown_once(folder: Path) -> None:
    _, shown = _run_at_terminal("call", "server.py", "forecast", "city=Oslo", cwd=folder, NO_COLOR="1")
    assert shown.count("asked about Oslo") == 1
    status, shown = _run_at_terminal("call", "server.py", "quit", cwd=folder, NO_COLOR="1")
    assert status == 3
    assert shown == "error: tools/call: the connection ended: exit status 7\n"


def test_text_of_a_server_cannot_control_the_terminal(folder: Path, url: str) -> None:
    _, shown = _run_at_terminal("call", url, "escape", cwd=folder)
    assert shown == "\\x1b[2Jcleared\n"
    assert typedmcp("call", url, "escape").out == "\x1b[2Jcleared\n"


def test_a_field_is_asked_for_until_the_answer_is_valid(folder: Path, url: str) -> None:
    typed = [
        ("name, text: ", "A\n"),
        ("name, text: ", "Ada\n"),
        ("age, integer (optional): ", "old\n"),
        ("age, integer (optional): ", "2\n"),
        ("age, integer (optional): ", "\n"),
        ("member, yes or no [yes]: ", "maybe\n"),
        ("member, yes or no [yes]: ", "n\n"),
        ("size, text: ", "L\n"),
        ("size, text: ", "m\n"),
    ]
    status, shown = _run_at_terminal("call", url, "ask", cwd=folder, typed=typed)
    assert status == 0
    assert "The server asks: Who are you? (Ctrl-D declines)\n  Your name.\n" in shown
    for expected in (
        "expected at least 2 characters",
        "expected a whole number",
        "expected at least 3",
        "expected yes or no",
        "expected one of: S, M",
    ):
        assert f"\n  {expected}\n" in shown
    assert shown.endswith("accept [('member', False), ('name', 'Ada'), ('size', 'M')]\n")


def test_the_end_of_input_declines(folder: Path, url: str) -> None:
    status, shown = _run_at_terminal("call", url, "ask", cwd=folder, typed=[("name, text: ", "\x04")])
    assert status == 0
    assert shown.endswith("decline []\n")


@pytest.mark.parametrize(("tool", "text"), [("ask", "name, text: "), ("forever", "started")])
def test_ctrl_c_ends_the_command(folder: Path, tool: str, text: str) -> None:
    status, shown = _run_at_terminal("call", "server.py", tool, cwd=folder, typed=[(text, "\x03")], NO_COLOR="1")
    assert status == 130
    assert shown.endswith("error: interrupted\n")
