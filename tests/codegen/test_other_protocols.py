"""Schemas of other protocols, as their packages ship them: compiled alone, and exact."""

from __future__ import annotations

import pytest

from tests.docs.protocols import PAGE, PROTOCOLS, OtherProtocol, measure, render


@pytest.mark.long
@pytest.mark.parametrize("protocol", [pytest.param(protocol, id=protocol.name) for protocol in PROTOCOLS])
def test_the_types_of_a_protocol_of_others_are_exact(protocol: OtherProtocol) -> None:
    if not protocol.path.exists():
        pytest.skip("the packages of others are not installed: run `make interop`")
    found = measure(protocol)
    assert found.differences == {"structs": [], "models": []}
    assert found.faults == []
    assert render(protocol, found) in PAGE.read_text(encoding="utf-8").splitlines()
