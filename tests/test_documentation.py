"""The documentation is true: its code runs, its commands and links exist, its tables agree with the code."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from msgspec.structs import fields

import typedmcp
import typedmcp_redis
from tests.cases import each
from tests.docs import frames, limits, site
from tests.docs.markdown import PAGES, Block, anchors, blocks, links, name_of, prose, tables
from tests.docs.shell import EXTRAS, errors_in
from tests.forks import run_forked
from tests.paths import ROOT
from tools import code_figures
from typedmcp.app import options
from typedmcp.limits import Limits
from typedmcp.protocol.guesses import GuessedAttribute
from typedmcp.server.http.asgi import AsgiOptions
from typedmcp.stores import StoreLimits
from typedmcp_schemas import validate

README = ROOT / "README.md"
DOCS = ROOT / "docs"
MADE = site.render()
"""The pages that `make docs` makes."""
BLOCKS = [block for page in PAGES for block in blocks(page)]
ALONE = {DOCS / "cli.md"}
"""Pages whose console blocks other tests run."""


# Blocks of code


WITH_PYTHON = sorted({block.page for block in BLOCKS if block.language == "python" and not block.excuse})


@each("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs_and_prints_its_comments(page: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes((ROOT / "examples" / "quickstart.py").read_bytes())
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    done = run_forked(["-m", "tests.docs.run_page", page], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


def _check_json(block: Block) -> None:
    json.loads(block.code)


def _check_toml(block: Block) -> None:
    tomllib.loads(block.code)


def _check_shell(block: Block) -> None:
    assert [*errors_in(block.code)] == []


def _check_console(block: Block) -> None:
    assert block.page in ALONE


def _check_nothing(block: Block) -> None:
    pass


CHECKS = {
    "python": _check_nothing,  # run above
    "sh": _check_shell,
    "console": _check_console,
    "json": _check_json,
    "toml": _check_toml,
    "text": _check_nothing,
}


@each("block", BLOCKS, ids=str)
def test_a_block_is_valid_in_its_language(block: Block) -> None:
    assert block.language in CHECKS, "a block must name one of these languages"
    if not block.excuse:
        CHECKS[block.language](block)


def test_few_blocks_are_excused_from_running() -> None:
    excuses = [block for block in BLOCKS if block.excuse]
    assert len(excuses) < len(BLOCKS) / 20
    comments = [line for page in PAGES for line in prose(page) if line.startswith("<!-- not run")]
    assert len(comments) == len(excuses), "an excuse must stand directly above a block, with a reason after the colon"


def test_running_a_page_fails_for_a_wrong_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for code, said in (
        ("print(1)  # 2", "'2' is not printed"),
        ("nothing", "NameError"),
        ("await nothing()", "NameError"),
    ):
        page.write_text(f"# A page\n\n```python\n{code}\n```\n")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = run_forked(["-m", "tests.docs.run_page", page], cwd=tmp_path, env=environment)
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_unknown_commands_are_found() -> None:
    lines = [
        "make tset", "make test QUIKC=1", "pip install '.[htpt]'", "uvicorn app:app --prot 1", "typedmcp rnu server.py",
        "typedmcp run server.py --trnsport http", "python no_such_file.py", "sudo reboot",
    ]  # fmt: skip
    assert [line for line in lines if not [*errors_in(line)]] == []


# Links


@each("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for number, target in links(page):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        there = page if not path else page.parent / path
        if there in MADE:
            continue
        assert there.exists(), f"{name_of(page)}:{number}: {target}"
        assert not anchor or anchor in anchors(there), f"{name_of(page)}:{number}: {target}"
        assert DOCS not in page.parents or there.resolve().is_relative_to(DOCS), f"{target} is not on the site"


def test_the_site_has_every_page() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {page for page in (*PAGES, *MADE) if DOCS in page.parents}
    assert sorted(named) == sorted(page.relative_to(DOCS).as_posix() for page in pages)


def test_the_reference_lists_every_public_name_once() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    named = re.findall(r"^::: typedmcp\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted({*typedmcp.__all__} - {"__version__"})


def test_no_page_contains_a_path_of_the_author_s_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/((work|root|tmp)\b|home/(?!ada\b))", page.read_text(encoding="utf-8")), name_of(page)


# Tables


@each("page", PAGES, ids=name_of)
def test_all_rows_of_a_table_have_as_many_cells_as_its_header(page: Path) -> None:
    """Within a cell, write a bar as `&#124;` in `<code>`: nothing else works both on the site and on GitHub."""
    for number, rows in tables(page):
        assert {len(row) for row in rows} == {len(rows[0])}, f"{name_of(page)}:{number}"
        assert not any("\\" in cell[-1:] for row in rows for cell in row), f"{name_of(page)}:{number}"


def _names_in(page: Path, *heads: str) -> list[str]:
    """Return the names in the first column of the tables whose first header is one of these, in order."""
    found: list[str] = []
    for _, (first, *rows) in tables(page):
        if first[0] in heads:
            cells = " ".join(re.sub(r"\(.*?\)", "", row[0]) for row in rows)
            found += [name for names in re.findall(r"`([^`]+)`", cells) for name in names.split(", ")]
    return found


def _parameters(function: Any) -> list[str]:
    return [*inspect.signature(function).parameters]


@each(
    "kind, head",
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
    assert sorted(named) == sorted(typedmcp.ServerOptions.__annotations__)


def test_every_option_of_the_asgi_application_is_in_a_table() -> None:
    own = {*AsgiOptions.__annotations__} - {*typedmcp.ServerOptions.__annotations__}
    assert {*_names_in(DOCS / "http.md", "option")} == own


def test_every_option_of_a_call_is_in_a_table() -> None:
    assert {*typedmcp.CallOptions.__annotations__} <= {*_names_in(DOCS / "clients.md", "option")}


def test_every_option_of_connecting_is_on_the_page() -> None:
    text = (DOCS / "clients.md").read_text(encoding="utf-8")
    missing = [
        name for name in {"target", *typedmcp.ConnectOptions.__annotations__} if not re.search(rf"\b{name}\b", text)
    ]
    assert missing == []


def test_the_made_page_of_limits_has_each_of_them() -> None:
    names = re.findall(r"^\| `(\w+)` \|", limits.render(), re.MULTILINE)
    dataclasses = [field.name for kind in limits.DATACLASSES for field in fields_of(kind)]
    assert names == [field.name for field in fields(Limits)] + dataclasses


def test_the_made_page_of_frames_has_their_outcomes() -> None:
    assert "| two messages on one line | any | error -32700, no id" in frames.render()


@each(
    "store, head",
    [(typedmcp.MemoryStore, "option of the memory store"), (typedmcp_redis.RedisStore, "option of the Redis store")],
)
def test_every_option_of_a_store_is_in_a_table(store: type, head: str) -> None:
    assert sorted(_names_in(DOCS / "deploying.md", head)) == sorted(_parameters(store))


def test_every_limit_of_a_store_is_in_a_table() -> None:
    assert _names_in(DOCS / "deploying.md", "limit of stores") == [each.name for each in fields_of(StoreLimits)]


@each("page", ["servers.md", "clients.md"])
def test_the_dialects_of_json_schema_are_named(page: str) -> None:
    known = {_dialect_name(url) for url in validate._DIALECTS}  # pyright: ignore[reportPrivateUsage]
    text = (DOCS / page).read_text(encoding="utf-8")
    assert {*re.findall(r"\b(draft-0\d|20(?:19|20)-\d\d)\b", text)} == known


def _dialect_name(url: str) -> str:
    """Return the usual name of a dialect: the year and month, or the number of the draft."""
    return url.split("/")[-2] if "/draft/" in url else f"draft-{url.split('draft-')[1][:2]}"


def test_every_kind_of_diagnostic_is_in_a_table() -> None:
    assert _names_in(DOCS / "wire.md", "kind") == [*typedmcp.DiagnosticKind]


INTERNAL = {"connection", "attempt", "channel", "encodings", "method_codec", "request_meta", "state", "task"}
"""Members of the context that only the runtime uses."""


def test_every_member_of_the_context_is_in_a_table() -> None:
    heads = ("telling the client", "asking the client", "about the request", "other")
    found = {name: inspect.getattr_static(typedmcp.Context, name) for name in dir(typedmcp.Context)}
    members = {
        name for name, value in found.items() if not name.startswith("_") and not isinstance(value, GuessedAttribute)
    }
    assert {*_names_in(DOCS / "servers.md", *heads)} == members - INTERNAL


# Architecture

ARCHITECTURE = DOCS / "architecture.md"
DECISIONS = DOCS / "decisions.md"
INVENTED = {"app/recipes.py", "transports/carrier.py"}
"""Files that the page only imagines."""


def test_the_architecture_pages_name_only_files_that_exist() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8") + DECISIONS.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)*\w+\.(?:py|md|json)|(?:[\w-]+/)+)`", text)) - INVENTED
    names = (
        ".", "runtime/typedmcp", "runtime/typedmcp-schemas", "runtime/typedmcp-schemas/typedmcp_schemas",
        "codegen/mcpspec_codegen", "generated", "generated/mcpspec",
    )  # fmt: skip
    folders = [ROOT / name for name in names]
    assert len(named) > 50
    assert sorted(name for name in named if not any((folder / name).exists() for folder in folders)) == []


def test_the_architecture_page_has_a_row_for_every_room() -> None:
    rows = {name.rstrip("/") for name in _names_in(ARCHITECTURE, "room")}
    package = ROOT / "runtime" / "typedmcp"
    rooms = {path.parent.name if path.name == "__init__.py" else path.name for path in package.glob("[!_]*.py")}
    rooms |= {path.parent.name for path in package.glob("*/__init__.py")}
    assert rows >= rooms


def test_the_pictures_of_the_rooms_are_the_import_contract() -> None:
    block = f"<!-- layers: make figures -->\n{code_figures.layers(ROOT)}\n<!-- end of layers -->"
    pages = [ROOT / page for page in code_figures.PAGES]
    assert [page for page in pages if block not in page.read_text(encoding="utf-8")] == [], "run: make figures"


def test_the_lines_that_the_architecture_page_quotes_are_nearly_those_of_the_code() -> None:
    """A change of a few lines does not make the page stale: a tenth is allowed, and fifty lines."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    quoted, counted = _weights(text), _weights(code_figures.fill(text, ROOT))
    assert quoted.keys() == counted.keys(), "run: make figures"
    far = [name for name, lines in quoted.items() if abs(lines - counted[name]) > 50 + counted[name] / 10]
    assert far == [], "run: make figures"


