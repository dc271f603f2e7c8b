"""The command at a terminal: colours, progress, elicitation, Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.cases import each
from tests.forks import start_forked
from tests.typedmcp_cli.command import ENVIRONMENT, typedmcp

BOLD, RED = "\x1b[1m", "\x1b[31m"


def _run_at_terminal(
    *arguments: str, cwd: Path, typed: Sequence[tuple[str, str]] = (), **environment: str
) -> tuple[int, str]:
    """Run the command at a terminal; return its status and what it showed. `typed` has texts to wait for and input."""
    terminal, inside = pty.openpty()
    wait = start_forked(
        ["-m", "typedmcp", *arguments], [os.ttyname(inside)] * 3, cwd=cwd,
        env={**ENVIRONMENT, "COLUMNS": "100", **environment},
    )  # fmt: skip
    shown, seen, left = "", 0, [*typed]
    while data := _read(terminal):
        if not shown:
            os.close(inside)  # the command has opened it
        shown += data.decode(errors="replace")
        if left and left[0][0] in shown[seen:]:
            seen = len(shown)
            os.write(terminal, left.pop(0)[1].encode())
    os.close(terminal)
    return wait(), shown.replace("\r\n", "\n")


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


def test_json_and_errors_cannot_control_the_terminal_either(folder: Path, url: str) -> None:
    _, shown = _run_at_terminal("call", url, "reverse", "--json", cwd=folder)
    assert "\\u009b2J\\u007f\\u202egnp.exe" in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert json.loads(shown)["structuredContent"] == {"text": "\x9b2J\x7f\u202egnp.exe"}
    assert json.loads(typedmcp("call", url, "reverse", "--json").out) == json.loads(shown)
    done = typedmcp("call", url, "\x1b[2J\u202e")
    assert "\\x1b[2J\\u202e" in done.err
    assert "\x1b" not in done.err


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


POET = """
import typedmcp
server = typedmcp.Server("poet")

@server.tool
async def poem(ctx: typedmcp.Context) -> str:
    message = await ctx.sample("A poem about \\x1b[2Jrain", system_prompt="Be brief.")
    return f"{message.model}: {typedmcp.text_of(message)}"
"""


def test_the_user_answers_in_place_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "poet.py").write_text(POET, encoding="utf-8")
    typed = [("  assistant: ", "drip drop\n")]
    status, shown = _run_at_terminal("call", "poet.py", "poem", cwd=tmp_path, typed=typed)
    assert status == 0
    question = (
        "message of a model (Ctrl-D declines)\n  system: Be brief.\n  user: A poem about \\x1b[2Jrain\n  assistant: "
    )
    assert question in shown
    assert shown.endswith("a person: drip drop\n")
    status, shown = _run_at_terminal("call", "poet.py", "poem", cwd=tmp_path, typed=[("assistant: ", "\x04")])
    assert (status, "the user rejected the sampling request" in shown) == (1, True)
    done = typedmcp("call", "poet.py", "poem", cwd=tmp_path)
    assert (done.status, "the client has not declared: sampling" in done.err) == (1, True)


def test_a_server_at_a_terminal_says_what_it_waits_for(tmp_path: Path) -> None:
    (tmp_path / "poet.py").write_text(POET, encoding="utf-8")
    status, shown = _run_at_terminal("run", "poet.py", cwd=tmp_path, typed=[("Ctrl-D ends it.", "\x04")])
    assert status == 0
    assert "for a client that starts this command" in shown
    assert "typedmcp inspect FILE" in shown


@each("tool, text", [("ask", "name, text: "), ("forever", "started")])
def test_ctrl_c_ends_the_command(folder: Path, tool: str, text: str) -> None:
    status, shown = _run_at_terminal("call", "server.py", tool, cwd=folder, typed=[(text, "\x03")], NO_COLOR="1")
    assert status == 130
    assert shown.endswith("error: interrupted\n")


def test_a_server_says_at_a_terminal_what_it_waits_for(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("import typedmcp\ntypedmcp.Server('s').run()\n")
    terminal, inside = pty.openpty()
    with subprocess.Popen([sys.executable, str(file)], stdin=inside, stderr=subprocess.PIPE, text=True) as server:
        os.close(inside)
        assert server.stderr is not None
        said = server.stderr.readline() + server.stderr.readline()
        assert "standard input and output" in said
        assert "--transport http" in said
        server.terminate()
        server.wait(30)
    os.close(terminal)


def test_a_list_of_like_objects_is_a_table_on_a_terminal(folder: Path, url: str) -> None:
    _, shown = _run_at_terminal("call", url, "stations", cwd=folder, NO_COLOR="1")
    rows = [line.split() for line in shown.splitlines()]
    assert [row for row in rows if "\x1b" not in " ".join(row)][-2:] == [
        ["Bergen", "12345678901234567890"],
        ["\\x1b[2JOslo", "4"],
    ]
    assert "\x1b[2J" not in shown
    piped = typedmcp("call", url, "stations").out
    assert json.loads(piped) == [
        {"name": "Bergen", "height": 12345678901234567890}, {"height": 4, "name": "\x1b[2JOslo"},
    ]  # fmt: skip
    assert piped.count("\n") == 1


def test_other_json_is_indented_on_a_terminal_and_the_same_in_a_pipe(folder: Path, url: str) -> None:
    _, shown = _run_at_terminal("call", url, "tree", cwd=folder, NO_COLOR="1")
    assert '      "size": 12345678901234567890\n' in shown
    assert json.loads(shown) == json.loads(typedmcp("call", url, "tree").out)


@each("columns", ["25", "100"])
def test_a_table_fits_the_terminal(folder: Path, url: str, columns: str) -> None:
    _, shown = _run_at_terminal("call", url, "stations", cwd=folder, NO_COLOR="1", COLUMNS=columns)
    assert max(len(Text.from_ansi(line).plain) for line in shown.splitlines()) <= int(columns)


SESSION = (
    ("list", "server.py", "tools"),
    ("call", "server.py", "stations"),
    ("call", "server.py", "tree"),
    ("call", "server.py", "chart"),
    ("call", "server.py", "fail"),
)


def test_a_session_at_a_terminal_can_be_looked_at(folder: Path, tmp_path: Path) -> None:
    """Record commands as asciicast v2 and as a picture, in the folder of `make pictures` if that is set."""
    target = Path(os.environ.get("TYPEDMCP_PICTURES", tmp_path))
    target.mkdir(parents=True, exist_ok=True)
    shown = [(" ".join(arguments), _run_at_terminal(*arguments, cwd=folder)[1]) for arguments in SESSION]
    text = "".join(f"$ typedmcp {command}\n{output}" for command, output in shown)
    events = [json.dumps([place, "o", line.replace("\n", "\r\n")]) for place, line in enumerate(text.splitlines(True))]
    header = json.dumps({"version": 2, "width": 100, "height": 40})
    (target / "terminal.cast").write_text("\n".join([header, *events, ""]), encoding="utf-8")
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text))
    console.save_svg(str(target / "terminal.svg"), title="typedmcp")
    assert "it rained" in text
    assert (target / "terminal.svg").read_text(encoding="utf-8").startswith("<svg")
