"""Install this checkout into the environment of the Python that runs this, with the extras that are named.

    python tools/install.py http,cli,redis

pip must be told the folder of each distribution that is in no index. This finds those that the extras need, and calls
`pip install` once.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = ROOT / "runtime" / "typedmcp-schemas"


def main(extras: str = "") -> int:
    names = [name.strip() for name in extras.split(",") if name.strip()]
    known = read_project(ROOT)["optional-dependencies"]
    if unknown := [name for name in names if name not in known]:
        print(f"typedmcp has no extra {', '.join(unknown)}; it has {', '.join(known)}", file=sys.stderr)
        return 2
    core = f"{ROOT}[{','.join(names)}]" if names else str(ROOT)
    # A folder stands after those that it needs: pip 23 looks for them in the index otherwise.
    command = [*installer(), str(ROOT / "generated"), str(SCHEMAS), core, *satellites(names)]
    return subprocess.call(command)  # noqa: S603


def installer() -> list[str]:
    """Return the command that installs with pip, or with uv in an environment that uv has made, which has no pip."""
    if find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]


def satellites(extras: Iterable[str]) -> list[str]:
    """Return the folders of the satellites that extras of `typedmcp` need, directly or through each other."""
    found: dict[str, None] = {}
    optional = read_project(ROOT)["optional-dependencies"]
    pending = [requirement for extra in extras for requirement in optional[extra]]
    while pending:
        name = re.split(r"[^\w-]", pending.pop(), maxsplit=1)[0]
        folder = ROOT / "runtime" / name
        if name.startswith("typedmcp-") and folder != SCHEMAS and str(folder) not in found:
            found[str(folder)] = None
            pending += read_project(folder)["dependencies"]
    return [*found]


def read_project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
