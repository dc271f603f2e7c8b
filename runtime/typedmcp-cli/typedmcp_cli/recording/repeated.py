"""Search for many masked texts in a long one, in a time that is linear in the long one."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Final

__all__ = ["MIN_LENGTH", "RepeatedTexts"]

MIN_LENGTH: Final = 8
"""Characters of the shortest text that is looked for. Shorter ones would be found by chance."""
_MAX_TEXTS: Final = 1000
"""Texts that are looked for. Further ones are not."""
_MAX_CHARACTERS: Final = 1_000_000
"""Characters of all texts that are looked for. A text beyond them is not."""
_FEW: Final = 32
"""Texts up to which it is faster to search for each in turn."""
_GRAM: Final = 4
_STRIDE: Final = MIN_LENGTH - _GRAM + 1
"""A text of `MIN_LENGTH` characters, wherever it is, has one of its grams at a multiple of this."""
_HEAD: Final = 1024
"""Characters by which a text is found. The rest is compared in pieces of this length, only where these are equal."""
_MAX_NESTED: Final = 4
"""Texts that begin with each other, at most: each of them is compared at one place."""


class RepeatedTexts:
    """A set of texts, and their replacement wherever they appear in another text.

    Every fifth place of the other text is looked up in a table of short parts, which most places do not pass. The
    others are looked up in the sorted texts. So the time depends on the number of texts by its logarithm only. Of a
    text of more than 1024 characters, what is equal is replaced, also if it is cut off: otherwise the same characters
    would be compared again from each place.
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._characters = 0
        self._grams: dict[str, set[int]] = {}
        """The places in the first `MIN_LENGTH` characters of the texts at which a gram is."""
        self._begins: set[str] = set()
        """The first `MIN_LENGTH` characters of all texts."""
        self._heads: list[str] = []
        """The distinct first `_HEAD` characters of all texts, sorted."""
        self._shorter: dict[str, list[str]] = {}
        """For each head the heads that it begins with and itself, the longest first."""
        self._tails: dict[str, list[str]] = {}
        """The longer texts of a head, the longest first."""

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str) -> None:
        """Look for a text from now on, unless it is too short or there are too many."""
        if len(text) < MIN_LENGTH or text in self._texts or len(self._texts) >= _MAX_TEXTS:
            return
        if self._characters + len(text) > _MAX_CHARACTERS:
            return
        self._texts.add(text)
        self._characters += len(text)
        begin, head = text[:MIN_LENGTH], text[:_HEAD]
        self._begins.add(begin)
        for place in range(_STRIDE):
            self._grams.setdefault(begin[place : place + _GRAM], set()).add(place)
        if head not in self._shorter:
            insort(self._heads, head)
            nested = [other for other in self._heads if head.startswith(other)]
            self._shorter[head] = nested[::-1][:_MAX_NESTED]
            for other in self._heads:
                if other != head and other.startswith(head):
                    self._shorter[other] = sorted([*self._shorter[other], head], key=len, reverse=True)[:_MAX_NESTED]
        if len(text) > _HEAD:
            tails = sorted([*self._tails.get(head, ()), text], key=len, reverse=True)
            self._tails[head] = tails[:_MAX_NESTED]

    def replace(self, text: str, replacement: str) -> str:
        """Return a text with a replacement for each of the texts that appear in it, the longest at each place."""
        if len(self._texts) <= _FEW and not self._tails:
            for found in sorted(self._texts, key=len, reverse=True):
                text = text.replace(found, replacement)
            return text
        grams, last = self._grams, len(text) - _GRAM + 1
        hits = [place for place in range(0, last, _STRIDE) if text[place : place + _GRAM] in grams]
        if not hits:
            return text
        parts: list[str] = []
        end = 0
        for hit in hits:
            for offset in sorted(grams[text[hit : hit + _GRAM]], reverse=True):
                start = hit - offset
                if start >= end and (length := self._length_at(text, start)):
                    parts += (text[end:start], replacement)
                    end = start + length
        return "".join([*parts, text[end:]])

    def _length_at(self, text: str, start: int) -> int:
        """Return the length of the longest of the texts that begins at a place of another, or 0."""
        if text[start : start + MIN_LENGTH] not in self._begins:
            return 0
        part = text[start : start + _HEAD]
        place = bisect_right(self._heads, part) - 1
        if place < 0:
            return 0
        for head in self._shorter[self._heads[place]]:
            if part.startswith(head):
                return max([len(head), *(_common_length(tail, text, start) for tail in self._tails.get(head, ()))])
        return 0


def _common_length(tail: str, text: str, start: int) -> int:
    """Return the length of the pieces of a longer text that are also at a place of another text."""
    length = _HEAD
    while length < len(tail) and text.startswith(tail[length : length + _HEAD], start + length):
        length += _HEAD
    return min(length, len(tail))
