"""`mcpspec-codegen migrate`: which files it reads, what it prints, and how it writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mcpspec_codegen.__main__ import main
from mcpspec_codegen.migrate import command
from tests.codegen.migrate.cases import NAMES
from tests.growth import growth
from tests.paths import ROOT

BEFORE = "from mcp.types import Tool\n"
AFTER = "from mcpspec.compat import Tool\n"
GIT = shutil.which("git") or "git"
PARTLY = "from mcp.types import Tool, AnyFunction\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str | bytes = BEFORE) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def migrate(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_load_names", lambda: NAMES)
        return main(["migrate", *arguments])


# Output


def test_without_write_it_prints_a_diff_and_then_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py", PARTLY)
    write("b.py")
    assert migrate(".") == 1
    output = capsys.readouterr()
    assert output.out == (
        "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-from mcp.types import Tool, AnyFunction\n"
        "+from mcp.types import AnyFunction\n+from mcpspec.compat import Tool\n"
        "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-from mcp.types import Tool\n+from mcpspec.compat import Tool\n"
        "a.py:1: mcp.types.AnyFunction: write Callable[..., Any]\n"
    )
    assert output.err == "files to change: 2; places left to do by hand: 1\n"
    assert Path("a.py").read_text() == PARTLY


@pytest.mark.parametrize(
    "text", [BEFORE, BEFORE[:-1], f"{PARTLY}x = '\x0c \u2028'\n".replace("\n", "\r\n"), f"# é\n\n\n\n{BEFORE}\n\n\n\nx"]
)
def test_git_applies_the_diff_to_what_write_writes(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("a/b.py", text)
    migrate("a")
    diff = capsys.readouterr().out
    write("c/a/b.py", text)
    subprocess.run([GIT, "init", "--quiet", "c"], check=True)
    subprocess.run([GIT, "apply", "-"], input=diff.encode(), cwd="c", check=True)
    migrate("--write", "a")
    assert Path("c/a/b.py").read_bytes() == Path("a/b.py").read_bytes() != text.encode()


def test_with_write_the_lines_are_those_of_the_new_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py", f"import mcp.types\n{PARTLY}mcp.types.Tool, mcp.types.AnyFunction\n")
    assert migrate("--write", "a.py") == 1
    output = capsys.readouterr()
    assert output.out == (
        "changed a.py\na.py:3: mcp.types.AnyFunction: write Callable[..., Any]\n"
        "a.py:5: mcp.types.AnyFunction: write Callable[..., Any]\n"
    )
    assert output.err == "files changed: 1; places left to do by hand: 2\n"


def test_a_tree_that_is_migrated_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py")
    assert migrate("--write", ".") == 0
    modified = Path("a.py").stat().st_mtime_ns
    capsys.readouterr()
    assert migrate("--write", ".") == 0
    assert capsys.readouterr().out == ""
    assert Path("a.py").stat().st_mtime_ns == modified


def test_control_characters_are_escaped_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a\x1b[31m\n.py", f"{BEFORE}x = '\x1b[2J'\r\n")
    migrate(".")
    out = capsys.readouterr().out
    assert "x = '\x1b[2J'\r\n" in out
    assert "--- a/'a\\x1b[31m\\n.py'\n" in out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    migrate(".")
    assert " x = '\\x1b[2J'\n" in capsys.readouterr().out


def test_what_the_output_cannot_encode_is_escaped() -> None:
    write("a.py", f"# \u2192\n{BEFORE}")
    command = (
        "from pathlib import Path; from tests.codegen.migrate.cases import NAMES; "
        "from mcpspec_codegen.migrate.command import migrate; "
        "migrate([Path('a.py')], is_writing=False, names=NAMES)"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, check=True)
    assert b" # \\u2192\n" in done.stdout


# Files


def test_files_keep_their_mode_encoding_and_line_ends() -> None:
    write("latin.py", f"# coding: latin-1\n{BEFORE}x = 'é'\n".encode("latin-1"))
    write("bom.py", f"\ufeff{PARTLY}".encode())
    write("lines.py", f"{PARTLY}x = 1\n".replace("\n", "\r\n"))
    Path("lines.py").chmod(0o751)
    migrate("--write", ".")
    assert Path("latin.py").read_bytes() == f"# coding: latin-1\n{AFTER}x = 'é'\n".encode("latin-1")
    assert Path("bom.py").read_bytes() == f"\ufefffrom mcp.types import AnyFunction\n{AFTER}".encode()
    assert (
        Path("lines.py").read_bytes()
        == f"from mcp.types import AnyFunction\n{AFTER}x = 1\n".replace("\n", "\r\n").encode()
    )
    assert Path("lines.py").stat().st_mode & 0o777 == 0o751
    assert sorted(os.listdir()) == ["bom.py", "latin.py", "lines.py"]


def test_environments_caches_and_links_are_skipped(tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.py").write_text(BEFORE)
    skipped = [
        ".git/a.py",
        "venv/lib/a.py",
        "cache/a.py",
        "x/__pycache__/a.py",
        ".tox/a.py",
        "node_modules/a.py",
        "a.txt",
    ]
    for path in [*skipped, "b.py", "x/b.pyi", ".ci/b.py"]:
        write(path)
    write("venv/pyvenv.cfg", "")
    write("cache/CACHEDIR.TAG", "")
    Path("link").symlink_to(outside)
    Path("link.py").symlink_to(outside / "a.py")
    assert migrate("--write", ".") == 0
    assert {path: Path(path).read_text() for path in skipped} == dict.fromkeys(skipped, BEFORE)
    assert (outside / "a.py").read_text() == BEFORE
    assert [Path(path).read_text() for path in ("b.py", "x/b.pyi", ".ci/b.py")] == [AFTER] * 3


def test_files_that_are_named_are_migrated_once_and_links_stay_links(capsys: pytest.CaptureFixture[str]) -> None:
    file = write("real/script")
    Path("link").symlink_to(file)
    assert migrate("--write", "link", "real/script", "link") == 0
    assert Path("link").is_symlink()
    assert file.read_text() == AFTER
    assert capsys.readouterr().out == "changed link\n"


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"import mcp\nx = (\n", 2, "not parsed: "),
        (b"import mcp\nx = '\xff'\n", 2, "not parsed: byte 0xff is not utf-8"),
        (b"# coding: nonsense\nimport mcp\n", 1, "not parsed: unknown encoding: nonsense"),
    ],
)
def test_files_that_do_not_parse_are_reported_and_the_others_migrated(
    data: bytes, line: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.py", data)
    write("b.py")
    assert migrate("--write", ".") == 1
    assert Path("a.py").read_bytes() == data
    assert Path("b.py").read_text() == AFTER
    assert f"a.py:{line}: {reason}" in capsys.readouterr().out


def test_a_file_without_the_word_mcp_is_not_even_decoded(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py", b"\xff(")
    assert migrate(".") == 0
    assert capsys.readouterr().out == ""


# Errors


@pytest.mark.parametrize("arguments", [[], ["--what", "."]])
def test_wrong_arguments_are_an_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        migrate(*arguments)
    assert caught.value.code == 2
    assert "usage: mcpspec-codegen" in capsys.readouterr().err


def test_nothing_is_changed_if_a_path_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    file = write("a.py")
    assert migrate("--write", "a.py", "b.py") == 2
    assert file.read_text() == BEFORE
    assert capsys.readouterr().err == "error: b.py: expected a file or a folder\n"


def test_files_and_folders_that_cannot_be_read_are_an_error_and_the_others_are_migrated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("b.py")
    write("closed/c.py")
    write("a.py")
    closed = {Path("a.py"), Path("closed")}
    if os.geteuid() == 0:  # for root, every file can be read
        deny(monkeypatch, closed)
    for path in closed:
        path.chmod(0)
    assert migrate("--write", ".") == 2
    for path in closed:
        path.chmod(0o700)
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "error: a.py: Permission denied",
        "error: closed: Permission denied",
        "files changed: 1; places left to do by hand: 0",
    ]
    assert Path("b.py").read_text() == AFTER


def deny(monkeypatch: pytest.MonkeyPatch, closed: set[Path]) -> None:
    """Reject the paths like the system, for root."""
    read, scan = Path.read_bytes, os.scandir

    def check(path: Path) -> None:
        if path in closed:
            raise PermissionError(13, "Permission denied", str(path))

    def read_bytes(path: Path) -> bytes:
        check(path)
        return read(path)

    def scandir(path: str) -> object:
        check(Path(path))
        return scan(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    monkeypatch.setattr(os, "scandir", scandir)


def test_a_file_that_cannot_be_replaced_stays_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.py")

    def replace(source: str, target: Path) -> None:
        assert Path(source).read_text() == AFTER
        raise OSError(28, "No space left on device", str(target.name))

    monkeypatch.setattr(os, "replace", replace)
    assert migrate("--write", ".") == 2
    assert "error: a.py: No space left on device\n" in capsys.readouterr().err
    assert {path: Path(path).read_text() for path in os.listdir()} == {"a.py": BEFORE}


def test_without_libcst_it_says_how_to_install_it() -> None:
    command = (
        "import sys; sys.modules['libcst'] = None; "
        "from mcpspec_codegen.__main__ import main; sys.exit(main(['migrate', '.']))"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    remedy = "pip install 'mcpspec-codegen[migrate]', in a checkout ./generated './codegen[migrate]'"
    assert done.stderr == f"error: mcpspec-codegen migrate needs LibCST: {remedy}\n"


# The names of the package


def test_the_command_migrates_to_the_names_that_the_package_has() -> None:
    pytest.importorskip("mcpspec.compat.names", reason="mcpspec.compat has no tables of names yet")
    missing = import_module("mcpspec.compat.names").MISSING
    name = min(missing)
    write("a.py", f"from mcp.types import {name}, Tool\n")
    command = [sys.executable, "-m", "mcpspec_codegen", "migrate", "--write", "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, f"changed a.py\na.py:1: mcp.types.{name}: {missing[name]}\n")
    assert Path("a.py").read_text() == f"from mcp.types import {name}\n{AFTER}"


def test_files_that_also_use_the_sdk_are_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py", "from mcp import ClientSession, Tool\n")
    write("b.py", "from mcp.types import Tool\n")
    assert migrate(".") == 0
    hint = capsys.readouterr().err.splitlines()[-1]
    assert hint.startswith("1 files, such as a.py, also import mcp")
    assert "mcpspec.compat.sdk.install()" in hint


def test_files_are_searched_for_the_sdk_in_linear_time() -> None:
    def check(text: str) -> None:
        write("a.py", f"import mcp\n# {text}\n")
        assert migrate(".") == 0

    assert growth(check, "mcpspec ", characters=8000, times=10) < 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from mcp.types import Tool\nx = " + "(" * 5000 + "1" + ")" * 5000 + "\n", "nested too deeply"),
        ("# coding: rot13\n# mcp\n", "not parsed: 'rot13' is not a text encoding"),
    ],
    ids=["nested", "codec"],
)
def test_a_file_that_cannot_be_read_leaves_the_others(
    text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.py", text)
    write("b.py")
    assert migrate(".") == 1
    output = capsys.readouterr().out
    assert reason in output
    assert "+from mcpspec.compat import Tool" in output
