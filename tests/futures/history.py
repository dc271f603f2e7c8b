"""Compile the drafts that upstream has had, as if each were the next revision.

Usage: `python -m tests.futures.history GIT_DIRECTORY [--jobs 2]`, with the git directory of a clone of
`modelcontextprotocol/modelcontextprotocol`. Nothing of it is written anywhere but to temporary folders.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from tests.futures.future import Future
from tests.futures.report import report

_PATH = "schema/draft/schema.json"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.futures.history", description=__doc__)
    parser.add_argument("repository", help="the git directory")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="compile every N-th draft only")
    options = parser.parse_args(arguments)
    return report([*_drafts(options.repository)][:: options.every], jobs=options.jobs)


def _drafts(repository: str) -> list[Future]:
    """List the different drafts, oldest first."""
    log = _git(
        repository, "log", "--all", "--reverse", "--raw", "--no-renames", "--no-abbrev", "--format=", "--", _PATH
    )
    blobs = dict.fromkeys(line.split()[3] for line in log.decode().splitlines() if line)
    drafts: list[Future] = []
    for number, blob in enumerate(blob for blob in blobs if blob.strip("0")):
        try:
            schema = json.loads(_git(repository, "cat-file", "blob", blob))
        except ValueError:  # a merge that went wrong
            continue
        drafts.append(Future(0, number, "2025-11-25", [f"the draft {blob[:12]}"], schema))
    return drafts


def _git(repository: str, *arguments: str) -> bytes:
    command = ["git", "--git-dir", repository, *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
