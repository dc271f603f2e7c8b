"""Results are kept as long as the server allows, no longer than until it says that they have changed, and in bounds."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from typedmcp.client.cache import CACHEABLE, LONGEST, Key, ResponseCache, key
from typedmcp.dialect import methods, structs

DAY = 24 * 60 * 60


def key_of(method: str, params: Any = None) -> Key:
    found = key(method, {} if params is None else params)
    assert found is not None
    return found


TOOLS = key_of("tools/list")

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


# What is asked


def test_what_can_be_kept_is_what_the_dialect_has_a_time_to_live_for() -> None:
    assert {m for m, record in methods.CLIENT_REQUESTS.items() if "ttl_ms" in str(fields(record.result))} == CACHEABLE


def fields(result: Any) -> list[str]:
    from mcpspec._support.objects import leaves

    return [name for kind in leaves(result) for name in kind.__struct_fields__]


SAME: list[tuple[Any, Any]] = [
    ({"uri": "u"}, {"uri": "u", "_meta": {"progressToken": 3}}),
    ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
    ({}, {"_meta": {}}),
    (
        structs.from_builtins({"uri": "u", "_meta": META}, structs.ReadResourceRequestParams),
        {"uri": "u"},
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_requests_that_ask_the_same_have_the_same_key(one: Any, other: Any) -> None:
    assert key("resources/read", one) == key("resources/read", other)


def test_no_parameters_are_empty_ones() -> None:
    assert key("tools/list") == key("tools/list", {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (key_of("tools/list"), key_of("prompts/list")),
        (key_of("tools/list"), key_of("tools/list", {"cursor": ""})),
        (key_of("tools/list", {"cursor": "1"}), key_of("tools/list", {"cursor": "2"})),
        (key_of("resources/read", {"uri": "a"}), key_of("resources/read", {"uri": "A"})),
    ],
)
def test_other_requests_have_other_keys(one: Key, other: Key) -> None:
    assert one != other


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "a"}),
        ("prompts/get", {"name": "a"}),
        ("completion/complete", {}),
        ("subscriptions/listen", {}),
        ("resources/read", {"uri": "u", "inputResponses": {}}),
        ("resources/read", {"uri": "u", "requestState": "s"}),
        ("resources/read", []),
    ],
)
def test_what_must_not_be_kept_has_no_key(method: str, params: Any) -> None:
    assert key(method, params) is None


# How long


@pytest.mark.parametrize(("ttl_ms", "age", "fresh"), [
    (0, 0, False),
    (-1, 0, False),
    (-math.inf, 0, False),
    (math.nan, 0, False),
    (1, 0, True),
    (1, 0.0009, True),
    (1, 0.001, False),
    (300_000, 299.999, True),
    (300_000, 300, False),
    (2**63, DAY - 1, True),
    (2**63, DAY, False),
    (10**400, DAY, False),
    (math.inf, DAY - 1, True),
    (math.inf, DAY, False),
])  # fmt: skip
def test_a_result_is_fresh_for_as_long_as_it_says_and_for_a_day_at_most(ttl_ms: float, age: float, fresh: bool) -> None:
    cache = ResponseCache()
    cache.put(TOOLS, b"x", ttl_ms, now=0.0)
    assert cache.get(TOOLS, age) == (b"x" if fresh else None)
    assert len(cache) == fresh
    assert LONGEST == DAY


def test_the_longest_time_can_be_chosen() -> None:
    cache = ResponseCache(longest=5)
    cache.put(TOOLS, b"x", math.inf, now=100)
    assert cache.get(TOOLS, 104.9)
    assert cache.get(TOOLS, 105) is None


def test_each_page_has_its_own_time() -> None:
    cache = ResponseCache()
    second = key_of("tools/list", {"cursor": "2"})
    cache.put(TOOLS, b"1", 10_000, now=0)
    cache.put(second, b"2", 5_000, now=2)
    assert (cache.get(TOOLS, 6.9), cache.get(second, 6.9)) == (b"1", b"2")
    assert (cache.get(TOOLS, 7), cache.get(second, 7)) == (b"1", None)


def test_a_newer_answer_takes_the_place_of_the_older_even_if_it_is_stale_at_once() -> None:
    cache = ResponseCache()
    cache.put(TOOLS, b"old", 1000, now=0)
    cache.put(TOOLS, b"new", 1000, now=0)
    assert cache.get(TOOLS, 0) == b"new"
    cache.put(TOOLS, b"newest", 0, now=0)
    assert cache.get(TOOLS, 0) is None
    assert cache.size == 0


def test_what_is_kept_is_no_longer_the_callers() -> None:
    cache, buffer = ResponseCache(), bytearray(b"mine")
    cache.put(TOOLS, buffer, 1000, now=0)  # type: ignore[arg-type, unused-ignore]
    buffer[:] = b"gone"
    assert cache.get(TOOLS, 0) == b"mine"


# What has changed

PAGES: list[tuple[str, dict[str, str]]] = [
    ("tools/list", {}), ("tools/list", {"cursor": "2"}), ("prompts/list", {}), ("resources/list", {}),
    ("resources/templates/list", {}), ("server/discover", {}), ("resources/read", {"uri": "file:///a"}),
    ("resources/read", {"uri": "file:///a/b"}), ("resources/read", {"uri": "file:///ab"}),
    ("resources/read", {"uri": "file:///"}),
]  # fmt: skip


def full() -> ResponseCache:
    cache = ResponseCache()
    for method, params in PAGES:
        cache.put(key_of(method, params), method.encode(), 1000, now=0)
    assert len(cache) == len(PAGES)
    return cache


def gone(cache: ResponseCache) -> list[str]:
    return [f"{m} {params.get('uri', '')}".strip() for m, params in PAGES if cache.get(key_of(m, params), 0) is None]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("notifications/tools/list_changed", ["tools/list", "tools/list"]),
        ("notifications/prompts/list_changed", ["prompts/list"]),
        ("notifications/resources/list_changed", ["resources/list", "resources/templates/list"]),
        ("tools/list", ["tools/list", "tools/list"]),
        ("server/discover", ["server/discover"]),
        ("notifications/message", []),
    ],
)
def test_a_change_makes_all_pages_of_its_lists_stale_and_nothing_else(method: str, expected: list[str]) -> None:
    cache = full()
    cache.forget(method)
    assert gone(cache) == expected


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///a", ["file:///a", "file:///"]),
        ("file:///a/b", ["file:///a", "file:///a/b", "file:///"]),
        ("file:///a/b/c", ["file:///a", "file:///a/b", "file:///"]),
        ("file:///abc", ["file:///"]),
        ("https://x/", []),
    ],
)
def test_an_update_makes_the_resource_stale_and_what_it_is_a_part_of(uri: str, expected: list[str]) -> None:
    cache = full()
    cache.forget_resource(uri)
    assert gone(cache) == [f"resources/read {each}" for each in expected]


def test_everything_can_be_forgotten() -> None:
    cache = full()
    cache.clear()
    assert (len(cache), cache.size, len(gone(cache))) == (0, 0, len(PAGES))


@pytest.mark.parametrize("change", ["forget", "forget_resource", "clear"])
def test_an_answer_on_its_way_while_something_changes_is_not_kept(change: str) -> None:
    cache = ResponseCache()
    sent = cache.changes
    getattr(cache, change)(*["x"][: change != "clear"])
    cache.put(TOOLS, b"perhaps old", 1000, now=0, changes=sent)
    assert cache.get(TOOLS, 0) is None
    cache.put(TOOLS, b"new", 1000, now=0, changes=cache.changes)
    assert cache.get(TOOLS, 0) == b"new"


# How much


def test_the_least_recently_used_goes_first() -> None:
    cache = ResponseCache(entries=2)
    one, two, three = (key_of("tools/list", {"cursor": str(i)}) for i in range(3))
    cache.put(one, b"1", 1000, now=0)
    cache.put(two, b"2", 1000, now=0)
    cache.get(one, 0)
    cache.put(three, b"3", 1000, now=0)
    assert [cache.get(each, 0) for each in (one, two, three)] == [b"1", None, b"3"]


def test_bytes_are_counted() -> None:
    cache = ResponseCache(size=100)
    one, two = key_of("tools/list", {"cursor": "1"}), key_of("tools/list", {"cursor": "2"})
    cache.put(one, b"x" * 50, 1000, now=0)
    cache.put(two, b"y" * 50, 1000, now=0)
    assert cache.get(one, 0) is None
    assert cache.get(two, 0) == b"y" * 50
    assert cache.size <= 100


def test_what_is_larger_than_all_room_is_not_kept_and_drives_nothing_out() -> None:
    cache = ResponseCache(size=100)
    cache.put(TOOLS, b"x", 1000, now=0)
    cache.put(key_of("prompts/list"), b"x" * 101, 1000, now=0)
    assert cache.get(TOOLS, 0) == b"x"
    assert len(cache) == 1


class Model(RuleBasedStateMachine):
    """Whatever is done, a result comes back only if it is the last one for its request, and fresh."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ResponseCache(entries=3, size=60)
        self.last: dict[Key, tuple[bytes, float]] = {}
        self.now = 0.0

    pages = st.sampled_from([key_of(method, params) for method, params in PAGES])

    @rule(page=pages, result=st.binary(max_size=70), ttl=st.integers(-1, 5000))
    def put(self, page: Key, result: bytes, ttl: int) -> None:
        self.cache.put(page, result, ttl, self.now)
        self.last[page] = (result, self.now + ttl / 1000)

    @rule(page=pages)
    def get(self, page: Key) -> None:
        found = self.cache.get(page, self.now)
        if found is not None:
            result, until = self.last[page]
            assert found == result
            assert self.now < until

    @rule(method=st.sampled_from(sorted(CACHEABLE)))
    def forget(self, method: str) -> None:
        self.cache.forget(method)
        self.last = {page: known for page, known in self.last.items() if page[0] != method}

    @rule(seconds=st.floats(0, 3))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def is_in_bounds(self) -> None:
        assert len(self.cache) <= 3
        assert 0 <= self.cache.size <= 60
        assert bool(len(self.cache)) == bool(self.cache.size)


TestModel: Any = cast(Any, Model).TestCase
TestModel.settings = settings(max_examples=60, derandomize=True, database=None, deadline=None)
