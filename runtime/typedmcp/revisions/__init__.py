"""Everything that differs between protocol revisions.

`features` lists the revisions and what each of them has. `conversions` has the conversions that `mcpspec` brings.
`notifications`, `results`, `input_requests` and `capabilities` convert these between the dialect and the revision of a
peer.
"""

from __future__ import annotations

from typedmcp import dialect

__all__ = ["MissingRulesError"]


class MissingRulesError(Exception):
    """The dialect has moved to a revision, and what older revisions need for it is not decided."""


if dialect.conversions.GAPS:
    _lines = "\n".join(f"  {gap}" for gap in dialect.conversions.GAPS)
    raise MissingRulesError(
        f"older revisions lack rules for the dialect {dialect.methods.PROTOCOL_VERSION}:\n{_lines}\n"
        "A name that needs no rule belongs in `decided`, in schema/supplement.json."
    )
