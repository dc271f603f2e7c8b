"""A checkout in which faults are seeded: it applies one, runs tests, and restores the code."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutants.faults import CODEGEN, ROOT, Fault

_PYTHON: Final = ".venv/bin/python"
_ALL_OF_PYTEST: Final = (_PYTHON, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider")
_PYTEST: Final = (_PYTHON, "-m", "pytest", "-x", "-q", "-m", "not long", "-p", "no:cacheprovider")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/[^\s\[]+)", re.MULTILINE)
_FAILED_FRAME: Final = re.compile(r"^SUBFAILED\[(.+?)\] tests/server/test_frames\.py::", re.MULTILINE)
_NO_TESTS: Final = 5
"""The status of pytest if it has collected nothing."""
_ENDED_FROM_OUTSIDE: Final = (2, -signal.SIGINT, -signal.SIGTERM)
_CODE: Final = (CODEGEN, "generated", "runtime")
_OF_MAKE: Final = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "VIRTUAL_ENV")
"""Variables that would lead the programs of a clone back to this checkout."""


class CheckoutError(Exception):
    """A checkout in which no fault can be seeded, or whose code cannot be generated or imported."""


class StoppedError(Exception):
    """The program in a checkout was ended from outside, as by Ctrl-C."""


class Run(NamedTuple):
    """The end of a run of tests."""

    is_passed: bool
    failed: str = ""
    """The test that failed, or the reason why there is none."""


class Checkout:
    """A checkout of the project with a ready `.venv`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    @classmethod
    def clone(cls, folder: Path) -> Checkout:
        """Return a clone of HEAD in a folder, which may have an older one."""
        if folder.is_dir():
            _git(folder, "fetch", "--quiet", str(ROOT), "HEAD")
            _git(folder, "reset", "--quiet", "--hard", "FETCH_HEAD")
            _git(folder, "clean", "--quiet", "--force", "-d")
        else:
            folder.parent.mkdir(exist_ok=True)
            _git(ROOT, "clone", "--quiet", str(ROOT), str(folder))
        made = cls(folder)
        made._run("make", "--silent", "generate")
        return made

    @classmethod
    def existing(cls, root: Path) -> Checkout:
        """Return an existing checkout. Raises `CheckoutError` if it is not ready, or its code has changes."""
        if not (root / _PYTHON).exists():
            raise CheckoutError(f"{root} has no .venv; run `make generate` there")
        if changes := _git(root, "status", "--porcelain", "--", *_CODE):
            raise CheckoutError(
                f"{root} has changes, as an interrupted run leaves them; commit or undo them:\n{changes}"
            )
        return cls(root)

    def use_interop(self) -> None:
        """Use the clients and servers of others that this checkout has installed, if there are any."""
        link, installed = self.root / ".interop", ROOT / ".interop"
        if installed.exists() and not link.exists():
            link.symlink_to(installed.resolve())

    def check_tests(self) -> None:
        """Collect all tests, which leaves compiled modules for later runs. Raises `CheckoutError` if that fails."""
        self._run(*_PYTEST, "--collect-only", "tests", compiles=True)

    @contextmanager
    def seeded(self, fault: Fault) -> Generator[None]:
        """Apply a fault in a block, and generate the types with it. Raises `CheckoutError` if that fails."""
        with ExitStack() as stack:
            if fault.needs_compiler:
                stack.enter_context(_kept_folder(self.root / "generated"))
            for path in (self.root / file for file in fault.files):
                stack.enter_context(_kept_file(path))
                path.write_text(fault.change(path.read_text(encoding="utf-8")), encoding="utf-8")
            if fault.needs_compiler:
                self._run(_PYTHON, "-m", "mcpspec_codegen", "generate")
            yield

    def check_import(self, fault: Fault) -> None:
        """Raise `CheckoutError` if the code with a fault cannot be imported, or generated."""
        if not fault.file.endswith(".py"):
            return
        with self.seeded(fault):
            modules = "typedmcp.app.server, typedmcp.client.client" if fault.needs_compiler else fault.module
            self._run(_PYTHON, "-c", f"import {modules}")

    def run_tests(self, tests: Sequence[str], timeout: float, left_out: Sequence[str] = ()) -> Run:
        """Run tests, given as arguments of pytest, up to the first that fails."""
        command = [*_PYTEST, *(f"--deselect={test}" for test in left_out), *tests]
        try:
            status, output = self._execute(command, timeout)
        except subprocess.TimeoutExpired:
            return Run(False, "timeout")
        if status in (0, _NO_TESTS):
            return Run(True)
        found = _FAILED.search(output)
        if found is None and status in _ENDED_FROM_OUTSIDE:
            raise StoppedError(f"pytest ended with status {status}: somebody has ended it")
        return Run(False, found[1] if found else f"pytest ended with status {status}")

    def run_all(self, tests: Sequence[str], timeout: float) -> set[str]:
        """Run tests to the end, also long ones. Return those that failed, or did not end in time.

        Cases of frames are `tests/vectors/frames.toml::case`. Raises `CheckoutError` if pytest cannot run the tests.
        """
        try:
            status, output = self._execute([*_ALL_OF_PYTEST, *tests], timeout)
        except subprocess.TimeoutExpired:
            if len(tests) == 1:
                return {*tests}
            return {failed for test in tests for failed in self.run_all([test], timeout)}
        if status not in (0, 1):
            raise CheckoutError(f"pytest ended with status {status}: {output.strip()[-300:]}")
        frames = {f"tests/vectors/frames.toml::{case}" for case in _FAILED_FRAME.findall(output)}
        return {*_FAILED.findall(output), *frames}

    def stop(self) -> None:
        """End the program that runs, and start no other."""
        self._is_stopped = True
        if (process := self._process) is not None:
            _kill(process)

    def _run(self, *command: str, compiles: bool = False) -> None:
        """Run a program. Raises `CheckoutError` with the end of its output if it fails."""
        status, output = self._execute(command, None, compiles=compiles)
        if status:
            lines = output.strip().splitlines()[-3:]
            raise CheckoutError("\n".join([f"{' '.join(command)} ended with status {status}", *lines]))

    def _execute(self, command: Sequence[str], timeout: float | None, *, compiles: bool = False) -> tuple[int, str]:
        """Run a program in a session of its own, which ends with it. Return its status and its output."""
        with tempfile.TemporaryFile() as output:
            process = self._process = subprocess.Popen(
                command, cwd=self.root, env=_environment(compiles=compiles), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                if not self._is_stopped:
                    process.wait(timeout)
            finally:
                _kill(process)
                self._process = None
            if self._is_stopped:
                raise StoppedError
            output.seek(0)
            return process.returncode, output.read().decode(errors="replace")


# What is restored has the times that it had before, so that its compiled modules stay valid.


@contextmanager
def _kept_file(path: Path) -> Generator[None]:
    """Restore a file after a block."""
    before, status = path.read_bytes(), path.stat()
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextmanager
def _kept_folder(folder: Path) -> Generator[None]:
    """Restore a folder after a block."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(folder, Path(scratch) / folder.name, symlinks=True)
        try:
            yield
        finally:
            shutil.rmtree(folder)
            shutil.copytree(copy, folder, symlinks=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and what is left of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(*, compiles: bool) -> dict[str, str]:
    """Return the variables of a program. A compiled module of a fault must not outlive it."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    if schema := kept.get("MCP_OFFICIAL_SCHEMA"):
        kept["MCP_OFFICIAL_SCHEMA"] = str(Path(schema).resolve())
    return kept if compiles else {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        raise CheckoutError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
