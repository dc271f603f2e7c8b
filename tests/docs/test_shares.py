"""The table of docs/limits.md on shares is true: one client gets no more, and a second one is served."""

from __future__ import annotations

from tests.docs.markdown import replace_block
from tests.docs.shares import PAGE, measure, render
from tests.server.http.asgi_driver import in_loop


@in_loop
async def test_one_client_leaves_to_others_what_the_page_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replace_block(page, "shares", render(await measure())) == page
