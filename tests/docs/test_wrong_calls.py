"""Errors of wrong calls name every fault once, with its place, and nothing else. The tables of the page say so."""

from __future__ import annotations

import pytest

from tests.docs.arguments import ENVIRONMENTS
from tests.docs.markdown import replace_block
from tests.docs.wrong_calls import PAGE, our_texts, render, score, texts_of, wrong_calls
from tests.interop import install


def test_there_are_at_least_sixty_calls_and_none_twice() -> None:
    calls = [(each.takes, each.sends) for each in wrong_calls()]
    assert len({*calls}) == len(calls) >= 60
    assert f"{len(calls)} wrong calls" in PAGE.read_text(encoding="utf-8")


def test_every_fault_is_named_once_and_nothing_else_is() -> None:
    wrong = [
        (call.takes, call.sends, outcome)
        for call, outcome in zip(wrong_calls(), our_texts(), strict=True)
        if score(call, outcome)[:2] != (len(call.faults), 0)
    ]
    assert wrong == []


def test_our_columns_are_what_our_server_does() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("tests.docs.wrong_calls -->\n")[2]
    ours = our_texts()
    assert _last_cells(page) == _last_cells(render([ours, ours, ours]))


def _last_cells(page: str) -> list[str]:
    return [line.rpartition(" | ")[2] for line in page.splitlines() if line.startswith("| ")]


def test_a_score_tells_a_fault_from_what_is_said_beside_it() -> None:
    (call, *_) = [each for each in wrong_calls() if each.takes == "pet: Dog | Cat"]
    for text, expected in (
        ("pet.barks: expected boolean, got string", (1, 0)),
        ("pet.barks: expected boolean\npet.barks: expected boolean", (0, 1)),
        ("pet.barks: expected boolean\npet.color: required, but missing", (1, 1)),
        ("pet: expected Dog or Cat", (0, 1)),
        ("2 validation errors for it\npet.Dog.barks\n  wrong\npet.Cat.color\n  missing", (1, 1)),
    ):
        assert score(call, {"error": text})[:2] == expected
    assert score(call, {"value": "it"}) == (0, 0, 0)


@pytest.mark.long
def test_both_tables_are_what_the_libraries_do() -> None:
    for environment in ENVIRONMENTS.values():
        if not (install.INTEROP / environment / ".installed").exists():
            pytest.skip("the libraries of others are not installed: run tests/interop/install.py")
    page = PAGE.read_text(encoding="utf-8")
    others, ours = [texts_of(library) for library in ENVIRONMENTS], our_texts()
    assert replace_block(page, "wrong_calls", render([*others, ours])) == page
    for call, here, *texts in zip(wrong_calls(), ours, *others, strict=True):
        assert score(call, here).words <= min(found.words for text in texts if (found := score(call, text)).words)