def _weights(page: str) -> dict[str, int]:
    """Read the lines of each distribution and each folder from the made tables."""
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| [\d,]+ \|$", page, re.MULTILINE)
    return {name: int(lines.replace(",", "")) for name, lines in rows}


def test_no_page_installs_from_an_index_before_anything_is_there() -> None:
    """Nothing has been released: folders of a checkout are installed, by `tools/install.py` or by pip."""
    from_index = re.compile(
        r"(?:pip|uv|pipx) (?:install|add) [^`\n]*?'?(?:typedmcp|mcpspec)[\w-]*(?:\[[\w,]*\])?'?(?![\w/])"
    )
    found = [
        f"{name_of(page)}: {match[0]}"
        for page in PAGES
        for match in from_index.finditer(page.read_text(encoding="utf-8"))
        if "./" not in match[0] and "/decisions" not in name_of(page)
    ]
    assert found == []


# The README


def test_the_lines_of_the_readme_fit() -> None:
    assert [line for line in README.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(README.read_bytes()) <= 9 << 10


def test_the_page_of_dependencies_names_every_extra() -> None:
    assert sorted(_names_in(DOCS / "dependencies.md", "extra")) == sorted(EXTRAS)


def test_the_readme_names_only_targets_that_exist() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", README.read_text(encoding="utf-8")))
    assert named
    assert [*errors_in("\n".join(f"make {target}" for target in named))] == []


QUOTED = {"quickstart": README, "server": DOCS / "handlers.md", "client": DOCS / "handlers.md"}
"""The examples that pages quote whole, without their docstrings."""


@each("name", QUOTED)
def test_the_programs_on_pages_are_the_examples(name: str) -> None:
    example = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert any(block.code in example for block in blocks(QUOTED[name]) if len(block.code) > 200)


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
    """Run an example, send it one call in case it is a server, and return the lines that it prints."""
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")]
    asked = json.dumps(_CALL)
    done = subprocess.run(command, check=True, input=asked, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()


@each("name", ["quickstart", "server"])
def test_the_servers_on_pages_answer_a_call(name: str) -> None:
    *logged, answered = map(json.loads, _output(name))
    assert answered["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    said = [message["params"]["data"] for message in logged]
    assert said == (["greeting a client that speaks 2026-07-28"] if name == "server" else [])


@each("name", ["first_decode", "handler"])
def test_the_examples_that_pages_quote_run(name: str) -> None:
    assert _output(name)


def test_the_example_over_http_serves_and_calls() -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "over_http.py")]
    environment = {**os.environ, "PORT": "0"}
    with subprocess.Popen([*command, "serve"], env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = (re.search(r"Uvicorn running on http://[\d.]+:(\d+)", line) for line in server.stderr)
            environment["PORT"] = next(port[1] for port in found if port)
            called = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=60)
            assert called.stdout.splitlines() == ["progress 1", "Hello!"]
        finally:
            server.terminate()


def test_the_client_on_the_page_about_handlers_prints_the_answers() -> None:
    tools, greeting, refusal = _output("client")
    assert tools == "['greet'] on 2026-07-28"
    assert greeting == "Hello, Ada!"
    assert "the client has not declared: elicitation; declare it with connect(…, elicit=…) (-32021)" in refusal
