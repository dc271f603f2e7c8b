"""The page of frames, from `tests/vectors/frames.toml`: made with the others of its folder when the site is built."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from mcpspec.support.objects import is_array
from tests.paths import ROOT

__all__ = ["VECTORS", "render"]

VECTORS = ROOT / "tests" / "vectors" / "frames.toml"

_HEADING = re.compile(r"# (?P<title>\S[^\n]*)\n\n(?=\[\[frame\]\])")
_HEAD = """# Frames

What becomes of a frame, valid or not, which the tests send on every revision that a row is about. *State* is when the
frame arrives. "any" means: as the first frame, in a session of every revision with a handshake, and after a request of
2026-07-28. The texts between ellipses are part of the error's message.
"""
_STATES = {
    "fresh": "before `initialize`",
    "between": "before `initialized`",
    "legacy": "in a session",
    "modern": "on 2026-07-28",
}
_ANYWHERE = ["fresh", "legacy", "modern"]


def render() -> str:
    """Render all frames as a page, with one table for each heading of the file."""
    _, *parts = _HEADING.split(VECTORS.read_text(encoding="utf-8"))
    titles, texts = parts[::2], parts[1::2]
    return _HEAD + "".join(
        f"\n## {title}\n\n{_table(tomllib.loads(text)['frame'])}" for title, text in zip(titles, texts, strict=True)
    )


def _table(frames: list[dict[str, Any]]) -> str:
    rows = "".join(f"| {frame['name']} | {_where(frame)} | {_outcome(frame)} |\n" for frame in frames)
    return f"| frame | state | outcome |\n|---|---|---|\n{rows}"


def _where(frame: dict[str, Any]) -> str:
    states = frame.get("on", _ANYWHERE)
    where = "any" if len(states) > 2 else ", ".join(_STATES[state] for state in states)
    if "only" in frame:
        return f"{where}, only {', '.join(frame['only'])}"
    return f"{where}, except {', '.join(frame['except'])}" if "except" in frame else where


def _outcome(frame: dict[str, Any]) -> str:
    return "; ".join(_outcomes(frame)) or "nothing"


def _outcomes(frame: dict[str, Any]) -> Iterator[str]:
    reply: Any = frame.get("reply")
    report: list[str] = frame.get("report", [])
    if is_array(reply):
        yield f"a batch of responses: {'; '.join(map(_response, reply))}"
    elif reply is not None:
        yield _response(reply)
    elif report:
        yield "no response"
    if report:
        yield f"diagnostic: {', '.join(report)}"


def _response(reply: dict[str, Any]) -> str:
    id = f"id `{_id(reply['id'])}`" if "id" in reply else "no id"
    return f"result, {id}" if "result" in reply else f"error {reply['code']}, {id}: … {reply['says']} …"


def _id(id: str | int) -> str:
    return str(id).removeprefix("the integer ") if "the integer " in str(id) else json.dumps(id)
