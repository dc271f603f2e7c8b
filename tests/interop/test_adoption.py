"""Packages of others that use the official types work with `mcpspec.compat` after their imports are rewritten.

The rewriting is that of `mcpspec-codegen migrate`. `BY_HAND` has the other changes. The packages still use the
official SDK, which gets our types by `mcpspec.compat.sdk.install`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.examples.running import EXAMPLES
from tests.interop import install
from tests.interop.peers import printed
from tests.interop.servers.started import plain
from tests.listening import listening
from tests.pairs import FULL_PRODUCTS
from typedmcp import sync
from typedmcp.transports.process_parameters import StdioServerParameters

pytestmark = pytest.mark.long

JSON = dict[str, Any]

INSTALL = "from mcpspec.compat import sdk\n\nsdk.install()\n"

BY_HAND: dict[str, dict[str, list[tuple[str, str]]]] = {
    "adapters": {
        "langchain_mcp_adapters/__init__.py": [("", INSTALL)],
        "tests/__init__.py": [("", "import langchain_mcp_adapters\n")],
    },
    "proxy": {
        "src/mcp_proxy/__init__.py": [("", INSTALL)],
        "tests/conftest.py": [("", "import mcp_proxy\n")],
    },
    "pydantic-ai-1": {"pydantic_ai/__init__.py": [("", INSTALL)]},
    "pydantic-ai-2": {"pydantic_ai/__init__.py": [("", INSTALL)]},
}
"""The changes by package and file: a text, and its replacement. An empty text stands for the end of the docstring."""

SUITES = {"adapters": 98, "proxy": 102}
"""Numbers of tests that pass before, by package."""

HERE = Path(__file__).parent

PATIENCE = 300
"""Seconds for a run of tests: the longest takes forty."""

OFFICIAL_IMPORT = re.compile(r"^\s*(from|import) (mcp\.types|mcp_types)\b", re.MULTILINE)


def migrate(environment: str, folder: Path) -> None:
    """Rewrite the imports in a folder, and make the changes by hand."""
    command = [sys.executable, "-m", "mcpspec_codegen", "migrate", "--write", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr  # nothing is left to a person
    for name, changes in BY_HAND[environment].items():
        path = folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for old, new in changes:
            text = replaced(text, old, new)
        path.write_text(text, encoding="utf-8")


def replaced(text: str, old: str, new: str) -> str:
    if old:
        assert text.count(old) == 1, old
        return text.replace(old, new)
    docstring = re.match(r'(?s)""".*?"""\n', text)
    end = docstring.end() if docstring else 0
    return text[:end] + new + text[end:]


def require(environment: str) -> Path:
    """Return the interpreter of an environment, or skip the test if it is not installed."""
    interpreter = install.python(environment)
    if not (interpreter.parents[1] / ".installed").exists():
        pytest.skip("the packages that use the official types are not installed: run tests/interop/install.py")
    return interpreter


# Packages with tests of their own


def passed(environment: str, folder: Path) -> set[str]:
    """Run the tests of a package, and return the names of those that pass."""
    interpreter = require(environment)
    command = [str(interpreter), "-m", "pytest", "-rp", "-p", "no:cacheprovider"]
    path = f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}"  # the tests start servers with `python`
    env = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE)
    return set(re.findall(r"^PASSED (.+)$", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("environment", SUITES if FULL_PRODUCTS else ["proxy"])
def test_all_tests_of_a_package_that_pass_as_it_is_pass_after_its_imports_are_rewritten(
    environment: str, tmp_path: Path
) -> None:
    unchanged = passed(environment, install.source(environment))
    assert len(unchanged) == SUITES[environment]
    folder = shutil.copytree(install.source(environment), tmp_path / environment)
    migrate(environment, folder)
    assert imports_of_official_types(folder) == []
    assert unchanged - passed(environment, folder) == set()


def imports_of_official_types(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if OFFICIAL_IMPORT.search(path.read_text(encoding="utf-8"))
    ]


# The packages with servers: ours, and official ones


SCENARIOS = {
    "adapters": "langchain_client.py",
    "pydantic-ai-1": "pydantic_ai_client.py",
    "pydantic-ai-2": "pydantic_ai_client.py",
}
"""Scripts that print what a client sees, by package."""
DECORATED = str(HERE / "servers" / "decorated.py")
SERVERS = {
    "ours": [sys.executable, DECORATED, "ours"],
    "mcp 1.x": [str(install.python("py1")), DECORATED, "official"],
    "mcp 2.x": [str(install.python("py2")), DECORATED, "official"],
}
"""Commands that start the same tools, by the library that serves them."""
TARGETS = [("ours", "stdio"), ("ours", "http"), ("mcp 1.x", "stdio"), ("mcp 2.x", "http")]


@contextmanager
def target(server: str, transport: str) -> Generator[list[str]]:
    """Yield the command of a server, or the URL of a running one."""
    if transport == "stdio":
        yield SERVERS[server]
    else:
        with listening([*SERVERS[server], "http"]) as running:
            yield [running.address]


def run_script(environment: str, given: list[str], folder: Path | None = None) -> JSON:
    """Run the scenario of a package, and return its observations."""
    command = [str(install.python(environment)), str(HERE / SCENARIOS[environment]), *given]
    env = {**os.environ, "PYTHONPATH": str(folder or unchanged(environment))}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    seen: JSON = json.loads(done.stdout)
    return seen


def unchanged(environment: str) -> Path:
    """Return the folder that has the package as it is."""
    if environment in install.SOURCES:
        return install.source(environment)
    (package,) = require(environment).parents[1].glob("lib/python3*/site-packages/pydantic_ai")
    return package.parent


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that gives the folder with the rewritten package of an environment."""

    @cache
    def rewrite(environment: str) -> Path:
        folder = tmp_path_factory.mktemp(environment) / "package"
        if environment in install.SOURCES:
            shutil.copytree(unchanged(environment), folder)
        else:
            shutil.copytree(unchanged(environment) / "pydantic_ai", folder / "pydantic_ai")
        migrate(environment, folder)
        return folder

    return rewrite


