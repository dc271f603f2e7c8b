"""What the documentation says is run as it stands."""

from __future__ import annotations

import inspect
import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.docs.markdown import PAGES, Block, anchors, blocks, links, name_of, prose, tables
from tests.docs.shell import EXTRAS, faults
from tests.paths import ROOT
from typedmcp.server import options

README = ROOT / "README.md"
DOCS = ROOT / "docs"
BLOCKS = [block for page in PAGES for block in blocks(page)]
ALONE = {DOCS / "cli.md"}
"""Pages whose console blocks are run by tests of their own."""


# Blocks of code


WITH_PYTHON = sorted({block.page for block in BLOCKS if block.language == "python" and not block.excuse})


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes((ROOT / "examples" / "quickstart.py").read_bytes())
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.run_page", str(page)],
        cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _check_json(block: Block) -> None:
    json.loads(block.code)


def _check_toml(block: Block) -> None:
    tomllib.loads(block.code)


def _check_shell(block: Block) -> None:
    assert [*faults(block.code)] == []


def _check_console(block: Block) -> None:
    assert block.page in ALONE


def _check_nothing(block: Block) -> None:
    pass


CHECKS = {
    "python": _check_nothing,  # they are run above
    "sh": _check_shell,
    "console": _check_console,
    "json": _check_json,
    "toml": _check_toml,
    "text": _check_nothing,
}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_is_what_it_is_called(block: Block) -> None:
    assert block.language in CHECKS, "a block has a language, one of those"
    if not block.excuse:
        CHECKS[block.language](block)


def test_few_blocks_have_an_excuse() -> None:
    excuses = [block for block in BLOCKS if block.excuse]
    assert len(excuses) < len(BLOCKS) / 20
    comments = [line for page in PAGES for line in prose(page) if line.startswith("<!-- not run")]
    assert len(comments) == len(excuses), "an excuse stands right above a block, with its reason behind a colon"


def test_the_runner_of_pages_notices_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for code, said in (
        ("print(1)  # 2", "'2' is not printed there"),
        ("nothing", "NameError"),
        ("await nothing()", "NameError"),
    ):
        page.write_text(f"# A page\n\n```python\n{code}\n```\n")
        command = [sys.executable, "-m", "tests.docs.run_page", str(page)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_commands_that_there_are_not_are_noticed() -> None:
    lines = [
        "make tset", "make test QUIKC=1", "pip install '.[htpt]'", "uvicorn app:app --prot 1", "typedmcp rnu server.py",
        "typedmcp run server.py --trnsport http", "python no_such_file.py", "sudo reboot",
    ]  # fmt: skip
    assert [line for line in lines if not [*faults(line)]] == []


# Links


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for number, target in links(page):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        there = page if not path else page.parent / path
        assert there.exists(), f"{name_of(page)}:{number}: {target}"
        assert not anchor or anchor in anchors(there), f"{name_of(page)}:{number}: {target}"
        assert DOCS not in page.parents or there.resolve().is_relative_to(DOCS), f"{target} is not on the site"


def test_the_site_has_every_page() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_the_reference_has_every_public_name_once() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    named = re.findall(r"^::: typedmcp\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted({*typedmcp.__all__} - {"__version__"})


def test_no_page_names_a_path_of_the_machine_that_it_was_written_on() -> None:
    for page in PAGES:
        assert not re.search(r"/(work|root|tmp|home/(?!ada\b))", page.read_text(encoding="utf-8")), name_of(page)


# Tables


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    """A bar within a cell is `&#124;` in `<code>`: the site and GitHub know no other way in common."""
    for number, rows in tables(page):
        assert {len(row) for row in rows} == {len(rows[0])}, f"{name_of(page)}:{number}"
        assert not any("\\" in cell[-1:] for row in rows for cell in row), f"{name_of(page)}:{number}"


def _names_in(page: Path, *heads: str) -> list[str]:
    """The names in the first column of the tables whose first head is one of these, in order."""
    found: list[str] = []
    for _, (first, *rows) in tables(page):
        if first[0] in heads:
            cells = " ".join(re.sub(r"\(.*?\)", "", row[0]) for row in rows)
            found += [name for names in re.findall(r"`([^`]+)`", cells) for name in names.split(", ")]
    return found


def _parameters(function: Any) -> list[str]:
    return [*inspect.signature(function).parameters]


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        (options.ToolOptions, "option of tools"),
        (options.ResourceOptions, "option of resources"),
        (options.PromptOptions, "option of prompts"),
    ],
)
def test_every_option_of_the_decorators_is_in_a_table(kind: type, head: str) -> None:
    shared = _names_in(DOCS / "servers.md", "option of all")
    assert sorted(kind.__annotations__) == sorted(shared + _names_in(DOCS / "servers.md", head))


