"""Pauses of the garbage collector end, and respect what the application has chosen."""

from __future__ import annotations

import gc

import pytest

from tests.cases import each
from typedmcp.protocol.garbage import collector_paused


@each("is_enabled", [True, False])
def test_a_pause_leaves_the_collector_as_it_was(is_enabled: bool) -> None:
    seen: list[bool] = []

    def fail() -> None:
        with collector_paused():
            seen.append(gc.isenabled())
            raise ZeroDivisionError

    try:
        (gc.enable if is_enabled else gc.disable)()
        with pytest.raises(ZeroDivisionError):
            fail()
        assert [*seen, gc.isenabled()] == [False, is_enabled]
    finally:
        gc.enable()
