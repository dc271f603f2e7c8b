"""The response cache: keys, expiry, invalidation and size."""

from __future__ import annotations

import math
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.cases import each
from typedmcp.client.results.cache import MAX_TTL, CacheKey, ResponseCache, cache_key
from typedmcp.dialect import methods, structs
from typedmcp.revisions.results import CACHEABLE_METHODS

DAY = 24 * 60 * 60


def key_of(method: str, params: Any = None) -> CacheKey:
    found = cache_key(method, {} if params is None else params)
    assert found is not None
    return found


TOOLS = key_of("tools/list")

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


# Keys


def test_cacheable_methods_are_those_with_a_time_to_live_in_the_dialect() -> None:
    assert {
        m for m, record in methods.CLIENT_REQUESTS.items() if "ttl_ms" in str(fields(record.result))
    } == CACHEABLE_METHODS


def fields(result: Any) -> list[str]:
    from mcpspec.support.objects import spread_union

    return [name for kind in spread_union(result) for name in kind.__struct_fields__]


SAME: list[tuple[Any, Any]] = [
    ({"uri": "u"}, {"uri": "u", "_meta": {"progressToken": 3}}),
    ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
    ({}, {"_meta": {}}),
    (
        structs.from_builtins({"uri": "u", "_meta": META}, structs.ReadResourceRequestParams),
        {"uri": "u"},
    ),
]


@each("one, other", SAME)
def test_equal_requests_have_the_same_key(one: Any, other: Any) -> None:
    assert cache_key("resources/read", one) == cache_key("resources/read", other)


def test_no_parameters_have_the_key_of_empty_ones() -> None:
    assert cache_key("tools/list") == cache_key("tools/list", {})


@each(
    "one, other",
    [
        (key_of("tools/list"), key_of("prompts/list")),
        (key_of("tools/list"), key_of("tools/list", {"cursor": ""})),
        (key_of("tools/list", {"cursor": "1"}), key_of("tools/list", {"cursor": "2"})),
        (key_of("resources/read", {"uri": "a"}), key_of("resources/read", {"uri": "A"})),
    ],
)
def test_different_requests_have_different_keys(one: CacheKey, other: CacheKey) -> None:
    assert one != other


