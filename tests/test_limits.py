"""Limits that nothing could keep are rejected where they are given."""

from __future__ import annotations

import pytest

import typedmcp
from tests.cases import each

INVALID = [
    ({"threads": 0}, "threads must be an integer of at least 1, not 0"),
    ({"message_bytes": 1.5}, "message_bytes must be an integer of at least 1, not 1.5"),
    ({"client_share_percent": 101}, "client_share_percent must be at most 100, not 101"),
    ({"message_depth": 201}, "message_depth must be at most 200, not 201"),
]


@each(("given", "text"), INVALID)
def test_an_error_names_the_limit_and_what_it_may_be(given: dict[str, int], text: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=f"^limits: {text}$"):
        typedmcp.Limits(**given)
