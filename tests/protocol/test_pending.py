"""Open requests in both directions: ids, cancellation, progress and deadlines."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.cases import each
from typedmcp.protocol.diagnostics import DiagnosticKind
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.pending import PendingRequests


@each(
    "id, kind",
    [
        (1, None),
        ("1", DiagnosticKind.ID_TYPE_MISMATCH),
        ("01", DiagnosticKind.UNEXPECTED_RESPONSE),
        ("+1", DiagnosticKind.UNEXPECTED_RESPONSE),
        ("\uff11", DiagnosticKind.UNEXPECTED_RESPONSE),
        ("1" * 5000, DiagnosticKind.UNEXPECTED_RESPONSE),
        ("", DiagnosticKind.UNEXPECTED_RESPONSE),
        (2, DiagnosticKind.UNEXPECTED_RESPONSE),
        (-1, DiagnosticKind.UNEXPECTED_RESPONSE),
        (None, DiagnosticKind.UNEXPECTED_RESPONSE),
    ],
)
def test_a_response_matches_its_call_by_number_or_by_the_same_number_as_a_string(
    id: RequestId | None, kind: DiagnosticKind | None
) -> None:
    pending = PendingRequests()
    call = pending.add_call("x", "me", 0.0)
    assert call.id == 1
    found = call if kind in (None, DiagnosticKind.ID_TYPE_MISMATCH) else None
    assert pending.resolve(id) == (found, kind)
    assert list(pending.calls.values()) == ([] if found else [call])


@each("id", [1, "1"])
def test_a_response_to_a_cancelled_call_is_late_once_and_unexpected_afterwards(id: RequestId) -> None:
    pending = PendingRequests()
    assert pending.cancel_call(pending.add_call("x", None, 0.0).id)
    assert pending.resolve(id) == (None, DiagnosticKind.LATE_MESSAGE)
    assert pending.resolve(id) == (None, DiagnosticKind.UNEXPECTED_RESPONSE)


def test_a_renewed_call_has_a_new_id_and_its_deadline() -> None:
    pending = PendingRequests()
    call = pending.add_call("x", None, 0.0, timeout=5.0)
    pending.add_call("y", None, 0.0)
    pending.renew(call)
    assert call.id == 3
    assert pending.resolve(1) == (None, DiagnosticKind.LATE_MESSAGE)
    assert pending.next_deadline() == 5.0
    assert pending.expire(5.0) == [call]


def test_a_renewed_call_without_a_deadline_gets_its_response() -> None:
    pending = PendingRequests()
    call = pending.add_call("x", None, 0.0)
    pending.renew(call)
    assert pending.next_deadline() is None
    assert pending.resolve(2) == (call, None)


def test_a_second_response_to_a_call_is_unexpected() -> None:
    pending = PendingRequests()
    call = pending.add_call("x", None, 0.0)
    assert pending.resolve(call.id) == (call, None)
    assert pending.resolve(call.id) == (None, DiagnosticKind.UNEXPECTED_RESPONSE)
    assert not pending.cancel_call(call.id)


def test_the_latest_1024_cancelled_calls_are_remembered() -> None:
    pending = PendingRequests()
    ids = [pending.add_call("x", None, 0.0).id for _ in range(3000)]
    assert all(pending.cancel_call(id) for id in ids)
    kinds = [pending.resolve(id)[1] for id in ids]
    assert kinds == [DiagnosticKind.UNEXPECTED_RESPONSE] * (3000 - 1024) + [DiagnosticKind.LATE_MESSAGE] * 1024


@each(
    "timeout, latest, progress, deadline",
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
def test_progress_restarts_the_timeout_but_not_beyond_the_total_time(
    timeout: float | None, latest: float | None, progress: list[float], deadline: float | None
) -> None:
    pending = PendingRequests()
    call = pending.add_call("x", None, 0.0, timeout=timeout, latest=latest)
    for now in progress:
        assert pending.record_progress(call.id, now) is call
    assert pending.next_deadline() == deadline
    if deadline is not None:
        assert pending.expire(deadline - 0.5) == []
        assert pending.expire(deadline) == [call]
    assert pending.next_deadline() is None
    assert pending.expire(1e9) == []


def test_calls_expire_in_the_order_of_their_deadlines() -> None:
    pending = PendingRequests()
    calls = [pending.add_call("x", None, 0.0, timeout=timeout) for timeout in (3.0, 1.0, 2.0, 9.0)]
    assert pending.expire(3.0) == [calls[1], calls[2], calls[0]]
    assert pending.resolve(calls[1].id) == (None, DiagnosticKind.LATE_MESSAGE)
    assert pending.next_deadline() == 9.0


def test_much_progress_keeps_few_deadlines() -> None:
    pending = PendingRequests()
    call = pending.add_call("x", None, 0.0, timeout=1.0)
    for now in range(10_000):
        pending.record_progress(call.id, float(now))
    assert len(pending._deadlines) < 100  # pyright: ignore[reportPrivateUsage]
    assert pending.next_deadline() == 10_000.0


def test_closing_returns_all_open_requests_and_empties_the_table() -> None:
    pending = PendingRequests()
    call = pending.add_call("x", None, 0.0, timeout=1.0)
    assert pending.close() == [call]
    assert pending.close() == []
    assert pending.next_deadline() is None
    assert pending.resolve(call.id) == (None, DiagnosticKind.UNEXPECTED_RESPONSE)


class Conversation(RuleBasedStateMachine):
    """Two ends of a connection that keeps the order of messages and delays them by any time.

    A message is its kind and the id of its call. `outcomes` has how each call ended for its caller.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.peers = (PendingRequests(), PendingRequests())
        self.wires: tuple[list[tuple[str, Any]], list[tuple[str, Any]]] = ([], [])
        self.received: tuple[list[int], list[int]] = ([], [])
        self.handled: tuple[set[int], set[int]] = (set(), set())
        self.open: tuple[set[int], set[int]] = (set(), set())
        self.outcomes: tuple[dict[int, str], dict[int, str]] = ({}, {})
        self.responded: tuple[set[int], set[int]] = (set(), set())

    def _end(self, side: int, id: int, how: str) -> None:
        assert id not in self.outcomes[side], "a call ended twice"
        self.open[side].remove(id)
        self.outcomes[side][id] = how

    sides = st.integers(0, 1)
    times = st.none() | st.integers(1, 20).map(float)

    @rule(side=sides, timeout=times, latest=times)
    def call(self, side: int, timeout: float | None, latest: float | None) -> None:
        call = self.peers[side].add_call("x", self.now, self.now, timeout=timeout, latest=latest)
        assert call.id not in self.open[side] | self.outcomes[side].keys()
        self.open[side].add(call.id)
        self.wires[side].append(("call", call.id))

    @rule(side=sides, data=st.data())
    def cancel(self, side: int, data: st.DataObject) -> None:
        known = sorted(self.open[side] | self.outcomes[side].keys())
        if known:
            id = data.draw(st.sampled_from(known))
            was_open = id in self.open[side]
            assert self.peers[side].cancel_call(id) is was_open
            if was_open:
                self._end(side, id, "cancelled")
                self.wires[side].append(("cancel", id))

    @rule(side=sides, data=st.data(), as_string=st.booleans())
    def respond(self, side: int, data: st.DataObject, as_string: bool) -> None:
        if self.received[side]:
            id = data.draw(st.sampled_from(self.received[side]))
            self.received[side].remove(id)
            if id in self.handled[side]:
                self.handled[side].remove(id)
                self.responded[side].add(id)
                self.wires[side].append(("response", str(id) if as_string else id))

    @rule(side=sides, data=st.data())
    def report_progress(self, side: int, data: st.DataObject) -> None:
        if self.received[side]:
            self.wires[side].append(("progress", data.draw(st.sampled_from(self.received[side]))))

    @precondition(lambda self: any(self.wires))
    @rule(side=sides, count=st.integers(1, 5))
    def deliver(self, side: int, count: int) -> None:
        for _ in range(min(count, len(self.wires[side]))):
            kind, id = self.wires[side].pop(0)
            getattr(self, f"_{kind}")(1 - side, id)

    def _call(self, side: int, id: int) -> None:
        self.handled[side].add(id)
        self.received[side].append(id)

    def _cancel(self, side: int, id: int) -> None:
        assert (id in self.handled[side]) is (id not in self.responded[side])
        self.handled[side].discard(id)

    def _response(self, side: int, id: RequestId) -> None:
        call, kind = self.peers[side].resolve(id)
        if call is not None:
            assert kind == (DiagnosticKind.ID_TYPE_MISMATCH if isinstance(id, str) else None)
            self._end(side, call.id, "responded")
        else:
            assert kind is DiagnosticKind.LATE_MESSAGE
            assert self.outcomes[side][int(id)] in ("cancelled", "expired")

    def _progress(self, side: int, id: int) -> None:
        call = self.peers[side].record_progress(id, self.now)
        assert (call is not None) is (id in self.open[side])

    @rule(seconds=st.integers(1, 10))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        for side, peer in enumerate(self.peers):
            for call in peer.expire(self.now):
                assert call.deadline is not None
                assert call.deadline <= self.now
                self._end(side, call.id, "expired")
                self.wires[side].append(("cancel", call.id))

    @invariant()
    def the_tables_hold_exactly_the_open_requests(self) -> None:
        for side, peer in enumerate(self.peers):
            assert peer.calls.keys() == self.open[side]
            deadlines = [call.deadline for call in peer.calls.values() if call.deadline is not None]
            assert peer.next_deadline() == min(deadlines, default=None)

    def teardown(self) -> None:
        """Deliver everything and respond to every request: then nothing is open, and every call has ended once."""
        while any(self.wires) or any(self.received):
            for side in (0, 1):
                self.deliver(side, len(self.wires[side]))
                for id in self.received[side]:
                    if id in self.handled[side]:
                        self.handled[side].remove(id)
                        self.responded[side].add(id)
                        self.wires[side].append(("response", id))
                self.received[side].clear()
        assert self.open == (set(), set())
        for peer in self.peers:
            assert (peer.calls, peer.next_deadline()) == ({}, None)


def converse(examples: int) -> None:
    case: Any = cast(Any, Conversation).TestCase
    case.settings = settings(max_examples=examples, stateful_step_count=40)
    case("runTest").runTest()


def test_both_ends_of_a_conversation_agree_on_how_each_call_ends() -> None:
    converse(40)


@pytest.mark.long
def test_both_ends_of_a_thousand_conversations_agree_on_how_each_call_ends() -> None:
    converse(1000)
