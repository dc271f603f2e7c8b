"""The frames of `tests/vectors/frames.toml`, with their responses and diagnostics, on real connections."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, TypeAlias

import pytest

from tests.cases import each
from tests.generated.backends import is_list
from tests.helpers import CLIENT, LEGACY, META, MODERN_REVISION, Line, frame, listing, opened, run
from tests.paths import VECTORS
from typedmcp import Limits
from typedmcp.revisions.features import SUPPORTED

Vector: TypeAlias = dict[str, Any]

_TEXT = (VECTORS / "frames.toml").read_text(encoding="utf-8").replace('["<revisions>"]', json.dumps(SUPPORTED))
FRAMES: list[Vector] = tomllib.loads(_TEXT)["frame"]

_STATES = ("fresh", "legacy", "modern")
_REVISIONS = {"fresh": ("fresh",), "between": LEGACY, "legacy": LEGACY, "modern": (MODERN_REVISION,)}
_KEYS = {"name", "on", "only", "except", "before", "text", "hex", "end", "strict", "limit", "reply", "report"}


def _cases() -> list[Any]:
    """Return each vector with each state and revision that it applies to."""
    return [
        pytest.param(vector, state, revision, id=f"{vector['name']}-{state}-{revision}")
        for vector in FRAMES
        for state in vector.get("on", _STATES)
        for revision in _REVISIONS[state]
        if revision not in LEGACY or revision in vector.get("only", LEGACY)
        if revision not in vector.get("except", ())
    ]


def _bytes(text: str, state: str) -> bytes:
    meta = META if state in ("fresh", "modern") else {}
    parts = {
        "<meta>": '"_meta":' + json.dumps(meta),
        "<deep>": "[" * 20_000 + "]" * 20_000,
        "<long>": "a" * 8192,
        "<digits>": "1" * 5000,
    }
    return re.sub("<[a-z]+>", lambda found: parts[found[0]], text).encode()


def _line(vector: Vector, state: str) -> bytes:
    line = bytes.fromhex(vector["hex"]) if "hex" in vector else _bytes(vector["text"], state)
    return line + str(vector.get("end", "\n")).encode()


async def _prepare(line: Line, vector: Vector, state: str, revision: str) -> None:
    """Bring a connection into the state that a vector needs."""
    if state == "between":
        params = {**CLIENT, "protocolVersion": revision}
        assert "result" in await line.ask(frame(id="shake", method="initialize", params=params))
    if state == "modern":
        assert "result" in await line.ask(listing(MODERN_REVISION, "first"))
    for before in vector.get("before", ()):
        line.send(_bytes(before, state))
        await line.handler.entered.wait()


def _matches(reply: Any, expected: Any) -> None:
    """Fail if a response differs from that of the vector."""
    if is_list(expected):
        assert is_list(reply)
        for one, wanted in zip(_by_order(reply, expected), expected, strict=True):
            _matches(one, wanted)
        return
    huge = re.fullmatch(r"the integer (-?\d+)", str(expected.get("id")))
    id = int(huge[1]) if huge else expected.get("id")
    assert reply.get("id") == id
    assert type(reply.get("id")) is type(id)
    assert ("id" in reply) is ("id" in expected)
    assert reply["jsonrpc"] == "2.0"
    assert ("result" in reply) is expected.get("result", False)
    assert ("error" in reply) is not expected.get("result", False)
    if "error" in reply:
        assert reply["error"]["code"] == expected["code"]
        assert expected["says"] in reply["error"]["message"]
        assert expected.get("data", {}).items() <= reply["error"].get("data", {}).items()


def _by_order(replies: list[Any], expected: list[Any]) -> list[Any]:
    """Sort the responses of a batch, which have no fixed order, like the expected ones."""
    ids = [wanted.get("id") for wanted in expected]
    return sorted(replies, key=lambda reply: ids.index(reply.get("id")))


async def _outcome(vector: Vector, state: str, revision: str, size: int | None) -> tuple[list[Any], list[str]]:
    """Return the responses and diagnostics for a vector's frame, sent whole or in pieces of `size` bytes."""
    options: dict[str, Any] = {"strict": vector.get("strict", False)}
    if "limit" in vector:
        options["limits"] = Limits(message_bytes=vector["limit"])
    async with opened(revision if state == "legacy" else "fresh", **options) as line:
        await _prepare(line, vector, state, revision)
        line.reports.clear()
        await line.send_raw(_line(vector, state), size)
        if vector.get("end") == "":
            return await line.close(), line.kinds()
        wanted = len([vector["reply"]]) if "reply" in vector else 0
        if "limit" in vector:
            return [await line.reply() for _ in range(wanted)], line.kinds()
        found = [await line.reply() for _ in range(wanted)]
        found += await line.replies()
        kinds = line.kinds()
        line.handler.go.set()
        return found, kinds


@each("vector, state, revision", _cases())
def test_a_frame_has_the_responses_and_diagnostics_of_its_vector(vector: Vector, state: str, revision: str) -> None:
    replies, kinds = run(_outcome(vector, state, revision, None))
    expected = [vector["reply"]] if "reply" in vector else []
    assert len(replies) == len(expected), replies
    for reply, wanted in zip(replies, expected, strict=True):
        _matches(reply, wanted)
    assert kinds == vector.get("report", [])
