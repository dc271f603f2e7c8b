"""The command `typedmcp`. It needs the extra `cli`, and nothing else of the package imports it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from typedmcp import __version__

__all__ = ["main"]


def main() -> None:
    """Do what the command line says, and end with its status. `typedmcp.cli.status` has the statuses."""
    if missing := [name for name in ("cyclopts", "rich") if find_spec(name) is None]:
        sys.exit(_without(missing[0]))
    if sys.argv[1:] == ["--version"]:  # which is asked for often, and needs none of what follows
        sys.stdout.write(f"typedmcp {__version__}\n")
        return
    from typedmcp.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _without(missing: str) -> int:
    sys.stderr.write(f"typedmcp: {missing} is missing: pip install 'typedmcp[cli]'\n")
    return 2
