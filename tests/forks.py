"""Programs in forks of one process that has imported what they need, so that imports are paid for once.

A fork has its own arguments, folder, environment, files and, if they are a terminal, session. Tests about how a program
is started or imported, or about what it inherits, start Python itself.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests.paths import ROOT

__all__ = ["run_forked", "start_forked"]

_DEADLINE = 60
"""Seconds until a program that goes on gets a signal that ends it."""
_PRELOADED = (
    "typedmcp.sync", "typedmcp_cli.command_line", "typedmcp_cli.serve", "rich.table",
    "fastapi", "pydantic", "starlette.applications", "uvicorn", "tests.docs.markdown", "mcpspec_codegen.bump",
)  # fmt: skip


def run_forked(
    arguments: Sequence[object], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS…` in a fork, with warnings as errors, and return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("in", "out", "err")]
        files[0].write_bytes(stdin)
        status = start_forked(arguments, files, cwd=cwd, env=env)()
        out, err = (file.read_bytes().decode() for file in files[1:])
    return subprocess.CompletedProcess([*map(str, arguments)], status, out, err)


def start_forked(
    arguments: Sequence[object], files: Sequence[object], *, cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Callable[[], int]:  # fmt: skip
    """Start `python ARGUMENTS…` in a fork with files as its streams, and return a function that waits for its status.

    One program runs at a time.
    """
    parent = _parent()
    assert parent.stdin is not None
    request = {
        "arguments": [*map(str, arguments)], "files": [*map(str, files)], "cwd": str(cwd or Path.cwd()),
        "env": {**(os.environ if env is None else env)},
    }  # fmt: skip
    parent.stdin.write(json.dumps(request) + "\n")
    parent.stdin.flush()
    return lambda: int(parent.stdout.readline())  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]


@functools.cache
def _parent() -> subprocess.Popen[str]:
    """Start the process that forks."""
    command = [sys.executable, "-W", "error", "-m", "tests.forks"]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(parent.communicate)
    return parent


def _preload() -> None:
    for name in _PRELOADED:
        with contextlib.suppress(ModuleNotFoundError):  # an environment may have only what the runtime needs
            importlib.import_module(name)
    import typedmcp
    import typedmcp_cli.commands as commands
    from mcpspec import VERSIONS

    for name in typedmcp.__all__:
        getattr(typedmcp, name)
    for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(module.name)
    for version in VERSIONS:
        importlib.import_module(f"mcpspec.v{version.replace('-', '_')}.structs")


def _serve() -> None:
    """Run a program for each line of standard input, and print its exit status."""
    _preload()
    gc.freeze()  # so that collections in forks do not copy what was imported
    with os.fdopen(os.dup(0)) as requests, os.fdopen(os.dup(1), "w", buffering=1) as statuses:
        for line in requests:
            if not (pid := os.fork()):
                _become(**json.loads(line))
            statuses.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")


def _become(arguments: list[str], files: list[str], cwd: str, env: dict[str, str]) -> NoReturn:
    """Run a program in this process, and end with its status."""
    signal.alarm(_DEADLINE)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    _open_streams(files)
    status: Any = 1
    try:
        status = _run_program(arguments)
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


def _run_program(arguments: list[str]) -> Any:
    is_module = arguments[0] == "-m"
    sys.argv = arguments[is_module:]
    folder = os.getcwd() if is_module else os.path.dirname(arguments[0])
    sys.path[:1] = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    try:
        if is_module:
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code or 0
    return 0


def _open_streams(files: list[str]) -> None:
    """Make files the standard streams; a terminal becomes the controlling one, for Ctrl-C."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), number)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115


if __name__ == "__main__":
    _serve()
