"""Unknown revisions and modules."""

from __future__ import annotations

import mcpspec
import mcpspec.v2026_07_28 as newest


def use(*values: object) -> None:
    """Accept any value, so that expressions are used."""
    assert values


def unknown_modules() -> None:
    use(mcpspec.v2023_01_01)  # E
    use(newest.sockets)  # E
    use(newest.structs.Tools)  # E


def a_version_that_is_no_text() -> None:
    mcpspec.revision(20241105)  # E