def test_every_option_of_a_server_is_in_a_table() -> None:
    assert sorted(_names_in(DOCS / "servers.md", "option of servers")) == sorted(_parameters(typedmcp.Server))


def test_every_option_of_serving_is_in_a_table() -> None:
    named = _names_in(DOCS / "handlers.md", "option")
    assert sorted(named) == sorted({*_parameters(typedmcp.Service)} - {"handler"})


def test_every_option_of_a_call_is_in_a_table() -> None:
    assert {*typedmcp.CallOptions.__annotations__} <= {*_names_in(DOCS / "clients.md", "option")}


def test_every_option_of_connecting_is_on_the_page() -> None:
    text = (DOCS / "clients.md").read_text(encoding="utf-8")
    missing = [name for name in _parameters(typedmcp.connect) if not re.search(rf"\b{name}\b", text)]
    assert missing == []


INSIDE = {"attempt", "channel", "entry", "task"}
"""Members of the context that are the runtime's own."""


def test_every_member_of_the_context_is_in_a_table() -> None:
    heads = ("telling the client", "asking the client", "about the request", "other")
    members = {name for name in dir(typedmcp.Context) if not name.startswith("_")}
    assert {*_names_in(DOCS / "servers.md", *heads)} == members - INSIDE


# The README


def test_the_lines_of_the_readme_fit() -> None:
    assert [line for line in README.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []


def test_the_readme_names_every_extra() -> None:
    assert sorted(_names_in(README, "extra")) == sorted(EXTRAS)


def test_the_readme_names_only_targets_that_exist() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", README.read_text(encoding="utf-8")))
    assert named
    assert [*faults("\n".join(f"make {target}" for target in named))] == []


@pytest.mark.parametrize("name", ["quickstart", "server", "client"])
def test_the_programs_in_the_readme_are_the_examples(name: str) -> None:
    example = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert any(block.code in example for block in blocks(README) if len(block.code) > 200)


# The examples that pages quote

_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/logLevel": "info",
}
_CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "greet", "arguments": {"name": "Ada"}, "_meta": _META},
}


def _output(name: str) -> list[str]:
    """What an example prints, which may be a server that is called once."""
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")]
    asked = json.dumps(_CALL)
    done = subprocess.run(command, check=True, input=asked, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["quickstart", "server"])
def test_the_servers_in_the_readme_answer(name: str) -> None:
    *logged, answered = map(json.loads, _output(name))
    assert answered["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    said = [message["params"]["data"] for message in logged]
    assert said == (["greeting a client that speaks 2026-07-28"] if name == "server" else [])


@pytest.mark.parametrize("name", ["first_decode", "handler"])
def test_the_examples_that_pages_quote_run(name: str) -> None:
    assert _output(name)


def test_the_example_over_http_serves_and_calls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        environment = {**os.environ, "PORT": str(probe.getsockname()[1])}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "over_http.py")]
    with subprocess.Popen([*command, "serve"], env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert any("Uvicorn running" in line for line in server.stderr)
            called = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=60)
            assert called.stdout.splitlines() == ["progress 1", "TextContent(text='Hello!')"]
        finally:
            server.terminate()


def test_the_client_in_the_readme_prints_what_it_was_told() -> None:
    tools, greeting, refusal = _output("client")
    assert tools == "['greet'] on 2026-07-28"
    assert greeting == "TextContent(text='Hello, Ada!')"
    assert "the client has not declared: elicitation (-32021)" in refusal
