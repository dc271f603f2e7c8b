"""The codes of the errors that the protocol does not define."""

from __future__ import annotations

import typedmcp
from typedmcp.revisions.features import FEATURES, SUPPORTED


def _codes(kind: type[typedmcp.RemoteError]) -> set[int]:
    """Return the codes that the classes of an error send on the newest revision."""
    own: set[int] = {vars(kind)["CODE"]} if "CODE" in vars(kind) else set()
    return own.union(*(_codes(each) for each in kind.__subclasses__()))


def test_codes_that_the_protocol_does_not_define_lie_outside_its_range() -> None:
    codes = _codes(typedmcp.RemoteError)
    own = codes - {*FEATURES[SUPPORTED[0]].error_codes.values()}
    assert own
    assert own < codes
    assert [code for code in own if -32768 <= code <= -32000] == []
