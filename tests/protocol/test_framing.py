"""Splitting bytes into lines, and finding ids in lines that cannot be parsed."""

from __future__ import annotations

from typing import Any, SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.helpers import chunked
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.protocol.framing import (
    Framer,
    InvalidMessage,
    OversizeMessage,
    RequestId,
    classify,
    find_request_id,
)

_PIECES = st.sampled_from([b"\n", b"\r\n", b"a", b"{}", b"\xe2\x80\xa8", b"\xff", b"\x85\x0b\x0c\x1c", b"x" * 20])
_STREAMS = st.lists(_PIECES, max_size=40).map(b"".join)
_SIZES = st.lists(st.integers(1, 30), max_size=40)


def lines_of(pieces: list[bytes], limit: int = DEFAULT_LIMITS.message_bytes) -> list[bytes | str]:
    """Return the lines in some chunks, with "over" for a line that is too long."""
    framer = Framer(limit)
    lines = [line for piece in pieces for line in framer.feed(piece)] + framer.end()
    return ["over" if isinstance(line, OversizeMessage) else line for line in lines]


@given(_STREAMS, _SIZES)
def test_any_chunking_gives_the_same_lines(stream: bytes, sizes: list[int]) -> None:
    *lines, last = stream.split(b"\n")
    assert lines_of(chunked(stream, sizes)) == [*lines, *([last] if last else [])]


@given(_STREAMS, _SIZES, st.integers(1, 50))
def test_any_chunking_gives_the_same_lines_over_the_limit(stream: bytes, sizes: list[int], limit: int) -> None:
    *lines, last = stream.split(b"\n")
    expected = ["over" if len(line) > limit else line for line in (*lines, *([last] if last else []))]
    assert lines_of(chunked(stream, sizes), limit) == expected


@each("size", [1, 2, 3, 5, 8, 100])
@each(
    "stream, lines",
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        ("a\u2028b\u2029c\x85d\n".encode(), ["a\u2028b\u2029c\x85d".encode()]),
        (b"12345\n", [b"12345"]),
        (b"123456\n12345\n", ["over", b"12345"]),
        (b"123456", ["over"]),
        (b"1234567890\n123456\n\n1\n", ["over", "over", b"", b"1"]),
    ],
    ids=str,
)
def test_lines_end_at_newlines_and_at_the_end_of_the_stream(stream: bytes, lines: list[bytes | str], size: int) -> None:
    limit = 5 if stream[:1].isdigit() else DEFAULT_LIMITS.message_bytes
    assert lines_of(chunked(stream, [size] * len(stream)), limit) == lines


def test_a_line_that_is_too_long_is_returned_before_it_ends_with_its_beginning() -> None:
    framer = Framer(10_000)
    assert framer.feed(b"0123456789" * 1000) == []
    (over,) = framer.feed(b"x")
    assert isinstance(over, OversizeMessage)
    assert over.head == (b"0123456789" * 1000)[:4096]
    assert framer.feed(b"y" * 100_000) == []
    assert framer.feed(b"\nnext\n") == [b"next"]


def test_a_line_that_is_too_long_leaves_nothing_for_the_end_of_the_stream() -> None:
    framer = Framer(3)
    assert len(framer.feed(b"12345")) == 1
    assert framer.feed(b"6789") == []
    assert framer.end() == []
    assert framer.feed(b"1\n") == [b"1"]


class _Counted(bytes):
    """Bytes that count how many of them are split."""

    searched = 0

    def split(self, sep: Any = None, maxsplit: SupportsIndex = -1) -> list[bytes]:
        type(self).searched += len(self)
        return bytes(self).split(sep, maxsplit)


def test_each_byte_of_a_large_line_is_searched_once_in_any_chunking() -> None:
    size, count = 64 << 10, (48 << 20) >> 16
    framer, piece = Framer(), b"x" * size
    _Counted.searched = 0
    for _ in range(count):
        assert framer.feed(_Counted(piece)) == []
    (line,) = framer.feed(b"\n")
    assert _Counted.searched == size * count
    assert isinstance(line, bytes)
    assert len(line) == size * count


