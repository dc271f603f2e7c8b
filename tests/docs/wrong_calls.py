"""The tables of docs/arguments.md on wrong calls: what a model reads of the faults in `tests/app/wrong_calls.toml`.

`python -m tests.docs.wrong_calls` writes them, with the environments of `tests/interop/install.py`. A test compares
them; it skips the columns of others without these environments.
"""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from tests.docs.arguments import ENVIRONMENTS, PAGE, call_others, to_cell, to_code
from tests.docs.markdown import replace_block
from tests.interop.sloppy_arguments import call_all
from tests.paths import ROOT

__all__ = ["PAGE", "Score", "WrongCall", "our_texts", "render", "score", "texts_of", "wrong_calls"]

_CASES: Final = ROOT / "tests" / "app" / "wrong_calls.toml"
_VARIANTS: Final = frozenset((
    "Circle", "Square", "Dog", "Cat", "Person", "circle", "square", "str", "int", "float", "list[int]", "dict[str,int]",
))  # fmt: skip
"""What Pydantic writes into a place to name the variant of a union."""


class WrongCall(NamedTuple):
    """A wrong call: the parameters of the function, the arguments as JSON, and the places of their faults."""

    group: str
    takes: str
    sends: str
    faults: list[str]
    shown: bool = False
    """True if the texts of all libraries are on the page."""

    @property
    def call(self) -> tuple[str, Any]:
        """The parameters, and the parsed arguments."""
        return self.takes, json.loads(self.sends)


class Score(NamedTuple):
    """What the text of an error says."""

    named: int
    """The faults that are named once, with their place."""
    others: int
    """What else is named: other places, and a place once more."""
    words: int


def wrong_calls() -> list[WrongCall]:
    """Read the calls."""
    groups: Any = tomllib.loads(_CASES.read_text(encoding="utf-8"))["group"]
    return [WrongCall(group["title"], **case) for group in groups for case in group["cases"]]


def our_texts() -> list[dict[str, str]]:
    """Return the outcomes of the calls here."""
    return asyncio.run(call_all("typedmcp", [each.call for each in wrong_calls()]))


def texts_of(library: str) -> list[dict[str, str]]:
    """Return the outcomes of the calls in another library."""
    return call_others(library, [each.call for each in wrong_calls()])


def score(call: WrongCall, outcome: Mapping[str, str]) -> Score:
    """Compare the text of an error with the faults of a call. A call that was accepted names none."""
    text = outcome.get("error", "")
    places = Counter(_places_in(text))
    named = [sum(places.pop(place, 0) for place in fault.split("|")) for fault in call.faults]
    others = sum(places.values()) + sum(count - 1 for count in named if count > 1)
    return Score(named.count(1), others, len(text.split()))


def _places_in(text: str) -> list[str]:
    """Return the places that a text names, with dots between their parts."""
    lines = [line for line in text.splitlines() if not line.startswith(" ")]
    if lines and re.search(r"\d+ validation errors? for ", lines[0]):
        return [".".join(part for part in line.split(".") if part not in _VARIANTS) for line in lines[1:]]
    return [_place_in(line) for line in lines]


def _place_in(line: str) -> str:
    """Return the place in a line of ours."""
    member = re.match(r"(?:(?P<place>.+): )?unknown (?:argument|property) '(?P<name>.+?)'", line)
    place = line.partition(":")[0] if member is None else ".".join(filter(None, member.groups()))
    return re.sub(r"\[(\d+)\]", r".\1", place)


def render(columns: Sequence[Sequence[Mapping[str, str]]]) -> str:
    """Render what all libraries make of the calls: a summary, and some texts."""
    calls = wrong_calls()
    scores = [[score(*each) for each in zip(calls, column, strict=True)] for column in columns]
    unions = [index for index, call in enumerate(calls) if call.group == "Unions"]
    faults = sum(len(call.faults) for call in calls)
    rows: list[tuple[str, list[Any]]] = [
        (f"faults named once, with place, of {faults}", [sum(each.named for each in column) for column in scores]),
        ("other places named, or places named again", [sum(each.others for each in column) for column in scores]),
        (f"unions in which the variant that is meant alone is named, of {len(unions)}",
         [sum(not column[index].others and column[index].named > 0 for index in unions) for column in scores]),
        ("words of an error, median", [f"{median(each.words for each in column):g}" for column in scores]),
        ("words of an error, at most", [max(each.words for each in column) for column in scores]),
    ]  # fmt: skip
    head = "`MCPServer` | `fastmcp` | here |"
    lines = [f"\n| | {head}", "|---|---|---|---|"]
    lines += [f"| {name} | {' | '.join(map(str, values))} |" for name, values in rows]
    lines += [f"\n| parameters | arguments | {head}", "|---|---|---|---|---|"]
    for index, call in enumerate(calls):
        if call.shown:
            cells = [
                to_code(call.takes),
                to_code(call.sends),
                *(to_cell(dict(column[index]), 400) for column in columns),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    made = render([*map(texts_of, ENVIRONMENTS), our_texts()])
    PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "wrong_calls", made), encoding="utf-8")
