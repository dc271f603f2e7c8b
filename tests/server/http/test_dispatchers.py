"""The dispatchers of requests over HTTP that belong to no session."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.server.http.asgi_driver import in_loop, serving


@in_loop
async def test_a_name_that_its_header_spells_is_cached() -> None:
    async with serving() as served:
        dispatcher = served.app.stateless
        dispatcher.check_plain(b"echo", "echo")
        assert dispatcher.plain_names == {b"echo": "echo"}


@each("header, value", [(b"echo", "other"), (b"", "echo"), ("é".encode(), "é"), (b"=?base64?eA==?=", "x")])
@in_loop
async def test_a_name_that_its_header_does_not_spell_is_rejected(header: bytes, value: str) -> None:
    async with serving() as served:
        dispatcher = served.app.stateless
        dispatcher.check_plain(b"echo", "echo")
        with pytest.raises(ValueError):  # noqa: PT011
            dispatcher.check_plain(header, value)
        assert header not in dispatcher.plain_names or dispatcher.plain_names[header] != value


@in_loop
async def test_the_cache_of_names_is_bounded() -> None:
    async with serving() as served:
        dispatcher = served.app.stateless
        for number in range(1000):
            dispatcher.check_plain(b"%d" % number, str(number))
        assert len(dispatcher.plain_names) <= 256
        dispatcher.check_plain(b"x" * 1000, "x" * 1000)
        assert b"x" * 1000 not in dispatcher.plain_names