@each("limit", [0, -1])
def test_a_limit_must_be_positive(limit: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Framer(limit)


@each(
    "head, id",
    [
        (b'{"id":1,"method":"x","params":{"a":"', 1),
        (b'{"method":"x","id":"a","params":{"id":7', "a"),
        (b'{"method":"x","id":"\\u00e9\\"","params":[', 'é"'),
        (b'{"params":{"id":7,"method":"y"},"method":"x","id":-3', -3),
        (b' { "id" : 5 , "method" : "x" , ', 5),
        (b'{"id":1,"params":{"method":"x","a":"', None),
        (b'{"id":1,"result":{"a":"', None),
        (b'{"id":1.5,"method":"x","a":"', None),
        (b'{"id":1.0,"method":"x","a":"', None),
        (b'{"id":1e3,"method":"x","a":"', None),
        (b'{"id":true,"method":"x","a":"', None),
        (b'{"id":null,"method":"x","a":"', None),
        (b'{"id":{"id":1},"method":"x","a":"', None),
        (b'{"id":[1],"method":"x","a":"', None),
        (b'{"id":"abc', None),
        (b'{"id":"\xff","method":"x","a":"', None),
        (b'[{"id":1,"method":"x","a":"', None),
        (b'{"a":"\\"id\\":1,\\"method\\"","b":"', None),
        (b'{"a":"id","b":1,"c":"method","d":"', None),
        (b'{"ID":1,"method":"x","a":"', None),
        (b"", None),
        (b'"', None),
        (b"}}}}", None),
    ],
    ids=str,
)
def test_the_id_of_a_request_is_found_in_a_line_that_cannot_be_parsed(head: bytes, id: RequestId | None) -> None:
    found = find_request_id(head)
    assert found == id
    assert type(found) is type(id)
    over = classify(OversizeMessage(head))
    assert isinstance(over, InvalidMessage)
    assert over.id == id


LONG_AGO: list[Any] = [
    pytest.param(b"[" * 100_000 + b"]" * 100_000, 1, id="deep"),
    pytest.param(b"[" + b"1," * 100_000 + b"1]", 1, id="long"),
    pytest.param(b"[" + b'"[{\\"",' * 100_000 + b"1]", 1, id="strings"),
    pytest.param(b"[1," * 4_000 + b"1" + b"]" * 4_000, 1, id="in a thousand steps"),
    pytest.param(b"[1," * 30_000 + b"1" + b"]" * 30_000, None, id="in too many steps"),
    pytest.param(b"[" + b"[]," * 30_000 + b"1]", None, id="in too many short steps"),
]
"""Parameters before the id, and the id if it takes few steps to find: a long search would hold up everything else."""


@each("params, id", LONG_AGO)
def test_an_id_that_comes_late_is_found_in_few_steps(params: bytes, id: RequestId | None) -> None:
    assert find_request_id(b'{"method":"x","params":' + params + b',"id":1}') == id


@each("levels", [200, 5000, 1_000_000])
def test_a_line_that_is_too_deep_is_invalid_and_keeps_its_id(levels: int) -> None:
    line = b'{"method":"x","params":' + b"[" * levels + b"]" * levels + b',"id":1}'
    [framed] = Framer().feed(line + b"\n")
    assert isinstance(framed, OversizeMessage)
    for given_line in (line, framed):
        found = classify(given_line)
        assert isinstance(found, InvalidMessage)
        assert (found.code, found.id) == (-32700, 1)
        assert found.reason == "nested too deeply: more than 200 levels of arrays and objects (message_depth)"


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\ud8id method1.e-', max_size=60).map(str.encode))
def test_any_line_can_be_classified(line: bytes) -> None:
    classify(line)
    classify(OversizeMessage(line))
