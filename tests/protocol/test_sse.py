"""Server-sent events: parsing streams in chunks of any size, and encoding."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from typedmcp.protocol.framing import OversizeMessage
from typedmcp.protocol.sse import EventParser, ServerSentEvent, encode_event

OTHER_SEPARATORS = "\u2028\u2029\u0085\x0b\x0c"
"""Characters that end a line in other formats."""

CASES: dict[str, tuple[bytes, list[ServerSentEvent]]] = {
    "one line of data": (b"data: {}\n\n", [ServerSentEvent(b"{}")]),
    "no space behind the colon": (b"data:{}\n\n", [ServerSentEvent(b"{}")]),
    "only one space is dropped": (b"data:  x\n\n", [ServerSentEvent(b" x")]),
    "lines of data are joined": (b"data: a\ndata\ndata: b\n\n", [ServerSentEvent(b"a\n\nb")]),
    "every field": (b"event: e\nid: 7\nretry: 500\ndata: x\n\n", [ServerSentEvent(b"x", "e", "7", 500)]),
    "carriage returns": (b"data: a\rid: 1\r\rdata: b\r\r", [ServerSentEvent(b"a", id="1"), ServerSentEvent(b"b")]),
    "CRLF": (b"data: a\r\nid: 1\r\n\r\ndata: b\r\n\r\n", [ServerSentEvent(b"a", id="1"), ServerSentEvent(b"b")]),
    "mixed line ends": (b"data: a\rdata: b\r\n\ndata: c\n\r\n", [ServerSentEvent(b"a\nb"), ServerSentEvent(b"c")]),
    "other separators stay": (f"data: {OTHER_SEPARATORS}\n\n".encode(), [ServerSentEvent(OTHER_SEPARATORS.encode())]),
    "a byte order mark at the start": (b"\xef\xbb\xbfdata: x\n\n", [ServerSentEvent(b"x")]),
    "a byte order mark elsewhere is data": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [ServerSentEvent(b"x")]),
    "a comment": (b": ping\n\n:\n\ndata: x\n: more\n\n", [ServerSentEvent(b"x")]),
    "an event that is not complete": (b"data: x\n", []),
    "a line that is not complete": (b"data: x", []),
    "an id alone": (b"id: 1\ndata:\n\n", [ServerSentEvent(b"", id="1")]),
    "an id without data": (b"id: 1\n\n", [ServerSentEvent(id="1")]),
    "an empty id": (b"id\ndata: x\n\n", [ServerSentEvent(b"x", id="")]),
    "an id with NUL": (b"id: a\x00b\ndata: x\n\n", [ServerSentEvent(b"x")]),
    "a time alone": (b"retry: 10\n\n", [ServerSentEvent(retry=10)]),
    "not a time": (b"retry: 1s\nretry: -1\nretry: 1.5\nretry:\nretry: \xd9\xa1\ndata: x\n\n", [ServerSentEvent(b"x")]),
    "a time with too many digits": (b"retry: 99999999999\ndata: x\n\n", [ServerSentEvent(b"x")]),
    "a type alone": (b"event: e\n\ndata: x\n\n", [ServerSentEvent(b"x")]),
    "an empty type": (b"event:\ndata: x\n\n", [ServerSentEvent(b"x")]),
    "unknown fields": (b"Data: a\n data: b\nfoo: bar\ndata: x\n\n", [ServerSentEvent(b"x")]),
    "blank lines": (b"\n\n\r\n\rdata: x\n\n\n\n", [ServerSentEvent(b"x")]),
    "not UTF-8": (b"id: \xff\ndata: \xff\n\n", [ServerSentEvent(b"\xff", id="\ufffd")]),
    "nothing": (b"", []),
}  # fmt: skip


def parse(pieces: list[bytes], limit: int = 1 << 20) -> list[ServerSentEvent]:
    parser = EventParser(limit)
    return [event for piece in pieces for event in parser.feed(piece)]


@each("case", CASES)
@each("size", [1, 2, 3, 1000])
def test_a_stream_is_parsed_the_same_in_chunks_of_any_size(case: str, size: int) -> None:
    stream, events = CASES[case]
    assert parse([stream[at : at + size] for at in range(0, len(stream), size)]) == events


TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.none() | TEXT, st.none() | TEXT, st.none() | st.integers(0, 10**9))),
    st.lists(st.integers(1, 12)),
)
def test_encoded_events_are_parsed_back(
    events: list[tuple[bytes, str | None, str | None, int | None]], cuts: list[int]
) -> None:
    stream = b"".join(encode_event(data, id=id, event=event, retry=retry) for data, id, event, retry in events)
    pieces: list[bytes] = []
    for cut in cuts:
        pieces.append(stream[:cut])
        stream = stream[cut:]
    expected = [
        ServerSentEvent(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), event or "message", id, retry)
        for data, id, event, retry in events
    ]
    assert parse([*pieces, stream]) == expected


@given(st.lists(st.binary(max_size=30)))
def test_any_bytes_are_parsed_without_an_error(pieces: list[bytes]) -> None:
    assert parse(pieces) == parse([b"".join(pieces)])


def test_data_of_one_line_is_encoded_in_one_line() -> None:
    assert encode_event(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert encode_event(b"", id="7", retry=500) == b"id: 7\nretry: 500\ndata: \n\n"
    assert encode_event(b"x", event="endpoint") == b"event: endpoint\ndata: x\n\n"


@each("bad", ["a\nb", "a\rb", "\0"])
def test_an_id_or_a_type_must_fit_in_one_line(bad: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode_event(b"", id=bad)
    with pytest.raises(ValueError, match="one line"):
        encode_event(b"", event=bad)


@each("size", [1, 7, 1000])
@each(
    "stream",
    [b"data: " + b"x" * 101, b"data: " + b"x" * 50 + b"\ndata: " + b"x" * 50, b"data:" + b"x" * 5000],
    ids=["one line", "two lines", "a long one"],
)  # fmt: skip
def test_an_event_beyond_the_limit_does_not_affect_the_next(stream: bytes, size: int) -> None:
    stream += b"\nid: 4\n\ndata: y\n\n"
    long, next = parse([stream[at : at + size] for at in range(0, len(stream), size)], limit=100)
    assert isinstance(long.data, OversizeMessage)
    assert long.data.head.startswith(b"x" * 50)
    assert (long.id, next) == ("4", ServerSentEvent(b"y"))


def test_an_event_at_the_limit_is_complete() -> None:
    for size in (1, 1000):
        stream = b"data: " + b"x" * 100 + b"\n\n"
        assert parse([stream[at : at + size] for at in range(0, len(stream), size)], 100) == [
            ServerSentEvent(b"x" * 100)
        ]


@each("line", [b"data: ", b": ", b"", b"id: "])
def test_a_line_that_never_ends_takes_no_memory(line: bytes) -> None:
    parser = EventParser(limit=1000)
    parser.feed(line)
    for _ in range(1000):
        assert parser.feed(b"x" * 100) == []
    assert sum(map(len, parser._line)) < 2000  # pyright: ignore[reportPrivateUsage]
    assert parser.feed(b"\n\ndata: y\n\n")[-1] == ServerSentEvent(b"y")


def test_the_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        EventParser(0)


def test_a_large_event_in_small_pieces_takes_linear_time() -> None:
    def measure(size: int) -> float:
        parser, piece = EventParser(1 << 30), b"x" * 64
        parser.feed(b"data: ")
        start = time.process_time()
        for _ in range(size // 64):
            parser.feed(piece)
        (event,) = parser.feed(b"\n\n")
        assert len(event.data) == size  # type: ignore[arg-type]
        return time.process_time() - start

    assert min(measure(1 << 22) for _ in range(2)) < 16 * min(measure(1 << 20) for _ in range(3)) + 0.1


@each("end", [b"\n", b"\r\n"])
def test_a_large_event_is_held_twice_at_most(end: bytes) -> None:
    size = 4 << 20
    stream = b"data: " + b"x" * size + end * 2
    chunks = [stream[at : at + 65536] for at in range(0, len(stream), 65536)]
    parser = EventParser()
    tracemalloc.start(1)
    try:
        events = [event for chunk in chunks for event in parser.feed(chunk)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [event.data for event in events] == [b"x" * size]
    assert peak < 2.5 * size
