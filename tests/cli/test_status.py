"""Every exit status that is documented, with what leads to it."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, ENVIRONMENT, Inside, typedmcp
from tests.paths import ROOT
from typedmcp.cli.status import FAILED, INTERRUPTED, OK, UNREACHABLE, USAGE

QUIET = "import time; time.sleep(1000)"

CASES: dict[str, tuple[int, list[str], str]] = {
    "a list": (OK, ["list", "URL"], ""),
    "a call": (OK, ["call", "URL", "total", "numbers=1"], ""),
    "differences": (OK, ["diff", "2025-06-18", "2025-11-25"], ""),
    "help": (OK, ["call", "--help"], ""),
    "a tool that failed": (FAILED, ["call", "URL", "fail"], "it rained"),
    "an error that is the answer": (
        FAILED, ["read", "URL", "cities://none"], "the server answered: resource not found: cities://none (-32602)"
    ),
    "nothing to save": (FAILED, ["prompt", "URL", "packing", "--json", "city=a", "days=x"], "the server answered: "),
    "an option that is unknown": (USAGE, ["list", "URL", "--fast"], "Unknown option: --fast."),
    "a file that is not there": (USAGE, ["list", "nowhere.py"], "no such file: nowhere.py"),
    "a tool that is not there": (USAGE, ["call", "URL", "fale"], "no tool 'fale'; did you mean fail?"),
    "a server that is not in its file": (
        USAGE, ["list", "FILE:nope"], "FILE has no 'nope'; there are server"
    ),
    "a server that is not there": (
        UNREACHABLE, ["list", "http://127.0.0.1:9/mcp"], "server/discover: http://127.0.0.1:9/mcp: "
    ),
    "a page that is no server": (UNREACHABLE, ["list", "PAGE"], "the server answered: there is nothing here"),
    "a command that is not there": (
        UNREACHABLE, ["list", "--", "no-such-command"], "cannot start 'no-such-command': "
    ),
    "a command that is no server": (
        UNREACHABLE,
        ["list", "--", sys.executable, "-c", "pass"],
        "server/discover: the connection ended: exit status 0",
    ),
    "a connection that takes too long": (
        UNREACHABLE, ["list", "--timeout", "1e-9", "tcp://127.0.0.1:9"], "tcp://127.0.0.1:9: no connection within "
    ),
    "a command that takes too long": (
        UNREACHABLE,
        ["list", "--timeout", "1e-9", "--", sys.executable, "-c", QUIET],
        f"{shlex.join([sys.executable, '-c', QUIET])}: no connection within ",
    ),
    "a server that is silent": (
        UNREACHABLE,
        ["list", "--timeout", "0.3", "--revision", "2025-11-25", "--", sys.executable, "-c", QUIET],
        "initialize: no answer within 0.3 s",
    ),
    "a tool that takes too long": (
        UNREACHABLE, ["call", "URL", "forever", "--timeout", "0.3"], "tools/call: no answer within 0.3 s"
    ),
    "a revision that is not spoken": (
        UNREACHABLE, ["list", "OLD", "--revision", "2026-07-28"], "the server answered: unsupported protocol version"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def older(folder: Path) -> list[str]:
    """A command that starts a server of older revisions only."""
    code = "import server; server.server.run(revisions=['2025-06-18'])"
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"]


@pytest.mark.parametrize(("status", "arguments", "told"), CASES.values(), ids=CASES)
def test_the_status_says_what_became_of(
    status: int, arguments: list[str], told: str, url: str, folder: Path, older: list[str], inside: Inside
) -> None:
    file = str(folder / "server.py")
    given = [{"URL": url, "PAGE": url.replace("/mcp", "/nothing")}.get(word, word) for word in arguments]
    given = [word.replace("FILE", file) for word in given]
    if "OLD" in given:
        given.remove("OLD")
        given += ["--", *older]
    done = inside(*given)
    assert done.status == status, done
    lines = done.err.splitlines()
    assert len(lines) <= 2
    assert not told or lines[0].removeprefix("error: ").startswith(told.replace("FILE", file))


@pytest.mark.parametrize(("text", "status"), [("1 / 0", FAILED), ("import sys; sys.exit(1)", UNREACHABLE)])
def test_a_file_that_cannot_be_served_is_told_once(text: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(text)
    done = typedmcp("list", "file.py", cwd=tmp_path)
    assert done.status == status
    assert sum(line.startswith("error: ") for line in done.err.splitlines()) == 1


def test_ctrl_c_is_a_status_and_leaves_no_server_behind(folder: Path) -> None:
    command = [*COMMAND, "call", "server.py", "forever"]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (INTERRUPTED, "", "error: interrupted\n")


def test_the_documentation_has_the_statuses_that_there_are() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    documented = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert documented == [OK, FAILED, USAGE, UNREACHABLE, INTERRUPTED]
