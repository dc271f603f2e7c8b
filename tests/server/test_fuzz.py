"""Great numbers of random frames, most of them wrong, on real connections."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.cases import each
from tests.generated.backends import is_list, is_object
from tests.helpers import CLIENT, LEGACY, META, STATES, call, frame, is_answer, listing, opened, run
from tests.pairs import examples
from tests.strategies import fuzzed

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


def random_value(rng: Random, depth: int = 0) -> Any:
    """Return random JSON."""
    kind = rng.randrange(9 if depth < 3 else 7)
    if kind < 7:
        return (None, True, rng.randrange(-3, 9), rng.random(), rng.choice(_METHODS), "é\u2028", 10**25)[kind]
    if kind == 7:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(_KEYS): random_value(rng, depth + 1) for _ in range(rng.randrange(4))}


def random_message(rng: Random, id: Any) -> Any:
    """Return a random message, of which some members are missing or wrong."""
    params = random_value(rng, 2) if rng.random() < 0.2 else {rng.choice(_KEYS): random_value(rng, 1) for _ in range(3)}
    if isinstance(params, dict) and rng.random() < 0.6:
        params["_meta"] = META if rng.random() < 0.7 else random_value(rng, 1)
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": rng.choice(_METHODS), "params": params}
    if rng.random() < 0.3:
        message.pop(rng.choice(list(message)))
    if rng.random() < 0.3:
        message[rng.choice(_KEYS)] = random_value(rng, 1)
    return message


def mutate(rng: Random, line: bytes) -> bytes:
    """Return a line with some bytes changed, removed, doubled or inserted."""
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


def correct_lines(state: str, id: Any) -> list[bytes]:
    """Return correct frames, to be mutated."""
    return [
        listing(state, id),
        call(state, id, name="echo", arguments={"a": [1, "é", None]}),
        call(state, id, name="yield"),
        call(state, id, name="fail"),
        call(state, id, "ping"),
        frame(id=id, method="initialize", params={**CLIENT, "protocolVersion": "2025-06-18"}),
        frame(method="notifications/cancelled", params={"requestId": 1}),
        frame(id=id, result={"a": 1}),
        b"[" + call(state, id, "ping") + b"," + call(state, id, "x/y") + b"]",
    ]


def random_line(rng: Random, state: str, id: Any) -> bytes:
    """Return one random line, made in one of several ways."""
    way = rng.random()
    if way < 0.5:
        return mutate(rng, rng.choice(correct_lines(state, id)))
    if way < 0.9:
        return json.dumps(random_message(rng, id), ensure_ascii=rng.random() < 0.5).encode()
    return json.dumps(random_value(rng)).encode()


def required_id(line: bytes) -> Any:
    """Return the id that the response to a line must have; None if it needs none."""
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
    """Count the responses for each id, also within batches."""
    single: list[Any] = [one for reply in replies for one in (reply if is_list(reply) else [reply])]
    assert all(("result" in one) is not ("error" in one) for one in single)
    return Counter((type(one["id"]), one["id"]) for one in single if "id" in one)


def without_restarts(state: str, lines: list[bytes]) -> list[bytes]:
    """Leave out what begins a second session: the requests of the first one get no response then."""
    kept: list[bytes] = []
    may_begin = state not in LEGACY
    for line in lines:
        begins = b"initialize" in line and b"initialized" not in line
        if not begins or may_begin:
            kept.append(line)
        may_begin = may_begin and not begins
    return kept


async def exchange(state: str, lines: list[bytes]) -> None:
    """Send lines, check the responses, and check that a correct request is still served."""
    lines = without_restarts(state, lines)
    async with opened(state) as client:
        for line in lines:
            client.send(line)
        found = await client.replies()
        client.send(listing(state, "good"))
        found += await _before_correct(client)
        found += await client.close()
        assert (client.session.in_flight, client.session.questions.pending.calls) == ({}, {})
    answers = ids_of(found)
    sent: Counter[Any] = Counter((type(id), id) for line in lines if (id := required_id(line)) is not None)
    for key, times in answers.items():
        named = sum(line.count(json.dumps(key[1]).encode()) for line in lines)
        assert times <= max(1, named), key
    for key, times in sent.items():
        if times == 1:
            assert answers[key], (key, [line for line in lines if required_id(line) == key[1]])


async def _before_correct(client: Any) -> list[Any]:
    """Return the messages before the response to the correct request."""
    found: list[Any] = []
    while not is_answer(reply := await client.reply(), "good"):
        found.append(reply)
    assert "result" in reply
    return found


def fuzz(state: str, seed: int, count: int) -> int:
    """Send `count` lines, a few hundred on each connection. Return the number of lines sent."""
    rng, sent = Random(seed), 0
    while sent < count:
        ids = [1000 + number if rng.random() < 0.8 else f"i{number}" for number in range(500)]
        lines = [random_line(rng, state, id) for id in ids]
        run(exchange(state, lines))
        sent += len(lines)
    return sent


@each("state", STATES)
def test_fuzzed_frames_get_one_response_and_break_nothing(state: str) -> None:
    assert fuzz(state, 1, 500) >= 500


@pytest.mark.long
@pytest.mark.parametrize("state", STATES)
def test_many_fuzzed_frames_get_one_response_and_break_nothing(state: str) -> None:
    number = examples(200_000)
    assert fuzz(state, 2, number // len(STATES) + 1) * len(STATES) >= number


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
_MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | _VALUES, "method": st.sampled_from(_METHODS) | _VALUES},
    optional={"id": st.integers() | st.text() | _VALUES, "params": _VALUES, "result": _VALUES, "error": _VALUES},
)


@fuzzed(st.lists(_MESSAGES | _VALUES, min_size=10, max_size=40), 20)
def test_any_json_gets_one_response_and_breaks_nothing(value: list[Any]) -> None:
    for state in STATES:
        run(exchange(state, [json.dumps(message).encode() for message in value]))
