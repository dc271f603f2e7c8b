"""Server-sent events: what a stream of bytes says, however it is cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from typedmcp.http.sse import Event, EventParser, event_bytes
from typedmcp.wire import Oversize

OTHERS = "\u2028\u2029\u0085\x0b\x0c"
"""What ends a line elsewhere."""

CASES: dict[str, tuple[bytes, list[Event]]] = {
    "one line of data": (b"data: {}\n\n", [Event(b"{}")]),
    "no space behind the colon": (b"data:{}\n\n", [Event(b"{}")]),
    "only one space is dropped": (b"data:  x\n\n", [Event(b" x")]),
    "lines of data are joined": (b"data: a\ndata\ndata: b\n\n", [Event(b"a\n\nb")]),
    "every field": (b"event: e\nid: 7\nretry: 500\ndata: x\n\n", [Event(b"x", "e", "7", 500)]),
    "carriage returns": (b"data: a\rid: 1\r\rdata: b\r\r", [Event(b"a", id="1"), Event(b"b")]),
    "both": (b"data: a\r\nid: 1\r\n\r\ndata: b\r\n\r\n", [Event(b"a", id="1"), Event(b"b")]),
    "a mixture": (b"data: a\rdata: b\r\n\ndata: c\n\r\n", [Event(b"a\nb"), Event(b"c")]),
    "other separators stay": (f"data: {OTHERS}\n\n".encode(), [Event(OTHERS.encode())]),
    "a mark at the start": (b"\xef\xbb\xbfdata: x\n\n", [Event(b"x")]),
    "a mark elsewhere is no mark": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [Event(b"x")]),
    "a comment": (b": ping\n\n:\n\ndata: x\n: more\n\n", [Event(b"x")]),
    "no end": (b"data: x\n", []),
    "no end of the line": (b"data: x", []),
    "an id alone": (b"id: 1\ndata:\n\n", [Event(b"", id="1")]),
    "an id without data": (b"id: 1\n\n", [Event(id="1")]),
    "an empty id": (b"id\ndata: x\n\n", [Event(b"x", id="")]),
    "an id with NUL": (b"id: a\x00b\ndata: x\n\n", [Event(b"x")]),
    "a time alone": (b"retry: 10\n\n", [Event(retry=10)]),
    "no time": (b"retry: 1s\nretry: -1\nretry: 1.5\nretry:\nretry: \xd9\xa1\ndata: x\n\n", [Event(b"x")]),
    "a time beyond all": (b"retry: 99999999999\ndata: x\n\n", [Event(b"x")]),
    "a type alone": (b"event: e\n\ndata: x\n\n", [Event(b"x")]),
    "an empty type": (b"event:\ndata: x\n\n", [Event(b"x")]),
    "fields that nobody knows": (b"Data: a\n data: b\nfoo: bar\ndata: x\n\n", [Event(b"x")]),
    "blank lines": (b"\n\n\r\n\rdata: x\n\n\n\n", [Event(b"x")]),
    "no UTF-8": (b"id: \xff\ndata: \xff\n\n", [Event(b"\xff", id="\ufffd")]),
    "nothing": (b"", []),
}  # fmt: skip


def parsed(pieces: list[bytes], limit: int = 1 << 20) -> list[Event]:
    parser = EventParser(limit)
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_stream_means_the_same_however_it_is_cut(case: str, size: int) -> None:
    stream, events = CASES[case]
    assert parsed([stream[at : at + size] for at in range(0, len(stream), size)]) == events


TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.none() | TEXT, st.none() | TEXT, st.none() | st.integers(0, 10**9))),
    st.lists(st.integers(1, 12)),
)
def test_what_is_written_is_read(
    events: list[tuple[bytes, str | None, str | None, int | None]], cuts: list[int]
) -> None:
    stream = b"".join(event_bytes(data, id=id, event=event, retry=retry) for data, id, event, retry in events)
    pieces: list[bytes] = []
    for cut in cuts:
        pieces.append(stream[:cut])
        stream = stream[cut:]
    expected = [
        Event(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), event or "message", id, retry)
        for data, id, event, retry in events
    ]
    assert parsed([*pieces, stream]) == expected


@given(st.lists(st.binary(max_size=30)))
def test_no_bytes_are_too_much_for_the_parser(pieces: list[bytes]) -> None:
    assert parsed(pieces) == parsed([b"".join(pieces)])


def test_a_message_of_one_line_is_one_line() -> None:
    assert event_bytes(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert event_bytes(b"", id="7", retry=500) == b"id: 7\nretry: 500\ndata: \n\n"
    assert event_bytes(b"x", event="endpoint") == b"event: endpoint\ndata: x\n\n"


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "\0"])
def test_an_id_or_a_type_must_fit_one_line(bad: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        event_bytes(b"", id=bad)
    with pytest.raises(ValueError, match="one line"):
        event_bytes(b"", event=bad)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * 101, b"data: " + b"x" * 50 + b"\ndata: " + b"x" * 50, b"data:" + b"x" * 5000],
    ids=["one line", "two lines", "a long one"],
)  # fmt: skip
def test_an_event_beyond_the_limit_costs_only_itself(stream: bytes, size: int) -> None:
    stream += b"\nid: 4\n\ndata: y\n\n"
    long, next = parsed([stream[at : at + size] for at in range(0, len(stream), size)], limit=100)
    assert isinstance(long.data, Oversize)
    assert long.data.head.startswith(b"x" * 50)
    assert (long.id, next) == ("4", Event(b"y"))


def test_an_event_at_the_limit_is_whole() -> None:
    for size in (1, 1000):
        stream = b"data: " + b"x" * 100 + b"\n\n"
        assert parsed([stream[at : at + size] for at in range(0, len(stream), size)], 100) == [Event(b"x" * 100)]


@pytest.mark.parametrize("line", [b"data: ", b": ", b"", b"id: "])
def test_a_line_that_never_ends_takes_no_memory(line: bytes) -> None:
    parser = EventParser(limit=1000)
    parser.feed(line)
    for _ in range(1000):
        assert parser.feed(b"x" * 100) == []
    assert sum(map(len, parser._line)) < 2000  # pyright: ignore[reportPrivateUsage]
    assert parser.feed(b"\n\ndata: y\n\n")[-1] == Event(b"y")


def test_the_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        EventParser(0)


def test_a_large_event_in_small_pieces_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        parser, piece = EventParser(1 << 30), b"x" * 64
        parser.feed(b"data: ")
        began = time.perf_counter()
        for _ in range(size // 64):
            parser.feed(piece)
        (event,) = parser.feed(b"\n\n")
        assert len(event.data) == size  # type: ignore[arg-type]
        return time.perf_counter() - began

    assert min(seconds(1 << 22) for _ in range(2)) < 16 * min(seconds(1 << 20) for _ in range(3)) + 0.1
