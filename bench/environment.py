"""What machine this is, and what runs on it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.report.figures import slug
from bench.results import Environment
from tests.interop import install

__all__ = ["environment"]

PACKAGES = ("msgspec", "pydantic", "mcp", "mcp-types", "fastmcp", "orjson", "uvicorn", "uvloop", "httptools")
ROOT = Path(__file__).resolve().parents[1]


def environment(machine: str | None = None) -> Environment:
    """What can be known. `machine` is a name for it; without one, it is made of the processor and the system."""
    processor = _processor()
    cores = os.cpu_count() or 1
    named = machine or f"{processor} {cores} {platform.system()}"
    return Environment(
        machine=slug(named.lower()),
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
    with suppress(OSError, subprocess.CalledProcessError):  # on macOS
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The commit, with `+` where files differ from it."""
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
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
            if number := re.search(r"\d[\d.]+", said):
                found[program] = number[0]
    if "Node.js" in found:
        for package in install.NODE_PACKAGES["node"]:
            name, _, pinned = package.rpartition("@")
            if name.removeprefix("@modelcontextprotocol/") in ("client", "server", "node"):
                found[name] = pinned
    return found
