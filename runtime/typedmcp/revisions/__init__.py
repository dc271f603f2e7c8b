"""Everything that differs between protocol revisions.

`features` lists the revisions and what each of them has. `convert` compiles converters between the types of two
revisions. `rules` has the exceptions that types alone do not express. `notifications`, `results`, `input_requests` and
`capabilities` convert these between the dialect and the revision of a peer. `check` finds what has no rule.
"""

from __future__ import annotations

from typedmcp.revisions.features import CHECKED_DIALECT, DIALECT

if DIALECT != CHECKED_DIALECT:
    from typedmcp.revisions.check import check_rules

    check_rules()
