"""The page with one connection, message by message, is what passes."""

from __future__ import annotations

from tests.docs.connection import PAGE, render
from tests.docs.markdown import replace_block


def test_the_messages_on_the_page_are_those_of_a_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_block(text, "connection", render()) == text, "run: python -m tests.docs.connection"
