"""Every documented exit status, with its causes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import each
from tests.paths import ROOT
from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT, InProcess, typedmcp
from typedmcp_cli.status import FAILED, INTERRUPTED, OK, UNREACHABLE, USAGE

QUIET = "import time; time.sleep(1000)"

CASES: dict[str, tuple[int, list[str], str]] = {
    "a list": (OK, ["list", "URL"], ""),
    "a call": (OK, ["call", "URL", "total", "numbers=1"], ""),
    "differences": (OK, ["diff", "2025-06-18", "2025-11-25"], ""),
    "help": (OK, ["call", "--help"], ""),
    "a tool that failed": (FAILED, ["call", "URL", "fail"], "it rained"),
    "an error response": (
        FAILED,
        ["read", "URL", "cities://none"],
        "the server returned an error: resource not found: cities://none (-32602)"
    ),
    "an invalid argument of a prompt": (
        FAILED, ["prompt", "URL", "packing", "--json", "city=a", "days=x"], "the server returned an error: "
    ),
    "an unknown option": (USAGE, ["list", "URL", "--fast"], "Unknown option: --fast."),
    "a missing file": (USAGE, ["list", "nowhere.py"], "no such file: nowhere.py"),
    "an unknown tool": (USAGE, ["call", "URL", "fale"], "no tool 'fale'; did you mean fail?"),
    "an unknown object in a file": (
        USAGE, ["list", "FILE:nope"], "FILE has no 'nope'; known: server"
    ),
    "an unreachable server": (
        UNREACHABLE, ["list", "http://127.0.0.1:9/mcp"], "server/discover: http://127.0.0.1:9/mcp: "
    ),
    "a page that is not a server": (
        UNREACHABLE, ["list", "PAGE"], "the server returned an error: not found"
    ),
    "an unknown command": (
        UNREACHABLE, ["list", "--", "no-such-command"], "cannot start 'no-such-command': "
    ),
    "a command that is not a server": (
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
        f"{sys.executable}: no connection within ",
    ),
    "a silent server": (
        UNREACHABLE,
        ["list", "--timeout", "0.3", "--revision", "2025-11-25", "--", sys.executable, "-c", QUIET],
        "initialize: no answer within 0.3 s",
    ),
    "a tool that takes too long": (
        UNREACHABLE, ["call", "URL", "forever", "--timeout", "0.3"], "tools/call: no answer within 0.3 s"
    ),
    "an unsupported revision": (
        UNREACHABLE,
        ["list", "OLD", "--revision", "2026-07-28"],
        "the server returned an error: unsupported protocol version"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def older(folder: Path) -> list[str]:
    """A command that starts a server of older revisions only."""
    code = "import server; server.server.run(revisions=['2025-06-18'])"
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"]


@each("status, arguments, expected", CASES.values(), ids=CASES)
def test_each_case_has_its_exit_status(
    status: int, arguments: list[str], expected: str, url: str, folder: Path, older: list[str], in_process: InProcess
) -> None:
    file = str(folder / "server.py")
    given = [{"URL": url, "PAGE": url.replace("/mcp", "/nothing")}.get(word, word) for word in arguments]
    given = [word.replace("FILE", file) for word in given]
    if "OLD" in given:
        given.remove("OLD")
        given += ["--", *older]
    done = in_process(*given)
    assert done.status == status, done
    lines = done.err.splitlines()
    assert len(lines) <= 2
    assert not expected or lines[0].removeprefix("error: ").startswith(expected.replace("FILE", file))


@each("text, status", [("1 / 0", FAILED), ("import sys; sys.exit(1)", UNREACHABLE)])
def test_an_error_in_a_file_is_reported_once(text: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(text)
    done = typedmcp("list", "file.py", cwd=tmp_path)
    assert done.status == status
    assert sum(line.startswith("error: ") for line in done.err.splitlines()) == 1


def test_ctrl_c_has_a_status_and_ends_the_server(folder: Path) -> None:
    command = [*COMMAND, "call", "server.py", "forever"]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (INTERRUPTED, "", "error: interrupted\n")


def test_the_documentation_has_all_statuses() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    documented = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert documented == [OK, FAILED, USAGE, UNREACHABLE, INTERRUPTED]
