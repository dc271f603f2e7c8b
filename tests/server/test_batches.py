"""The responses to a batch are sent once, as one, when none is missing."""

from __future__ import annotations

from typing import Any

from typedmcp.server.batches import BatchResponse
from typedmcp.server.context import ResponseSink


class Sent:
    """Collects the batches that are sent."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.response = BatchResponse(self._send, None, "ada")

    def _send(self, parent: ResponseSink | None, line: bytes) -> None:
        assert parent is None
        self.batches.append(line)


def test_a_batch_is_sent_when_its_last_response_comes() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.expect()
    sent.response.close()
    sent.response.send_response(b"1\n", None)
    assert sent.batches == []
    sent.response.send_response(b"2\n", -32603)
    assert sent.batches == [b"[1,2]\n"]


def test_a_batch_is_not_sent_before_all_its_messages_are_dispatched() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.send_response(b"1\n", None)
    assert sent.batches == []
    sent.response.reject(b"2\n", -32600)
    sent.response.close()
    assert sent.batches == [b"[1,2]\n"]


def test_an_abandoned_response_is_not_waited_for() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.expect()
    sent.response.close()
    sent.response.abandon()
    sent.response.send_response(b"1\n", None)
    assert sent.batches == [b"[1]\n"]


def test_a_batch_without_responses_is_not_sent() -> None:
    sent = Sent()
    sent.response.close()
    assert sent.batches == []
    assert sent.response.principal == "ada"
    assert sent.response.request_headers == {}


def test_a_batch_without_responses_is_abandoned_by_its_sink() -> None:
    calls: list[str] = []

    class Parent:
        principal = "grace"

        def __init__(self) -> None:
            self.request_headers = {"a": "b"}

        def expect(self) -> None:
            calls.append("expect")

        def abandon(self) -> None:
            calls.append("abandon")

    parent: Any = Parent()
    response = BatchResponse(lambda _parent, _line: None, parent, "ada")
    response.close()
    assert calls == ["expect", "abandon"]
    assert (response.principal, response.request_headers) == ("grace", {"a": "b"})
