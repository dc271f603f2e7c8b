"""Masked texts are found in later messages, whatever their number, in linear time."""

from __future__ import annotations

import random
import time

from tests.cases import each
from tests.growth import growth
from typedmcp_cli.recording.masks import MASK, SecretMasker
from typedmcp_cli.recording.repeated import MIN_LENGTH, RepeatedTexts


def replaced_one_by_one(texts: list[str], text: str) -> str:
    """Replace the longest text at each place, found by trying each."""
    parts: list[str] = []
    place = 0
    by_length = sorted(texts, key=len, reverse=True)
    while place < len(text):
        found = next((other for other in by_length if text.startswith(other, place)), None)
        parts.append("*" if found else text[place])
        place += len(found) if found else 1
    return "".join(parts)


@each("seed", range(6))
@each("count", [40, 300])
def test_many_texts_are_replaced_like_one_by_one(seed: int, count: int) -> None:
    source = random.Random(seed)
    texts = {"".join(source.choices("abc", k=source.randrange(MIN_LENGTH, 14))) for _ in range(count)}
    texts |= {"x" * 1500 + name for name in "pq"}
    repeated = RepeatedTexts()
    # Of texts that begin with each other, only a few are looked for, so that each place takes bounded time.
    kept = [text for text in texts if sum(text.startswith(other) for other in texts) <= 4]
    for text in kept:
        repeated.add(text)
    filler = ["".join(source.choices("abcd ", k=source.randrange(12))) for _ in range(400)]
    text = "".join(part for pair in zip(filler, source.choices(kept, k=400), strict=True) for part in pair)
    assert repeated.replace(text, "*") == replaced_one_by_one(kept, text)


@each("others", [0, 40])
def test_a_long_text_is_replaced_as_a_whole_and_where_it_is_cut_off(others: int) -> None:
    repeated = RepeatedTexts()
    for number in range(others):
        repeated.add(f"{number:08}")
    for end in ("end", "other end"):
        repeated.add("k" * 5000 + end)
    assert repeated.replace("a " + "k" * 5000 + "end b", MASK) == f"a {MASK} b"
    assert repeated.replace("a " + "k" * 2048 + " b " + "k" * 1000, MASK) == f"a {MASK} b " + "k" * 1000


def test_long_texts_that_are_almost_equal_are_looked_for_in_linear_time() -> None:
    repeated = RepeatedTexts()
    for number in range(40):
        repeated.add(f"{number:08}")
    for end in "abcd":
        repeated.add("k" * 200_000 + end + "k" * 10_000)
    assert growth(lambda text: repeated.replace(text, MASK), "k", characters=20_000, times=80) < 4


def test_the_time_of_a_large_message_hardly_depends_on_the_number_of_masked_values() -> None:
    def seconds(count: int) -> float:
        masker = SecretMasker()
        masker.mask({"password": [f"{number:x}-correct-horse-{number}" for number in range(count)]})
        start = time.process_time()
        masker.mask({"text": "a tool may return anything, such as correct horses.\n" * 20_000})
        return time.process_time() - start

    assert seconds(1000) < 10 * seconds(40)


def test_no_more_than_the_greatest_number_of_texts_is_kept() -> None:
    repeated = RepeatedTexts()
    for number in range(1500):
        repeated.add(f"password-{number}")
    assert len(repeated) == 1000


def test_no_more_than_the_greatest_number_of_characters_is_kept() -> None:
    repeated = RepeatedTexts()
    for number in range(3):
        repeated.add(f"{number}" * 400_000)
    assert len(repeated) == 2
