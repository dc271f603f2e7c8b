"""Describes the machine and the installed versions."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.figures import slugify
from bench.results import Environment
from tests.interop import install

__all__ = ["SDKS", "read_environment"]

PACKAGES = ("msgspec", "pydantic", "mcp", "mcp-types", "fastmcp", "orjson", "uvicorn", "uvloop", "httptools")
SDKS = {
    "go": ("go-sdk", "go.mod", r"/go-sdk v(\S+)"),
    "java": ("java-sdk", "pom.xml", r"<artifactId>mcp</artifactId>\s*<version>(.+?)</version>"),
    "rust": ("rmcp", "Cargo.toml", r'\.rmcp\]\nversion = "=(.+?)"'),
}
"""The SDKs of the programs that `tests.interop.install` builds: name, file with the version, and where it is in it."""
ROOT = Path(__file__).resolve().parents[1]


def read_environment(machine: str | None = None) -> Environment:
    """Describe this machine. The default name is made of the processor and the system."""
    processor = _processor()
    cores = os.cpu_count() or 1
    name = machine or f"{processor} {cores} {platform.system()}"
    return Environment(
        machine=slugify(name.lower()),
        processor=processor,
        cores=cores,
        memory_gb=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        commit=_commit(),
        load=round(os.getloadavg()[0], 2),
        began=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        versions=_versions(),
    )


def _processor() -> str:
    with suppress(OSError):
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        if found is not None:
            return re.sub(r"\((R|TM)\)", "", found[1], flags=re.IGNORECASE).strip()
    with suppress(OSError, subprocess.CalledProcessError):  # macOS
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
    return platform.processor() or platform.machine()


def _commit() -> str:
    """Return the commit, with `+` if files differ from it."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    node = install.node() / "bin" / "node"
    for program, command in {"Node.js": [str(node), "--version"], "wrk": ["wrk", "--version"]}.items():
        with suppress(OSError):
            output = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
            if number := re.search(r"\d[\d.]+", output):
                found[program] = number[0]
    for language, (name, file, pattern) in SDKS.items():
        if install.optimized(language).exists():
            pinned_sdk = re.search(pattern, (install.program_folder(language) / file).read_text(encoding="utf-8"))
            assert pinned_sdk is not None
            found[name] = pinned_sdk[1]
    if "Node.js" in found:
        for package in install.NODE_PACKAGES["node"]:
            name, _, pinned = package.rpartition("@")
            if name.removeprefix("@modelcontextprotocol/") in ("client", "server", "node"):
                found[name] = pinned
    return found
