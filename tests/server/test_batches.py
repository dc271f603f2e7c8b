"""The responses to a batch are sent once, as one, when none is missing."""

from __future__ import annotations

import msgspec

from typedmcp.protocol.budgets import ByteBudget
from typedmcp.server.batches import BatchChannel
from typedmcp.server.channel import Channel
from typedmcp.server.principal import Principal

ADA = Principal("ada")


class Sent(Channel):
    """The channel of a batch, which collects what is sent."""

    principal = ADA

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.events: list[str] = []
        self.budget = ByteBudget("call_bytes", 400, 25, lambda _name, _text: None)
        self.response = BatchChannel(self, self.budget)

    @property
    def client(self) -> str:
        return "ada"

    @property
    def request_headers(self) -> dict[str, str]:
        return {"c": "d"}

    def expect(self) -> None:
        self.events.append("expect")

    def abandon(self) -> None:
        self.events.append("abandon")

    def send_response(self, line: bytes, code: int | None = None) -> None:
        assert code is None
        self.batches.append(line)


def test_a_batch_is_sent_when_its_last_response_comes() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.expect()
    sent.response.close()
    sent.response.send_response(b"1", None)
    assert sent.batches == []
    sent.response.send_response(b"2", -32603)
    assert sent.batches == [b"[1,2]"]


def test_a_batch_is_not_sent_before_all_its_messages_are_dispatched() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.send_response(b"1", None)
    assert sent.batches == []
    sent.response.refuse(b"2", -32600)
    sent.response.close()
    assert sent.batches == [b"[1,2]"]


def test_an_abandoned_response_is_not_waited_for() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.expect()
    sent.response.close()
    sent.response.abandon()
    sent.response.send_response(b"1", None)
    assert sent.batches == [b"[1]"]


def result(id: int | str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": {"text": "x" * 20}})


def test_collected_responses_count_until_they_are_sent_and_results_without_room_become_errors() -> None:
    sent = Sent()
    for _ in range(4):
        sent.response.expect()
    for id in (1, 2, "c"):
        sent.response.send_response(result(id), None)
    assert sent.budget.used >= len(result(1)) + len(result(2))
    sent.response.send_response(b'{"id":4,"error":{"code":-1}}', -1)
    sent.response.close()
    answers = msgspec.json.decode(sent.batches[0])
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
        (1, None), (2, None), ("c", -32603), (4, -1),
    ]  # fmt: skip
    assert sent.budget.used == 0


def test_nothing_is_sent_of_a_batch_that_is_discarded() -> None:
    sent = Sent()
    sent.response.expect()
    sent.response.expect()
    sent.response.close()
    sent.response.send_response(result(1), None)
    sent.response.discard()
    assert sent.budget.used == 0
    sent.response.send_response(result(2), None)
    assert (sent.batches, sent.budget.used) == ([], 0)


def test_a_batch_without_responses_is_abandoned() -> None:
    sent = Sent()
    sent.response.close()
    assert sent.batches == []
    assert sent.events == ["expect", "abandon"]
    assert (sent.response.principal, sent.response.request_headers, sent.response.client) == (ADA, {"c": "d"}, "ada")
