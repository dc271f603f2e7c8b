"""The metadata of requests: decoded by revision, and cached by its bytes."""

from __future__ import annotations

import msgspec
import pytest

from tests.cases import each
from tests.spoken import MODERN_REVISION
from typedmcp.errors import DecodeError, UnsupportedVersionError
from typedmcp.protocol.meta import CAPABILITIES, CLIENT_INFO, LOG_LEVEL, VERSION
from typedmcp.revisions.features import FEATURES
from typedmcp.server.metadata import MetadataCache, RequestMetadata

MODERN = {VERSION: MODERN_REVISION, CAPABILITIES: {}, CLIENT_INFO: {"name": "c", "version": "1"}}


def encoded(**members: object) -> bytes:
    return msgspec.json.encode({**MODERN, **members})


def check_version(revision: str) -> None:
    if revision != MODERN_REVISION:
        raise UnsupportedVersionError(revision, [MODERN_REVISION])


def test_modern_metadata_has_revision_features_client_and_log_level() -> None:
    metadata = MetadataCache(check_version).get(encoded(**{LOG_LEVEL: "error"}))
    assert (metadata.revision, metadata.features) == (MODERN_REVISION, FEATURES[MODERN_REVISION])
    assert metadata.client_info is not None
    assert (metadata.client_info.name, metadata.log_level) == ("c", "error")


def test_equal_bytes_are_decoded_once() -> None:
    cache = MetadataCache(check_version)
    assert cache.get(encoded()) is cache.get(encoded())
    long = encoded(x="y" * 5000)
    assert cache.get(long) is not cache.get(long)


@each("is_shared, entries, size", [(False, 16, 512), (True, 256, 4096)])
def test_the_cache_is_bounded(is_shared: bool, entries: int, size: int) -> None:
    cache = MetadataCache(check_version)
    if is_shared:
        cache.share()
    for number in range(1000):
        cache.get(encoded(number=number))
    assert len(cache.known) <= entries
    cache.known.clear()
    at_limit = encoded(x="y" * (size - len(encoded(x=""))))
    assert cache.get(at_limit) is cache.get(at_limit)
    assert cache.get(at_limit + b" ") is not cache.get(at_limit + b" ")


def test_metadata_that_is_merged_shares_the_description_of_the_client_with_its_session() -> None:
    cache = MetadataCache(check_version)
    session = RequestMetadata("2025-06-18", cache.get(encoded()).members)
    cache.open_session(session)
    merged = cache.get(b'{"progressToken":1}')
    assert merged.capabilities is session.capabilities
    assert merged.client_info is session.client_info


def test_a_revision_that_is_not_served_is_rejected_even_if_its_metadata_is_unknown() -> None:
    with pytest.raises(UnsupportedVersionError):
        MetadataCache(check_version).get(msgspec.json.encode({VERSION: "2031-01-01", CAPABILITIES: 3}))


def test_wrong_metadata_is_a_decode_error() -> None:
    with pytest.raises(DecodeError):
        MetadataCache(check_version).get(encoded(**{CAPABILITIES: 3}))


def test_the_metadata_of_a_session_is_merged_with_that_of_its_requests() -> None:
    cache = MetadataCache(check_version)
    session = RequestMetadata("2025-06-18", cache.get(encoded()).members)
    cache.open_session(session)
    cache.set_log_level("debug")
    merged = cache.get(b'{"traceparent":"00-1"}')
    assert (merged.revision, merged.log_level) == ("2025-06-18", "debug")
    assert merged.members["traceparent"] == "00-1"
    assert cache.get(encoded()).revision == MODERN_REVISION


OWN = {"traceparent": "00-4bf9-00f0-01", "tracestate": "a=1", "baggage": "b=%20", "progressToken": 7}


@each("names", [["traceparent"], ["progressToken"], [*OWN]])
@each("is_first", [True, False])
@each("indent", [0, 1])
def test_members_of_one_request_do_not_cost_the_decoding_of_its_client(
    names: list[str], is_first: bool, indent: int
) -> None:
    cache = MetadataCache(check_version)
    cache.share()
    made: list[RequestMetadata] = []
    for values in (OWN, {**OWN, "traceparent": "00-9999-00f0-01", "progressToken": "eight"}):
        own = {name: values[name] for name in names}
        plain = {**own, **MODERN} if is_first else {**MODERN, **own}
        made.append(cache.get(msgspec.json.format(msgspec.json.encode(plain), indent=indent)))
        assert made[-1].members == plain
    metadata, again = made
    assert again.capabilities is metadata.capabilities
    assert (again.revision, again.features, again.log_level) == (MODERN_REVISION, FEATURES[MODERN_REVISION], None)
    assert len(cache.known) == 1, "the cache does not grow with the requests"


@each(
    "raw",
    [
        b'{"traceparent":"a","x":1,"traceparent":"b"}', b'{"traceparent":"a","traceparent":"b"}',
        b'{"x":{"traceparent":"a","y":1},"z":{"a":1,"traceparent":"b"}}', b'{"x":"{\\"traceparent\\":\\"a\\","}',
        b'{"progressToken":1,"progressToken":"2"}', b'{"traceparent":"a\\u0041","x":1}', b'{"progressToken":007,"x":1}',
        b'{"x":1,"traceparent":"\xff"}', b'{"x":1,"traceparent":"\x00"}', b'{"traceparent":5,"x":1}',
        b'{"traceparent":"a",}',
        b'{,"traceparent":"a"}', b'{"traceparent":"a"}}', b'[1,"traceparent":"a"}', b'{"x":1,"progressToken":1.0}',
        b'{"x":1,"progressToken":99999999999999999999}', b'{"x":1,"baggage":"a"}  ',
    ],
)  # fmt: skip
@each("is_session", [True, False])
def test_members_of_one_request_mean_the_same_as_in_a_whole(raw: bytes, is_session: bool) -> None:
    """Compare with a cache too small to know anything."""
    outcomes: list[object] = []
    for size in (512, 0):
        cache = MetadataCache(check_version)
        cache._entry_bytes = size  # pyright: ignore[reportPrivateUsage]
        if is_session:
            cache.open_session(RequestMetadata("2025-06-18", MODERN))
        else:
            raw = raw.replace(b"{", b"{" + msgspec.json.encode(MODERN)[1:-1] + b",", 1) if size else raw
        try:
            outcomes.append(cache.get(raw).members)
        except (DecodeError, ValueError) as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]
