"""The tables of a connection's ends."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from typedmcp.peer import Kind, Peer
from typedmcp.wire import RequestId


@pytest.mark.parametrize(
    ("id", "kind"),
    [
        (1, None),
        ("1", Kind.ID_TYPE),
        ("01", Kind.STRAY),
        ("+1", Kind.STRAY),
        ("\uff11", Kind.STRAY),
        ("1" * 5000, Kind.STRAY),
        ("", Kind.STRAY),
        (2, Kind.STRAY),
        (-1, Kind.STRAY),
        (None, Kind.STRAY),
    ],
)
def test_an_answer_finds_its_call_by_number_or_by_the_same_number_in_a_string(
    id: RequestId | None, kind: Kind | None
) -> None:
    peer = Peer()
    call = peer.call("x", "me", 0.0)
    assert call.id == 1
    found = call if kind in (None, Kind.ID_TYPE) else None
    assert peer.resolve(id) == (found, kind)
    assert list(peer.pending.values()) == ([] if found else [call])


@pytest.mark.parametrize("id", [1, "1"])
def test_an_answer_to_a_call_that_was_given_up_is_late_once(id: RequestId) -> None:
    peer = Peer()
    assert peer.cancel(peer.call("x", None, 0.0).id)
    assert peer.resolve(id) == (None, Kind.LATE)
    assert peer.resolve(id) == (None, Kind.STRAY)


def test_a_second_answer_is_to_nothing() -> None:
    peer = Peer()
    call = peer.call("x", None, 0.0)
    assert peer.resolve(call.id) == (call, None)
    assert peer.resolve(call.id) == (None, Kind.STRAY)
    assert not peer.cancel(call.id)


def test_only_so_many_calls_that_were_given_up_are_remembered() -> None:
    peer = Peer()
    ids = [peer.call("x", None, 0.0).id for _ in range(3000)]
    assert all(peer.cancel(id) for id in ids)
    kinds = [peer.resolve(id)[1] for id in ids]
    assert kinds == [Kind.STRAY] * (3000 - 1024) + [Kind.LATE] * 1024


@pytest.mark.parametrize(
    ("timeout", "latest", "progress", "deadline"),
    [
        (None, None, [], None),
        (5.0, None, [], 5.0),
        (None, 9.0, [], 9.0),
        (5.0, 9.0, [], 5.0),
        (9.0, 5.0, [], 5.0),
        (5.0, None, [3.0], 8.0),
        (5.0, None, [3.0, 7.0], 12.0),
        (5.0, 9.0, [3.0], 8.0),
        (5.0, 9.0, [3.0, 7.0], 9.0),
        (None, 9.0, [3.0, 7.0], 9.0),
        (None, None, [3.0], None),
    ],
)
def test_progress_starts_the_time_again_up_to_the_latest(
    timeout: float | None, latest: float | None, progress: list[float], deadline: float | None
) -> None:
    peer = Peer()
    call = peer.call("x", None, 0.0, timeout=timeout, latest=latest)
    for now in progress:
        assert peer.progressed(call.id, now) is call
    assert peer.next_deadline() == deadline
    if deadline is not None:
        assert peer.expire(deadline - 0.5) == []
        assert peer.expire(deadline) == [call]
    assert peer.next_deadline() is None
    assert peer.expire(1e9) == []


def test_calls_expire_in_the_order_of_their_deadlines() -> None:
    peer = Peer()
    calls = [peer.call("x", None, 0.0, timeout=timeout) for timeout in (3.0, 1.0, 2.0, 9.0)]
    assert peer.expire(3.0) == [calls[1], calls[2], calls[0]]
    assert peer.resolve(calls[1].id) == (None, Kind.LATE)
    assert peer.next_deadline() == 9.0


def test_much_progress_leaves_no_deadlines_behind() -> None:
    peer = Peer()
    call = peer.call("x", None, 0.0, timeout=1.0)
    for now in range(10_000):
        peer.progressed(call.id, float(now))
    assert len(peer._deadlines) < 100  # pyright: ignore[reportPrivateUsage]
    assert peer.next_deadline() == 10_000.0


def test_a_request_with_the_id_of_one_in_flight_is_not_begun() -> None:
    peer = Peer()
    assert peer.begin(1, "first")
    assert not peer.begin(1, "second")
    assert peer.begin("1", "another id")
    assert peer.in_flight == {1: "first", "1": "another id"}


def test_a_request_ends_once() -> None:
    peer = Peer()
    assert peer.begin(1, "work")
    assert peer.end(1)
    assert not peer.end(1)
    assert peer.begin(1, "again")
    assert peer.cancelled(1) == "again"
    assert peer.cancelled(1) is None
    assert not peer.end(1)


def test_closing_gives_everything_that_is_open_and_empties_the_tables() -> None:
    peer = Peer()
    call = peer.call("x", None, 0.0, timeout=1.0)
    peer.begin("a", "work")
    assert peer.close() == (["work"], [call])
    assert peer.close() == ([], [])
    assert peer.next_deadline() is None
    assert peer.resolve(call.id) == (None, Kind.STRAY)


class Conversation(RuleBasedStateMachine):
    """Two peers, with wires between them that keep the order and deliver when they like.

    A message is its kind and the id of the call. `outcomes` says how each call ended for its caller.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.peers = (Peer(), Peer())
        self.wires: tuple[list[tuple[str, Any]], list[tuple[str, Any]]] = ([], [])
        self.begun: tuple[list[int], list[int]] = ([], [])
        self.open: tuple[set[int], set[int]] = (set(), set())
        self.outcomes: tuple[dict[int, str], dict[int, str]] = ({}, {})
        self.answered: tuple[set[int], set[int]] = (set(), set())

    def _ended(self, side: int, id: int, how: str) -> None:
        assert id not in self.outcomes[side], "a call ended twice"
        self.open[side].remove(id)
        self.outcomes[side][id] = how

    sides = st.integers(0, 1)
    times = st.none() | st.integers(1, 20).map(float)

    @rule(side=sides, timeout=times, latest=times)
    def calls(self, side: int, timeout: float | None, latest: float | None) -> None:
        call = self.peers[side].call("x", self.now, self.now, timeout=timeout, latest=latest)
        assert call.id not in self.open[side] | self.outcomes[side].keys()
        self.open[side].add(call.id)
        self.wires[side].append(("call", call.id))

    @rule(side=sides, data=st.data())
    def gives_up(self, side: int, data: st.DataObject) -> None:
        known = sorted(self.open[side] | self.outcomes[side].keys())
        if known:
            id = data.draw(st.sampled_from(known))
            was_open = id in self.open[side]
            assert self.peers[side].cancel(id) is was_open
            if was_open:
                self._ended(side, id, "cancelled")
                self.wires[side].append(("cancel", id))

    @rule(side=sides, data=st.data(), as_string=st.booleans())
    def answers(self, side: int, data: st.DataObject, as_string: bool) -> None:
        if self.begun[side]:
            id = data.draw(st.sampled_from(self.begun[side]))
            self.begun[side].remove(id)
            if self.peers[side].end(id):
                assert id not in self.answered[side], "a call was answered twice"
                self.answered[side].add(id)
                self.wires[side].append(("answer", str(id) if as_string else id))

    @rule(side=sides, data=st.data())
    def tells_progress(self, side: int, data: st.DataObject) -> None:
        if self.begun[side]:
            self.wires[side].append(("progress", data.draw(st.sampled_from(self.begun[side]))))

    @precondition(lambda self: any(self.wires))
    @rule(side=sides, count=st.integers(1, 5))
    def delivers(self, side: int, count: int) -> None:
        for _ in range(min(count, len(self.wires[side]))):
            kind, id = self.wires[side].pop(0)
            getattr(self, f"_{kind}")(1 - side, id)

    def _call(self, side: int, id: int) -> None:
        assert self.peers[side].begin(id, f"work {id}")
        assert not self.peers[side].begin(id, "twice")
        self.begun[side].append(id)

    def _cancel(self, side: int, id: int) -> None:
        found = self.peers[side].cancelled(id)
        assert found == (None if id in self.answered[side] else f"work {id}")

    def _answer(self, side: int, id: RequestId) -> None:
        call, kind = self.peers[side].resolve(id)
        if call is not None:
            assert kind == (Kind.ID_TYPE if isinstance(id, str) else None)
            self._ended(side, call.id, "answered")
        else:
            assert kind is Kind.LATE
            assert self.outcomes[side][int(id)] in ("cancelled", "expired")

    def _progress(self, side: int, id: int) -> None:
        call = self.peers[side].progressed(id, self.now)
        assert (call is not None) is (id in self.open[side])

    @rule(seconds=st.integers(1, 10))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        for side, peer in enumerate(self.peers):
            for call in peer.expire(self.now):
                assert call.deadline is not None
                assert call.deadline <= self.now
                self._ended(side, call.id, "expired")
                self.wires[side].append(("cancel", call.id))

    @invariant()
    def the_tables_hold_what_is_open_and_nothing_else(self) -> None:
        for side, peer in enumerate(self.peers):
            assert peer.pending.keys() == self.open[side]
            deadlines = [call.deadline for call in peer.pending.values() if call.deadline is not None]
            assert peer.next_deadline() == min(deadlines, default=None)
            assert set(peer.in_flight) <= set(self.begun[side])

    def teardown(self) -> None:
        """Let everything arrive and be answered: then nothing is open, and every call ended in one way."""
        while any(self.wires) or any(self.begun):
            for side in (0, 1):
                self.delivers(side, len(self.wires[side]))
                for id in self.begun[side]:
                    if self.peers[side].end(id):
                        self.answered[side].add(id)
                        self.wires[side].append(("answer", id))
                self.begun[side].clear()
        assert self.open == (set(), set())
        for peer in self.peers:
            assert (peer.in_flight, peer.pending, peer.next_deadline()) == ({}, {}, None)


TestConversation = cast(Any, Conversation).TestCase
TestConversation.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
