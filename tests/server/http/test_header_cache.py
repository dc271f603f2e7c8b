"""Templates of headers: which POSTs match an earlier one."""

from __future__ import annotations

from tests.cases import each
from tests.spoken import MODERN_REVISION
from typedmcp.server.http.header_cache import HeaderTemplate

SCOPE = {"path": "/mcp", "root_path": ""}
HEADERS = {
    b"host": b"localhost",
    b"user-agent": b"test/1",
    b"accept": b"*/*",
    b"mcp-name": b"echo",
    b"traceparent": b"00-1",
    b"content-length": b"100",
}
SIZE = sum(len(name) + len(value) for name, value in HEADERS.items())


def template(limit: int = 1000) -> HeaderTemplate:
    return HeaderTemplate(SCOPE, [*HEADERS.items()], limit, MODERN_REVISION.encode(), is_modern=True)


def matches(known: HeaderTemplate, changes: dict[bytes, bytes] | None = None) -> bool:
    return known.matches(SCOPE, [*{**HEADERS, **(changes or {})}.items()])


def test_headers_that_do_not_change_match() -> None:
    known = template()
    assert matches(known)
    assert matches(known)


@each("name", [b"user-agent", b"mcp-name", b"traceparent", b"content-length"])
def test_a_header_may_vary_again_and_again(name: bytes) -> None:
    known = template()
    for number in range(4):
        assert matches(known, {name: b"%d" % number})
        assert matches(known)


def test_all_headers_may_vary_at_once_or_in_turn() -> None:
    known = template()
    assert matches(known, {b"user-agent": b"a"})
    assert matches(known, {b"mcp-name": b"b", b"content-length": b"1"})
    assert matches(known, {b"user-agent": b"c", b"mcp-name": b"d", b"content-length": b"2", b"traceparent": b"e"})
    assert matches(known)


@each("name", [b"host", b"accept"])
def test_a_fixed_header_must_not_vary(name: bytes) -> None:
    known = template()
    assert not matches(known, {name: b"other"})
    assert not matches(known, {name: b"other", b"user-agent": b"other"})
    assert matches(known)


@each("place", range(len(HEADERS)))
def test_a_header_of_another_name_does_not_match(place: int) -> None:
    known = template()
    headers = [*HEADERS.items()]
    headers[place] = (b"x-other", headers[place][1])
    for _ in range(2):
        assert not known.matches(SCOPE, headers)
        assert matches(known)


def test_further_or_missing_headers_do_not_match() -> None:
    known = template()
    headers = [*HEADERS.items()]
    assert not known.matches(SCOPE, headers[:-1])
    assert not known.matches(SCOPE, [*headers, (b"x-other", b"")])


@each("name", [b"user-agent", b"mcp-name", b"traceparent", b"content-length"])
def test_the_limit_of_the_size_holds_for_values_that_vary(name: bytes) -> None:
    known = template(SIZE + 5)
    longer = HEADERS[name] + b"12345"
    for _ in range(2):
        assert matches(known, {name: longer})
        assert not matches(known, {name: longer + b"6"})
        assert matches(known)


def test_the_limit_holds_for_all_values_together() -> None:
    known = template(SIZE + 5)
    assert matches(known, {b"user-agent": HEADERS[b"user-agent"] + b"123", b"mcp-name": b"echo12"})
    assert not matches(known, {b"user-agent": HEADERS[b"user-agent"] + b"123", b"mcp-name": b"echo123"})


def test_another_path_does_not_match() -> None:
    known = template()
    assert not known.matches({**SCOPE, "path": "/other"}, [*HEADERS.items()])
    assert not known.matches({**SCOPE, "root_path": "/other"}, [*HEADERS.items()])
