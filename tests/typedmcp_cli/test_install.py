"""`install`: the entry of a server for a host, printed or merged into the file of the host."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest

import typedmcp_hosts
from tests.cases import each
from tests.docs.markdown import blocks
from tests.paths import ROOT
from tests.typedmcp_cli.command import InProcess
from typedmcp.transports.process_parameters import StdioServerParameters
from typedmcp_cli import host_files
from typedmcp_cli.commands.install import HostName
from typedmcp_cli.host_files import write_entry
from typedmcp_cli.hosts import HOSTS
from typedmcp_cli.status import CommandExit

PYTHON = "/home/ada/.venv/bin/python"
URL = "https://weather.example.com/mcp"
SERVER = "import typedmcp\nserver = typedmcp.Server('weather')\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a server, and the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("APPDATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weather.py").write_text(SERVER)
    return tmp_path


_SETTINGS = {"darwin": "~/Library/Application Support", "win32": "%APPDATA%", "linux": "~/.config"}
"""The folder of the settings of applications, as the page writes it: `…` in the paths of files."""


def test_the_option_has_every_host() -> None:
    assert get_args(HostName) == (*HOSTS,)


def test_the_page_shows_what_the_command_prints(home: Path, in_process: InProcess) -> None:
    printed: list[str] = []
    for name, host in HOSTS.items():
        done = in_process("install", "weather.py", "--host", name, "--python", PYTHON)
        printed.append(done.out.replace(str(home), "/home/ada"))
        if host.url_member is not None:
            printed.append(in_process("install", URL, "--host", name, "--name", "weather").out)
    page = ROOT / "docs" / "hosts.md"
    assert {block.code for block in blocks(page) if block.language == "json"} == {*printed}
    text = page.read_text(encoding="utf-8")
    assert all(f"`--host {name}`" in text for name in HOSTS)


@each("name", HOSTS)
@each("platform", ["darwin", "win32", "linux"])
def test_the_page_names_the_file_of_each_host_on_each_system(
    name: str, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPDATA", "%APPDATA%")
    text = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8").replace("\\", "/")
    host = HOSTS[name]
    if host.file is not None:
        folder, file = _SETTINGS[platform], host.find_file(Path("~"), platform).as_posix()
        assert (f"`{file.replace(folder, '…')}`" if host.in_application_data else f"`{file}`") in text
        assert f"`{folder}`" in text
    assert host.project_file is None or f"`{host.find_project_file(Path()).as_posix()}`" in text


def test_the_written_entry_starts_the_server_in_any_folder(home: Path, in_process: InProcess) -> None:
    commands: set[tuple[str, ...]] = set()
    for name, host in HOSTS.items():
        if host.file is None:
            continue
        done = in_process("install", "weather.py:server", "--host", name, "--write", "--env", "A=b")
        assert done.status == 0, done.err
        entry = typedmcp_hosts.load_config(host.find_file(home))["weather"].target
        assert isinstance(entry, StdioServerParameters)
        assert entry.env == {"A": "b"}
        commands.add((entry.command, *entry.args))
    (home / "elsewhere").mkdir()
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    for command in commands:
        ended = subprocess.run(command, cwd=home / "elsewhere", input=ping, env={}, capture_output=True, timeout=60)
        assert json.loads(ended.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}, ended.stderr


def test_a_host_without_a_file_says_where_to_paste_the_entry(home: Path, in_process: InProcess) -> None:
    done = in_process("install", "weather.py", "--host", "cherry-studio")
    assert (done.status, "Import from JSON" in done.err) == (0, True)
    for option, said in (("--write", "Cherry Studio has no file"), ("--project", "no configuration of projects")):
        done = in_process("install", "weather.py", "--host", "cherry-studio", option)
        assert (done.status, said in done.err) == (2, True), done.err


def test_a_module_is_served_from_its_folder(home: Path, in_process: InProcess) -> None:
    done = in_process("install", "weather:server", "--host", "cursor")
    args = json.loads(done.out)["mcpServers"]["weather"]["args"]
    assert args[3:] == ["run", "weather:server", "--directory", str(home)]


def test_everything_else_in_a_file_stays(home: Path, in_process: InProcess) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    old: Any = {
        "theme": "dünkel",
        "mcpServers": {
            "other": {"url": "https://other.example", "extra": [1, None]},
            "weather": {"url": "https://old", "disabled": True, "env": {"KEY": "kept", "A": "old"}},
        },
        "last": {"b": 1, "a": 2},
    }
    text = json.dumps(old, indent="\t", ensure_ascii=False)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    options = ("--write", "--unchecked", "--python", PYTHON, "--env", "A=new")
    done = in_process("install", "weather.py", "--host", "cursor", *options)
    assert done.out.startswith(f"Cursor: 'weather' is in {file}; the old file is mcp.json.bak. ")
    new = json.loads(file.read_text(encoding="utf-8"))
    entry = new["mcpServers"].pop("weather")
    assert (entry["disabled"], entry["env"], "url" in entry) == (True, {"KEY": "kept", "A": "new"}, False)
    del old["mcpServers"]["weather"]
    assert json.dumps(new) == json.dumps(old)
    assert file.read_text(encoding="utf-8").startswith('{\n\t"theme": "dünkel"')
    assert (file.parent / "mcp.json.bak").read_text(encoding="utf-8") == text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(os.listdir(file.parent)) == ["mcp.json", "mcp.json.bak"]


def test_a_server_that_does_not_start_is_not_written(home: Path, in_process: InProcess) -> None:
    (home / "weather.py").write_text("import os\nos.environ['KEY']\n" + SERVER)
    arguments = ("install", "weather.py", "--host", "cursor", "--write")
    done = in_process(*arguments)
    assert done.status == 1
    assert "exit status 1" in done.err
    assert "Nothing was written; --unchecked writes the entry all the same." in done.err
    assert not (home / ".cursor").exists()
    assert in_process(*arguments, "--env", "KEY=a").status == 0
    (home / ".cursor" / "mcp.json").unlink()
    assert in_process(*arguments, "--unchecked").status == 0


def test_writing_the_same_again_changes_nothing(home: Path, in_process: InProcess) -> None:
    for _ in range(2):
        assert in_process("install", "weather.py", "--host", "windsurf", "--write").status == 0
    assert os.listdir(home / ".codeium" / "windsurf") == ["mcp_config.json"]


def test_a_link_to_a_file_stays_a_link(home: Path, in_process: InProcess) -> None:
    (home / ".gemini").mkdir()
    (home / "dotfiles.json").write_text("{}")
    (home / ".gemini" / "settings.json").symlink_to(home / "dotfiles.json")
    assert in_process("install", URL, "--host", "gemini-cli", "--write").status == 0
    assert (home / ".gemini" / "settings.json").is_symlink()
    assert json.loads((home / "dotfiles.json").read_text())["mcpServers"]


def test_a_link_in_place_of_the_copy_is_replaced(home: Path, in_process: InProcess) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{}")
    (home / "precious").write_text("mine")
    (home / ".gemini" / "settings.json.bak").symlink_to(home / "precious")
    assert in_process("install", URL, "--host", "gemini-cli", "--write").status == 0
    assert (home / "precious").read_text() == "mine"
    assert (home / ".gemini" / "settings.json.bak").read_text() == "{}"


@each(
    "value",
    ["1e400", "-0", "1.10", "1E5", "12345678901234567890123", "1" * 5000, '"\\ud800"', '"\\udead\\ud83d"', '"\u2028"'],
)
def test_values_of_others_are_written_as_they_were_read(value: str, home: Path, in_process: InProcess) -> None:
    (home / ".gemini").mkdir(exist_ok=True)
    file = home / ".gemini" / "settings.json"
    file.write_text(f'{{"before": {value}, "mcpServers": {{"other": {{"timeout": {value}}}}}}}', encoding="utf-8")
    assert in_process("install", URL, "--host", "gemini-cli", "--write").status == 0
    text = file.read_text(encoding="utf-8")
    assert f'"before": {value},' in text
    assert f'"timeout": {value}\n' in text


def test_runs_at_the_same_time_lose_no_entry(home: Path) -> None:
    file = home / "mcp.json"
    barrier = threading.Barrier(8)

    def write(number: int) -> None:
        barrier.wait()
        for part in range(5):
            write_entry(file, "mcpServers", f"{number}.{part}", {"url": URL})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(json.loads(file.read_text())["mcpServers"]) == 40


def test_a_folder_that_stays_locked_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_files, "_LOCK_SECONDS", 0.05)
    descriptor = os.open(home, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(CommandExit, match=r"another process has held its lock for 0\.05 s; nothing was written"):
            write_entry(home / "mcp.json", "mcpServers", "a", {"url": URL})
    finally:
        os.close(descriptor)
    assert not (home / "mcp.json").exists()


BROKEN = {
    '{"mcpServers": {': "line 1 column 17",
    "[]": "expected an object, got list",
    '{"mcpServers": []}': "mcpServers: expected an object, got list",
    '{"mcpServers": {}, "mcpServers": {}}': "the member 'mcpServers' is repeated",
    '{"a": NaN}': "NaN is not JSON",
    '// mine\n{"mcpServers": {}}': "it has comments or trailing commas, which would be lost",
}


@each("text, expected", BROKEN.items(), ids=BROKEN)
def test_a_file_that_would_lose_something_is_left_as_it_is(
    text: str, expected: str, home: Path, in_process: InProcess
) -> None:
    file = home / ".mcp.json"
    file.write_text(text)
    done = in_process("install", "weather.py", "--host", "claude-code", "--project", "--write", "--unchecked")
    assert done.status == 1
    assert done.err.startswith(f"error: {file}: ")
    assert expected in done.err
    assert file.read_text() == text
    assert sorted(os.listdir(home)) == [".mcp.json", "weather.py"]


WRONG: dict[str, tuple[list[str], str]] = {
    "a missing file": (["nowhere.py", "--host", "cursor"], "no such file: nowhere.py"),
    "a URL in the file of Claude Desktop": ([URL, "--host", "claude-desktop"], "Claude Desktop takes URLs in its"),
    "a project of Windsurf": (["weather.py", "--host", "windsurf", "--project"], "Windsurf has no configuration of"),
    "a name with a space": (["weather.py", "--host", "cursor", "--name", "a b"], "--name 'a b': expected at most 64"),
    "a variable without a value": (["weather.py", "--host", "cursor", "--env", "A"], "--env 'A': expected NAME=VALUE"),
    "a variable for a URL": ([URL, "--host", "cursor", "--env", "A=b"], "--env, --python and --directory are for"),
    "a header for a file": (["weather.py", "--host", "cursor", "--header", "A: b"], "--header is for URLs"),
    "an unknown host": (["weather.py", "--host", "curser"], 'Invalid value "curser" for --host'),
    "a missing folder": (["weather.py", "--host", "cursor", "--directory", "no"], "--directory 'no' is not a folder"),
}


@each("arguments, expected", WRONG.values(), ids=WRONG)
@pytest.mark.usefixtures("home")
def test_what_cannot_be_installed_is_rejected(arguments: list[str], expected: str, in_process: InProcess) -> None:
    done = in_process("install", *arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {expected}")


def test_headers_of_a_url_are_written(home: Path, in_process: InProcess) -> None:
    done = in_process("install", URL, "--host", "cursor", "--header", "X-Team: blue", "--write")
    assert done.status == 0
    found = typedmcp_hosts.load_config(home / ".cursor" / "mcp.json")["weather-example-com"]
    assert (found.target, found.headers) == (URL, {"X-Team": "blue"})