SEEN = [(environment, server, transport) for environment in SCENARIOS for server, transport in TARGETS]
"""Before a release; each takes half a minute, and a change tries an older package and a newer one."""


@pytest.mark.parametrize(("environment", "server", "transport"), SEEN if FULL_PRODUCTS else (SEEN[0], SEEN[-1]))
def test_a_client_sees_the_same_with_our_types(
    rewritten: Callable[[str], Path], environment: str, server: str, transport: str
) -> None:
    require(environment)
    with target(server, transport) as given:
        before = run_script(environment, given)
        assert run_script(environment, given, rewritten(environment)) == before


@pytest.mark.parametrize("server", SERVERS)
def test_our_client_sees_the_same_through_the_proxy_with_our_types(
    rewritten: Callable[[str], Path], server: str
) -> None:
    interpreter = require("proxy")
    with target(server, "http") as (url,):
        through = [str(interpreter), "-m", "mcp_proxy", "--transport", "streamablehttp", url]
        before = observed(through, install.source("proxy") / "src")
        assert observed(through, rewritten("proxy") / "src") == before
        assert before["add"] == {"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}}


def observed(command: list[str], folder: Path) -> JSON:
    """Return what our client sees of a server, with a package in a folder."""
    parameters = StdioServerParameters(command[0], command[1:], env={"PYTHONPATH": str(folder)})
    with sync.connect(parameters) as client:
        return {
            "tools": [plain(tool) for tool in client.tools()],
            "add": plain(client.call_tool("add", {"a": 2, "b": 3})),
            "picture": plain(client.call_tool("picture")),
            "broken": plain(client.call_tool("broken")),
            "resources": [plain(resource) for resource in client.resources()],
            "templates": [plain(template) for template in client.resource_templates()],
            "item": plain(client.read_resource("test://item/7")),
            "prompts": [plain(prompt) for prompt in client.prompts()],
            "review": plain(client.get_prompt("review", {"topic": "naming"})),
        }


def test_the_example_has_langchain_s_adapter_on_our_types() -> None:
    server = [sys.executable, str(EXAMPLES / "one_file.py"), "serve"]
    command = [str(require("adapters")), str(EXAMPLES / "langchain_adapter.py"), *server]
    env = {**os.environ, "PYTHONPATH": str(install.source("adapters"))}
    assert printed(command, env).splitlines() == [
        "tool: add ['a', 'b']",
        "tool: divide ['a', 'b']",
        "add: 5",
        "divide: cannot divide by zero divide failed with {'a': 1, 'b': 0}.",
    ]
