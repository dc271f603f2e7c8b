"""The extension on the page "Extensions", with its compiled package, passes both type checkers in strict mode."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import blocks
from tests.paths import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the modules of the page into a folder, and compile the schema of its first block."""
    folder = tmp_path_factory.mktemp("acme").resolve()
    first, *others = blocks(ROOT / "docs" / "extensions.md")
    (folder / "compile.py").write_text(first.code, encoding="utf-8")
    subprocess.run([sys.executable, "compile.py"], cwd=folder, check=True, timeout=300)
    (folder / "compile.py").unlink()
    titled = [block for block in others if block.title]
    assert [block.title for block in titled] == ["acme_extension.py", "acme_server.py", "acme_client.py"]
    for block in titled:
        (folder / str(block.title)).write_text(block.code, encoding="utf-8")
    return folder


def check(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=300)


def modules(project: Path) -> list[str]:
    return sorted(path.name for path in project.glob("acme_*.py"))


WRONG = """
from acme_extension import SEARCH
from acme_search import methods, structs as s
import typedmcp
from typedmcp import Context

extension = typedmcp.ServerExtension(SEARCH)

@extension.handler(methods.ACME_SEARCH)
async def find(params: s.SeenNotificationParams, ctx: Context) -> s.SearchResult: ...

@extension.handler(methods.ACME_SEARCH)
async def find_again(params: s.SearchParams, ctx: Context) -> s.Hit: ...

listening = typedmcp.ClientExtension(SEARCH)

@listening.on(methods.NOTIFICATIONS_ACME_INDEXED)
def show(params: s.SearchParams) -> None: ...
"""
"""Each of these functions has a type that does not fit its record."""


def test_mypy_accepts_the_extension_and_rejects_functions_that_do_not_fit(project: Path) -> None:
    strict = ["mypy", "--strict", "--no-error-summary", f"--cache-dir={project / '.mypy'}"]
    done = check(project, *strict, *modules(project))
    assert (done.returncode, done.stdout) == (0, "")
    (project / "wrong.py").write_text(WRONG, encoding="utf-8")
    done = check(project, *strict, "wrong.py")
    found = [line for line in done.stdout.splitlines() if "[arg-type]" in line]
    assert len(found) == 3, done.stdout


def test_pyright_accepts_the_extension_and_rejects_functions_that_do_not_fit(project: Path) -> None:
    (project / "wrong.py").write_text(WRONG, encoding="utf-8")
    config = {"typeCheckingMode": "strict", "include": [*modules(project), "wrong.py"], "pythonVersion": "3.11"}
    (project / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    done = check(project, "pyright", "--outputjson", "--pythonpath", sys.executable)
    report = json.loads(done.stdout)
    errors = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    assert {Path(each["file"]).name for each in errors} == {"wrong.py"}, errors
    lines = {each["range"]["start"]["line"] for each in errors if each["rule"] == "reportArgumentType"}
    assert len(lines) == 3, errors
