"""The programs of the tutorial that need a second terminal: a server over HTTP and its client, tests, two workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.markdown import blocks
from tests.paths import ROOT

TUTORIAL = ROOT / "docs" / "tutorial"
_SERVED = re.compile(r"Uvicorn running on (http://[\d.]+:\d+)")


def write_files(page: str, folder: Path) -> None:
    """Write the files of a page, whose server takes any free port."""
    for block in blocks(TUTORIAL / page):
        if block.title:
            (folder / block.title).write_text(block.code.replace("port=8000", "port=0"), encoding="utf-8")


@contextmanager
def serving(folder: Path, *command: str, workers: int = 1) -> Generator[str]:
    """Run a server, and yield the URL that it prints, once all workers have started."""
    words = [sys.executable, *command]
    environment = {**os.environ, "SHELF_FILE": str(folder / "shelf.sqlite")}
    with subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            url, started = "", 0
            while not url or started < workers:
                line = server.stderr.readline()
                assert line, "the server has ended"
                started += "Application startup complete" in line
                url = found[1] if (found := _SERVED.search(line)) else url
            yield url
        finally:
            server.terminate()
            server.communicate(timeout=60)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_server_of_step_five_knows_its_readers(tmp_path: Path) -> None:
    write_files("5-http-with-a-token.md", tmp_path)
    with serving(tmp_path, "shelf.py") as url:
        client = tmp_path / "readers.py"
        client.write_text(client.read_text(encoding="utf-8").replace("http://127.0.0.1:8000", url), encoding="utf-8")
        first, second, refused = run(tmp_path, "readers.py").splitlines()
    assert (first, second) == ("Emma is lent to ada", "Emma is lent to somebody else")
    assert "token" in refused


def test_the_tests_of_step_six_pass(tmp_path: Path) -> None:
    write_files("6-tests-and-two-workers.md", tmp_path)
    assert "2 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shelf.py")


CALL = """
import typedmcp, sys
for title in ("Emma", "Dracula", "Emma"):
    with typedmcp.sync.connect(sys.argv[1] + "/mcp", auth="the-token-of-ada") as client:
        print(typedmcp.text_of(client.call_tool("lend", {"title": title})))
"""


def test_the_two_workers_of_step_six_share_their_loans(tmp_path: Path) -> None:
    write_files("6-tests-and-two-workers.md", tmp_path)
    command = ["-m", "uvicorn", "shelf:app", "--workers", "2", "--http", "typedmcp_http:HttpProtocol", "--port", "0"]
    with serving(tmp_path, *command, workers=2) as url:
        answers = run(tmp_path, "-c", CALL, url).splitlines()
    assert answers == ["Emma is lent to ada", "Dracula is lent to ada", "Emma is lent to ada"]