@each(
    "method, params",
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
def test_requests_that_must_not_be_cached_have_no_key(method: str, params: Any) -> None:
    assert cache_key(method, params) is None


# Expiry


@each("ttl_ms, age, fresh", [
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
def test_a_result_is_valid_for_its_time_to_live_and_at_most_a_day(ttl_ms: float, age: float, fresh: bool) -> None:
    cache = ResponseCache()
    cache.put(TOOLS, b"x", ttl_ms, now=0.0)
    assert cache.get(TOOLS, age) == (b"x" if fresh else None)
    assert len(cache) == fresh
    assert MAX_TTL == DAY


def test_each_page_expires_on_its_own() -> None:
    cache = ResponseCache()
    second = key_of("tools/list", {"cursor": "2"})
    cache.put(TOOLS, b"1", 10_000, now=0)
    cache.put(second, b"2", 5_000, now=2)
    assert (cache.get(TOOLS, 6.9), cache.get(second, 6.9)) == (b"1", b"2")
    assert (cache.get(TOOLS, 7), cache.get(second, 7)) == (b"1", None)


def test_a_newer_result_replaces_the_older_one_even_if_it_has_expired() -> None:
    cache = ResponseCache()
    cache.put(TOOLS, b"old", 1000, now=0)
    cache.put(TOOLS, b"new", 1000, now=0)
    assert cache.get(TOOLS, 0) == b"new"
    cache.put(TOOLS, b"newest", 0, now=0)
    assert cache.get(TOOLS, 0) is None
    assert cache.size == 0


def test_the_cache_keeps_a_copy_of_the_bytes() -> None:
    cache, buffer = ResponseCache(), bytearray(b"mine")
    cache.put(TOOLS, buffer, 1000, now=0)  # type: ignore[arg-type, unused-ignore]
    buffer[:] = b"gone"
    assert cache.get(TOOLS, 0) == b"mine"


# Invalidation

PAGES: list[tuple[str, dict[str, str]]] = [
    ("tools/list", {}), ("tools/list", {"cursor": "2"}), ("prompts/list", {}), ("resources/list", {}),
    ("resources/templates/list", {}), ("server/discover", {}), ("resources/read", {"uri": "file:///a"}),
    ("resources/read", {"uri": "file:///a/b"}), ("resources/read", {"uri": "file:///ab"}),
    ("resources/read", {"uri": "file:///"}),
]  # fmt: skip


def filled_cache() -> ResponseCache:
    cache = ResponseCache()
    for method, params in PAGES:
        cache.put(key_of(method, params), method.encode(), 1000, now=0)
    assert len(cache) == len(PAGES)
    return cache


def dropped_pages(cache: ResponseCache) -> list[str]:
    return [f"{m} {params.get('uri', '')}".strip() for m, params in PAGES if cache.get(key_of(m, params), 0) is None]


@each(
    "method, expected",
    [
        ("notifications/tools/list_changed", ["tools/list", "tools/list"]),
        ("notifications/prompts/list_changed", ["prompts/list"]),
        ("notifications/resources/list_changed", ["resources/list", "resources/templates/list"]),
        ("tools/list", ["tools/list", "tools/list"]),
        ("server/discover", ["server/discover"]),
        ("notifications/message", []),
    ],
)
def test_a_list_change_invalidates_all_pages_of_its_lists_only(method: str, expected: list[str]) -> None:
    cache = filled_cache()
    cache.invalidate(method)
    assert dropped_pages(cache) == expected


@each(
    "uri, expected",
    [
        ("file:///a", ["file:///a", "file:///"]),
        ("file:///a/b", ["file:///a", "file:///a/b", "file:///"]),
        ("file:///a/b/c", ["file:///a", "file:///a/b", "file:///"]),
        ("file:///abc", ["file:///"]),
        ("https://x/", []),
    ],
)
def test_an_update_invalidates_the_resource_and_its_parents(uri: str, expected: list[str]) -> None:
    cache = filled_cache()
    cache.invalidate_resource(uri)
    assert dropped_pages(cache) == [f"resources/read {each}" for each in expected]


def test_clear_drops_everything() -> None:
    cache = filled_cache()
    cache.clear()
    assert (len(cache), cache.size, len(dropped_pages(cache))) == (0, 0, len(PAGES))


@each("change", ["invalidate", "invalidate_resource", "clear"])
def test_a_result_that_was_on_its_way_during_an_invalidation_is_not_cached(change: str) -> None:
    cache = ResponseCache()
    sent = cache.generation
    getattr(cache, change)(*["x"][: change != "clear"])
    cache.put(TOOLS, b"perhaps old", 1000, now=0, generation=sent)
    assert cache.get(TOOLS, 0) is None
    cache.put(TOOLS, b"new", 1000, now=0, generation=cache.generation)
    assert cache.get(TOOLS, 0) == b"new"


# Size


def test_the_least_recently_used_result_is_dropped_first() -> None:
    cache = ResponseCache(entries=2)
    one, two, three = (key_of("tools/list", {"cursor": str(i)}) for i in range(3))
    cache.put(one, b"1", 1000, now=0)
    cache.put(two, b"2", 1000, now=0)
    cache.get(one, 0)
    cache.put(three, b"3", 1000, now=0)
    assert [cache.get(each, 0) for each in (one, two, three)] == [b"1", None, b"3"]


def test_the_size_of_the_cache_is_counted_in_bytes() -> None:
    cache = ResponseCache(size=100)
    one, two = key_of("tools/list", {"cursor": "1"}), key_of("tools/list", {"cursor": "2"})
    cache.put(one, b"x" * 50, 1000, now=0)
    cache.put(two, b"y" * 50, 1000, now=0)
    assert cache.get(one, 0) is None
    assert cache.get(two, 0) == b"y" * 50
    assert cache.size <= 100


def test_a_result_larger_than_the_cache_is_not_stored_and_drops_nothing() -> None:
    cache = ResponseCache(size=100)
    cache.put(TOOLS, b"x", 1000, now=0)
    cache.put(key_of("prompts/list"), b"x" * 101, 1000, now=0)
    assert cache.get(TOOLS, 0) == b"x"
    assert len(cache) == 1


class Model(RuleBasedStateMachine):
    """The cache only returns the last result of a request, and only until it expires."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ResponseCache(entries=3, size=60)
        self.last: dict[CacheKey, tuple[bytes, float]] = {}
        self.now = 0.0

    pages = st.sampled_from([key_of(method, params) for method, params in PAGES])

    @rule(page=pages, result=st.binary(max_size=70), ttl=st.integers(-1, 5000))
    def put(self, page: CacheKey, result: bytes, ttl: int) -> None:
        self.cache.put(page, result, ttl, self.now)
        self.last[page] = (result, self.now + ttl / 1000)

    @rule(page=pages)
    def get(self, page: CacheKey) -> None:
        found = self.cache.get(page, self.now)
        if found is not None:
            result, until = self.last[page]
            assert found == result
            assert self.now < until

    @rule(method=st.sampled_from(sorted(CACHEABLE_METHODS)))
    def forget(self, method: str) -> None:
        self.cache.invalidate(method)
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
