"""The names of tools, prompts and resources that headers repeat, as the fast path compares them."""

from __future__ import annotations

import pytest

from tests.cases import each
from typedmcp.server.http.header_checks import MirroredNames


def names() -> MirroredNames:
    made = MirroredNames(b"2026-07-28")
    made.check(b"echo", "echo")
    return made


def test_a_name_that_its_header_spells_is_remembered() -> None:
    assert names().known == {b"echo": "echo"}


@each("header, value", [(b"echo", "other"), (b"", "echo"), ("é".encode(), "é"), (b"=?base64?eA==?=", "x")])
def test_a_name_that_its_header_does_not_spell_is_rejected(header: bytes, value: str) -> None:
    made = names()
    with pytest.raises(ValueError):  # noqa: PT011
        made.check(header, value)
    assert made.known == {b"echo": "echo"}


def test_the_names_that_are_remembered_are_bounded() -> None:
    made = names()
    for number in range(1000):
        made.check(b"%d" % number, str(number))
    assert len(made.known) <= 256
    made.check(b"x" * 1000, "x" * 1000)
    assert b"x" * 1000 not in made.known
