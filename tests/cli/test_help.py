"""What can be learned from the command itself, and what it costs to ask."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys

import pytest

import typedmcp as package
from tests.cli.command import ENVIRONMENT, Inside, in_words, typedmcp
from tests.paths import ROOT
from typedmcp.cli.app import COMMANDS, app
from typedmcp.cli.placing import placed

OF_SERVERS = ("list", "inspect", "call", "read", "prompt")
CONNECTION = ("--json", "--config", "--command", "--timeout", "--header", "--revision", "--log-level")


def test_help_names_every_command_and_says_what_the_statuses_mean() -> None:
    done = typedmcp("--help")
    assert done.status == 0
    listed = re.findall(r"^│ ([a-z]+) ", done.out, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert "Examples:" in done.out
    assert "Exit status: 0 all is well" in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_its_arguments_options_and_examples(name: str, inside: Inside) -> None:
    done = inside(name, "--help")
    assert done.status == 0
    assert done.out.startswith(f"Usage: typedmcp {name} ")
    assert f"  typedmcp {name} " in done.out.partition("Examples:")[2] or f"| typedmcp {name} " in done.out
    assert "\x1b" not in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    options = set(re.findall(r"--[a-z-]+", done.out))
    if name in OF_SERVERS:
        assert set(CONNECTION) <= options


def test_every_example_of_the_help_can_be_parsed() -> None:
    found = [
        re.findall(r"^  (?:.* \| )?typedmcp (.*?)(?: > .*)?$", told.examples, re.MULTILINE)
        for told in COMMANDS.values()
    ]
    assert all(found)
    for example in itertools.chain(*found):
        app().parse_args(placed(shlex.split(example)), exit_on_error=False, print_error=False)


def test_without_arguments_there_is_help_and_a_status() -> None:
    done = typedmcp()
    assert done.out.startswith("Usage: typedmcp COMMAND")
    assert done.status == 2


def test_the_version_is_that_of_the_package() -> None:
    assert typedmcp("--version") == (0, f"typedmcp {package.__version__}\n", "")


def _modules(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom typedmcp.cli import main\n"
        f"sys.argv = ['typedmcp', *{list(arguments)!r}]\n"
        "try: main()\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return set(done.stderr.split())


def test_the_version_costs_no_more_than_the_package() -> None:
    assert not {"cyclopts", "rich", "msgspec", "asyncio", "mcpspec"} & _modules("--version")


def test_what_a_command_does_not_use_it_does_not_load() -> None:
    loaded = _modules("validate", "nowhere.jsonl", "--version", "2025-11-25")
    assert "cyclopts" in loaded
    assert not {"asyncio", "typedmcp.client", "typedmcp.server"} & loaded
    assert not any(name.startswith("rich.") for name in loaded)


def test_serving_a_file_for_a_client_needs_no_command_line() -> None:
    code = "import typedmcp.cli.serving, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"cyclopts", "rich", "typedmcp.client.client", "typedmcp.http.asgi"} & set(done.stdout.split())


def test_nothing_else_imports_the_command() -> None:
    for path in (ROOT / "runtime" / "typedmcp").rglob("*.py"):
        if "cli" not in path.parts and path.name != "__main__.py":
            assert not re.search(r"typedmcp\.cli\b", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_one_line_says_how_to_install_it(missing: str) -> None:
    code = (
        "import sys, importlib.util as util\nfound = util.find_spec\n"
        f"util.find_spec = lambda name, *rest: None if name == {missing!r} else found(name, *rest)\n"
        "from typedmcp.cli import main\nsys.argv = ['typedmcp', '--help']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = f"typedmcp: {missing} is missing: pip install 'typedmcp[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["lst"], 'Unknown command "lst". Did you mean "list"?'),
        (["list", "server.py", "--jsn"], "Unknown option: --jsn. Did you mean --json?"),
        (["list"], 'Command "list" parameter TARGET requires an argument.'),
        (["call", "server.py"], 'Command "call" parameter TOOL requires an argument.'),
        (
            ["list", "server.py", "--timeout", "soon"],
            'Invalid value for --timeout: unable to convert "soon" into float.',
        ),
        (
            ["list", "server.py", "--timeout", "0"],
            'Invalid value "0.0" for --timeout. It has to be more than 0.',
        ),
        (["list", "server.py", "--timeout", "nan"], 'Invalid value "nan" for --timeout.'),
        (["run", "server.py", "--transport", "http", "--port", "65536"], 'Invalid value "65536" for --port.'),
        (["run", "server.py", "--transport", "http", "--port", "-1"], 'Invalid value "-1" for --port.'),
        (["run", "server.py", "--transport", "http", "--path", "mcp"], "--path 'mcp' is no path: /mcp"),
        (["list", "server.py", "--log-level", "loud"], 'Invalid value "loud" for --log-level.'),
        (["list", "server.py", "tool"], 'Invalid value "tool" for KIND.'),
        (
            ["read", "server.py", "a:b", "--json", "-o", "x"],
            "--output saves contents, and --json prints them: one of the two",
        ),
    ],
    ids=in_words,
)
def test_a_command_line_that_makes_no_sense_is_told_so_in_one_line(
    arguments: list[str], told: str, inside: Inside
) -> None:
    done = inside(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {told}")
    assert len(done.err.splitlines()) <= 2
