"""`typedmcp diff`: show what changed between two revisions of the protocol, and whom it breaks."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from mcpspec import VERSIONS
from typedmcp_cli.comparison.changes import find_changes
from typedmcp_cli.comparison.reports import changes_to_json, is_failure, write_changes, write_markdown
from typedmcp_cli.output import print_json, print_text
from typedmcp_cli.revision_interface import read_revision
from typedmcp_cli.status import FAILED, OK

__all__ = ["diff"]

Version: TypeAlias = Annotated[str, Parameter(choices=VERSIONS)]


def diff(
    old: Annotated[Version, Parameter(name="OLD", help="A revision.")],
    new: Annotated[Version, Parameter(name="NEW", help="Another revision.")],
    /,
    *,
    format: Annotated[Literal["text", "markdown", "json"], Parameter(help="The format of the output.")] = "text",
    fail_on: Annotated[
        Literal["breaking", "compatible", "any"] | None,
        Parameter(help="Exit with 1 for such a change, or a worse one."),
    ] = None,
) -> int:
    """Print what was added (+), removed (-) and changed (~), and whom it breaks."""
    changes = find_changes(read_revision(old), read_revision(new))
    if format == "json":
        print_json({"old": old, "new": new, **changes_to_json(changes)})
    else:
        title = f"From {old} to {new}"
        for line in write_markdown(changes, title) if format == "markdown" else write_changes(changes):
            print_text(line)
    return FAILED if is_failure(changes, fail_on) else OK
