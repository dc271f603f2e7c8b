"""Frames that nobody would send, in great numbers, on real sessions."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.generated.backends import is_list, is_object
from tests.runtime.helpers import CLIENT, META, WIRES, call, frame, is_answer, listing, opened, run

_METHODS = (
    "tools/call", "tools/list", "ping", "initialize", "prompts/get", "completion/complete", "server/discover",
    "logging/setLevel", "resources/subscribe", "x/y", "notifications/cancelled", "notifications/progress",
    "notifications/initialized", "notifications/roots/list_changed", "",
)  # fmt: skip
_KEYS = (
    "jsonrpc", "id", "method", "params", "_meta", "name", "arguments", "requestId", "progressToken", "result", "error",
    "inputResponses", "requestState", "capabilities", "Method", "\u2028", *META,
)  # fmt: skip
_SPLICES = (
    b"\xff", b"\\ud800", b"\x00", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"null", b"1e999", b"-", b"\r",
    b"[" * 1200, b"true", b'"id":1,', b'"method":"ping",', b"\xe2\x80\xa8", b"9" * 30,
)  # fmt: skip

Random = random.Random


def some_value(rng: Random, depth: int = 0) -> Any:
    """Some JSON."""
    kind = rng.randrange(9 if depth < 3 else 7)
    if kind < 7:
        return (None, True, rng.randrange(-3, 9), rng.random(), rng.choice(_METHODS), "é\u2028", 10**25)[kind]
    if kind == 7:
        return [some_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(_KEYS): some_value(rng, depth + 1) for _ in range(rng.randrange(4))}


def some_message(rng: Random, id: Any) -> Any:
    """Something like a message, of which some members are missing or wrong."""
    params = some_value(rng, 2) if rng.random() < 0.2 else {rng.choice(_KEYS): some_value(rng, 1) for _ in range(3)}
    if isinstance(params, dict) and rng.random() < 0.6:
        params["_meta"] = META if rng.random() < 0.7 else some_value(rng, 1)
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": rng.choice(_METHODS), "params": params}
    if rng.random() < 0.3:
        message.pop(rng.choice(list(message)))
    if rng.random() < 0.3:
        message[rng.choice(_KEYS)] = some_value(rng, 1)
    return message


def mutated(rng: Random, line: bytes) -> bytes:
    """A line with some bytes changed, cut out, doubled or put in."""
    data = bytearray(line)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randrange(12))
        change = rng.randrange(4)
        if change == 0:
            data[at:end] = b""
        elif change == 1:
            data[at:at] = rng.choice(_SPLICES)
        elif change == 2:
            data[at:at] = data[at:end]
        elif at < len(data):
            data[at] = rng.randrange(256)
    return bytes(data).replace(b"\n", b" ")


def good_lines(wire: str, id: Any) -> list[bytes]:
    """Frames as they should be, to be spoilt."""
    return [
        listing(wire, id),
        call(wire, id, name="echo", arguments={"a": [1, "é", None]}),
        call(wire, id, name="yield"),
        call(wire, id, name="fail"),
        call(wire, id, "ping"),
        frame(id=id, method="initialize", params={**CLIENT, "protocolVersion": "2025-06-18"}),
        frame(method="notifications/cancelled", params={"requestId": 1}),
        frame(id=id, result={"a": 1}),
        b"[" + call(wire, id, "ping") + b"," + call(wire, id, "x/y") + b"]",
    ]


def some_line(rng: Random, wire: str, id: Any) -> bytes:
    """One line, by one of the ways."""
    way = rng.random()
    if way < 0.5:
        return mutated(rng, rng.choice(good_lines(wire, id)))
    if way < 0.9:
        return json.dumps(some_message(rng, id), ensure_ascii=rng.random() < 0.5).encode()
    return json.dumps(some_value(rng)).encode()


def owed(line: bytes) -> Any:
    """The id that a line must be answered with, where that is plain: None where it may be answered without one."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not is_object(value) or not isinstance(value.get("method"), str):
        return None
    id: Any = value.get("id")
    usable = type(id) is int or (isinstance(id, str) and not re.search("[\ud800-\udfff]", id))
    return id if usable else None


def ids_of(replies: list[Any]) -> Counter[Any]:
    """How often each id is answered, batches included."""
    single: list[Any] = [one for reply in replies for one in (reply if is_list(reply) else [reply])]
    assert all(("result" in one) is not ("error" in one) for one in single)
    return Counter((type(one["id"]), one["id"]) for one in single if "id" in one)


async def exchange(wire: str, lines: list[bytes]) -> None:
    """Send lines, check what they are answered with, and that a good request is still served."""
    async with opened(wire) as client:
        for line in lines:
            client.send(line)
        found = await client.replies()
        client.send(listing(wire, "good"))
        found += await _until_good(client)
        found += await client.close()
        assert (client.session.peer.in_flight, client.session.peer.pending) == ({}, {})
    answers = ids_of(found)
    sent: Counter[Any] = Counter((type(id), id) for line in lines if (id := owed(line)) is not None)
    for key, times in answers.items():
        named = sum(line.count(json.dumps(key[1]).encode()) for line in lines)
        assert times <= max(1, named), key
    for key, times in sent.items():
        if times == 1:
            assert answers[key], (key, [line for line in lines if owed(line) == key[1]])


async def _until_good(client: Any) -> list[Any]:
    """What comes before the answer to the good request."""
    found: list[Any] = []
    while not is_answer(reply := await client.reply(), "good"):
        found.append(reply)
    assert "result" in reply
    return found


def fuzz(wire: str, seed: int, count: int) -> int:
    """Send so many lines, a few hundred to a connection; how many were sent."""
    rng, sent = Random(seed), 0
    while sent < count:
        lines = [some_line(rng, wire, 1000 + number if rng.random() < 0.8 else f"i{number}") for number in range(500)]
        run(exchange(wire, lines))
        sent += len(lines)
    return sent


@pytest.mark.parametrize("wire", WIRES)
def test_fuzzed_frames_are_answered_once_and_break_nothing(wire: str) -> None:
    assert fuzz(wire, 1, 1500) >= 1500


@pytest.mark.long
@pytest.mark.parametrize("wire", WIRES)
def test_two_hundred_thousand_fuzzed_frames_are_answered_once_and_break_nothing(wire: str) -> None:
    assert fuzz(wire, 2, 200_000 // len(WIRES) + 1) * len(WIRES) >= 200_000


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
_MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | _VALUES, "method": st.sampled_from(_METHODS) | _VALUES},
    optional={"id": st.integers() | st.text() | _VALUES, "params": _VALUES, "result": _VALUES, "error": _VALUES},
)


@pytest.mark.parametrize("wire", WIRES)
@settings(
    max_examples=20,
    phases=[Phase.generate],  # to make a case smaller takes minutes
    deadline=None,
    derandomize=True,
    suppress_health_check=[*cast(Any, HealthCheck)],
)
@given(values=st.lists(_MESSAGES | _VALUES, min_size=10, max_size=40))
def test_any_json_is_answered_once_and_breaks_nothing(wire: str, values: list[Any]) -> None:
    run(exchange(wire, [json.dumps(value).encode() for value in values]))
