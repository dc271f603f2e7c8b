"""Report what a person still has to write: words, facts, looks at errata, and vectors.

Usage: `python -m tools.unwritten [--fail]`. With `--fail`, the exit status is 1 if anything is missing for a revision
or an extension. The draft is unstable, so nothing has to be complete for it.
"""

from __future__ import annotations

import sys

from mcpspec_codegen.pipeline import Gap, find_gaps
from mcpspec_codegen.source import DRAFT
from tests.generated.vectors import REVISIONS, definitions_without_vectors
from tests.paths import SCHEMA

HEADING = "What a person still has to write (docs/bumping.md):"


def find_unwritten() -> list[Gap]:
    """List everything that is missing, by version."""
    vectors = [
        Gap(version, f"tests/vectors/{version}: no valid vector of {name}")
        for version in REVISIONS
        for name in definitions_without_vectors(version)
    ]
    return sorted([*find_gaps(SCHEMA), *vectors], key=lambda gap: gap.version)


def main(*, fail: bool) -> int:
    gaps = find_unwritten()
    if gaps:
        print("\n".join([HEADING, *(f"  {gap.version}: {gap.text}" for gap in gaps)]))
    return 1 if fail and any(gap.version != DRAFT for gap in gaps) else 0


if __name__ == "__main__":
    sys.exit(main(fail="--fail" in sys.argv[1:]))
