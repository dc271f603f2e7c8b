"""Builds the distribution, and checks that the wheel works in an empty environment.

Usage: `python tools/dist_check.py UV`. It checks that wheel and sdist have all package files, that the wheel imports
and decodes messages without Pydantic and with it, that the command names its missing extra and works with it, and that
`pyright --verifytypes` is at 100 % for both packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"mcpspec": ROOT / "generated", "typedmcp": ROOT}
"""The distributions that are tried, and the folder of each."""

WITHOUT_PYDANTIC = """
import importlib.util, sys
import mcpspec, typedmcp
assert importlib.util.find_spec("pydantic") is None
raw = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
for version in mcpspec.VERSIONS:
    structs = mcpspec.revision(version).structs
    mcpspec.revision(version).handlers, mcpspec.revision(version).methods
    message = structs.decode(raw, structs.JSONRPCMessage)
    assert type(message).__name__ == "JSONRPCRequest", message
    assert structs.encode(message) == b'{"id":1,"jsonrpc":"2.0","method":"ping"}', structs.encode(message)
try:
    mcpspec.revision(mcpspec.LATEST).models
except ModuleNotFoundError as error:
    assert "pydantic" in str(error), error
print("structs work without Pydantic, on", sys.version.split()[0])
"""

WITH_PYDANTIC = """
import mcpspec
for version in mcpspec.VERSIONS:
    models = mcpspec.revision(version).models
    models.decode(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', models.JSONRPCMessage)
print("models work with Pydantic")
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command and return its output. Exit with the output if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_files(package: Path, wheel: Path, sdist: Path) -> None:
    """Check that both archives have every file of the package, including the typing marker."""
    expected = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert f"{package.name}/py.typed" in expected
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info" not in name}
    assert in_wheel == expected, in_wheel ^ expected
    with tarfile.open(sdist) as archive:
        in_sdist = set(archive.getnames())
    missing = {name for name in expected if not any(path.endswith(f"/{name}") for path in in_sdist)}
    assert not missing, missing


def check_missing_extra(command: Path) -> None:
    """Check that the command without its extra says how to install it."""
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "pip install 'typedmcp[cli]'" in done.stderr, done.stderr


def verify_types(python: Path, package: str) -> None:
    """Check that every public name of an installed package has a known type."""
    command = [sys.executable, "-m", "pyright", "--ignoreexternal", "--outputjson", "--verifytypes", package]
    # For this check, pyright searches only the active environment.
    active = {**os.environ, "VIRTUAL_ENV": str(python.parent.parent), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=active, cwd=python.parent)  # noqa: S603
    report = json.loads(done.stdout)["typeCompleteness"]
    public = [symbol for symbol in report["symbols"] if symbol["isExported"]]
    unknown = [symbol["name"] for symbol in public if not symbol["isTypeKnown"]]
    print(f"{package}: {len(public) - len(unknown)} of {len(public)} public names have known types")
    if unknown or report["exportedSymbolCounts"]["withAmbiguousType"]:
        sys.exit("\n".join(unknown[:20]))


def main(uv: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        dist = folder / "dist"
        for name, project in PACKAGES.items():
            run(uv, "build", "--quiet", "--out-dir", dist, project)
            (wheel,) = dist.glob(f"{name}-*.whl")
            (sdist,) = dist.glob(f"{name}-*.tar.gz")
            check_files(ROOT / ("generated" if name == "mcpspec" else "runtime") / name, wheel, sdist)
            print(f"built {wheel.name} ({wheel.stat().st_size >> 10} KiB) and {sdist.name}")
        python = folder / "venv" / "bin" / "python"
        run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
        run(uv, "pip", "install", "--quiet", "--python", python, "--find-links", dist, wheel)
        print(run(python, "-W", "error", "-c", WITHOUT_PYDANTIC, cwd=folder), end="")
        check_missing_extra(python.with_name("typedmcp"))
        run(uv, "pip", "install", "--quiet", "--python", python, "--find-links", dist, f"{wheel}[pydantic]")
        print(run(python, "-W", "error", "-c", WITH_PYDANTIC, cwd=folder), end="")
        run(uv, "pip", "install", "--quiet", "--python", python, "--find-links", dist, f"{wheel}[cli]")
        run(python.with_name("typedmcp"), "diff", "2025-06-18", "2025-11-25")
        print(run(python.with_name("typedmcp"), "--version").strip(), "works as a command")
        run(
            uv, "pip", "install", "--quiet", "--python", python, "--find-links", dist, f"{wheel}[http]"
        )  # a class derives from uvicorn's
        for package in PACKAGES:
            verify_types(python, package)


if __name__ == "__main__":
    main(sys.argv[1])
