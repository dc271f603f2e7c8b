"""The table of frames on `docs/wire.md`, made from `tests/vectors/frames.toml`.

`python -m tests.docs.frames` writes it; a test compares it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from mcpspec.support.objects import is_array
from tests.docs.markdown import replace_block
from tests.paths import ROOT

__all__ = ["PAGE", "VECTORS", "sections"]

PAGE = ROOT / "docs" / "wire.md"
VECTORS = ROOT / "tests" / "vectors" / "frames.toml"

_HEADING = re.compile(r"# (?P<title>\S[^\n]*)\n\n(?=\[\[frame\]\])")
_STATES = {
    "fresh": "before `initialize`",
    "between": "before `initialized`",
    "legacy": "in a session",
    "modern": "on 2026-07-28",
}
_ANYWHERE = ["fresh", "legacy", "modern"]


def sections() -> str:
    """Render all frames as Markdown, with one table for each heading of the file."""
    _, *parts = _HEADING.split(VECTORS.read_text(encoding="utf-8"))
    titles, texts = parts[::2], parts[1::2]
    return "".join(
        f"\n### {title}\n\n{_table(tomllib.loads(text)['frame'])}" for title, text in zip(titles, texts, strict=True)
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


if __name__ == "__main__":
    PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "frames", sections()), encoding="utf-8")
