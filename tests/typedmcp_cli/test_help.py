"""Help and version of the command, what it imports, and errors about the command line."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys

import typedmcp as package
from tests.cases import each
from tests.typedmcp_cli.command import ENVIRONMENT, InProcess, case_id, typedmcp
from typedmcp_cli.command_line import COMMANDS, make_app
from typedmcp_cli.references import place_command

SERVER_COMMANDS = ("list", "inspect", "call", "read", "prompt")
CONNECTION_OPTIONS = (
    "--json",
    "--config",
    "--command",
    "--timeout",
    "--header",
    "--oauth",
    "--revision",
    "--log-level",
)


def test_help_has_every_command_and_the_exit_statuses() -> None:
    done = typedmcp("--help")
    assert done.status == 0
    listed = re.findall(r"^│ ([a-z]+) ", done.out, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert "Examples:" in done.out
    assert "Exit status: 0 success" in done.out


@each("name", COMMANDS)
def test_help_of_a_command_has_its_arguments_options_and_examples(name: str, in_process: InProcess) -> None:
    done = in_process(name, "--help")
    assert done.status == 0
    assert done.out.startswith(f"Usage: typedmcp {name} ")
    assert f"  typedmcp {name} " in done.out.partition("Examples:")[2] or f"| typedmcp {name} " in done.out
    assert "\x1b" not in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    options = set(re.findall(r"--[a-z-]+", done.out))
    if name in SERVER_COMMANDS:
        assert set(CONNECTION_OPTIONS) <= options


def test_every_example_of_the_help_can_be_parsed() -> None:
    found = [
        re.findall(r"^  (?:.* \| )?typedmcp (.*?)(?: > .*)?$", text.epilogue, re.MULTILINE)
        for text in COMMANDS.values()
    ]
    assert all(found)
    for example in itertools.chain(*found):
        make_app().parse_args(place_command(shlex.split(example)), exit_on_error=False, print_error=False)


def test_without_arguments_the_command_shows_three_things_to_try_and_fails() -> None:
    done = typedmcp()
    assert done.status == 2
    examples = re.findall(r"^  typedmcp (.*?)  ", done.out, re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
        make_app().parse_args(shlex.split(example), exit_on_error=False, print_error=False)
    assert "typedmcp --help" in done.out


def test_the_version_is_the_package_version() -> None:
    assert typedmcp("--version") == (0, f"typedmcp {package.__version__}\n", "")


def _modules(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom typedmcp_cli.start import main\n"
        f"sys.argv = ['typedmcp', *{list(arguments)!r}]\n"
        "try: main()\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return set(done.stderr.split())


def test_the_version_loads_no_other_package() -> None:
    assert not {"cyclopts", "rich", "msgspec", "asyncio", "mcpspec"} & _modules("--version")


def test_a_command_loads_only_what_it_uses() -> None:
    loaded = _modules("validate", "nowhere.jsonl", "--version", "2025-11-25")
    assert "cyclopts" in loaded
    assert not {"asyncio", "typedmcp.client", "typedmcp.app"} & loaded
    assert not any(name.startswith("rich.") for name in loaded)


def test_serving_a_file_does_not_load_the_command_line() -> None:
    code = "import typedmcp_cli.serve, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"cyclopts", "rich", "typedmcp.client.client", "typedmcp.server.http.asgi"} & set(done.stdout.split())


def test_without_the_distribution_the_module_says_how_to_install_it() -> None:
    code = (
        "import runpy, importlib.metadata as metadata\nmetadata.entry_points = lambda **_: ()\n"
        "runpy.run_module('typedmcp', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'typedmcp[cli]'" in done.stderr


@each(
    "arguments, expected",
    [
        (["lst"], 'Unknown command "lst". Did you mean "list"?'),
        (["list", "server.py", "--jsn"], "Unknown option: --jsn. Did you mean --json?"),
        (["list"], "typedmcp list: TARGET is missing"),
        (["call", "server.py"], "typedmcp call: TOOL is missing"),
        (["list", "server.py", "--timeout"], "typedmcp list: --timeout has no value"),
        (["install", "server.py"], "typedmcp install: --host is missing: claude-desktop, claude-code, "),
        (["install", "server.py", "--host"], "typedmcp install: --host has no value: claude-desktop, claude-code, "),
        (
            ["list", "server.py", "--timeout", "soon"],
            'Invalid value for --timeout: unable to convert "soon" into float.',
        ),
        (
            ["list", "server.py", "--timeout", "0"],
            'Invalid value "0.0" for --timeout. It must be greater than 0.',
        ),
        (["list", "server.py", "--timeout", "nan"], 'Invalid value "nan" for --timeout.'),
        (["run", "server.py", "--transport", "http", "--port", "65536"], 'Invalid value "65536" for --port.'),
        (["run", "server.py", "--transport", "http", "--port", "-1"], 'Invalid value "-1" for --port.'),
        (["run", "server.py", "--transport", "http", "--path", "mcp"], "--path 'mcp' must start with /"),
        (["list", "server.py", "--log-level", "loud"], 'Invalid value "loud" for --log-level.'),
        (["list", "server.py", "tool"], 'Invalid value "tool" for KIND.'),
        (
            ["read", "server.py", "a:b", "--json", "-o", "x"],
            "--output and --json cannot be used together",
        ),
    ],
    ids=case_id,
)
def test_a_wrong_command_line_is_rejected_in_one_line(
    arguments: list[str], expected: str, in_process: InProcess
) -> None:
    done = in_process(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {expected}")
    assert len(done.err.splitlines()) <= 2
