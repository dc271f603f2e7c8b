"""The metadata of requests: decoded by revision, and cached by its bytes."""

from __future__ import annotations

import msgspec
import pytest

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


@pytest.mark.parametrize(("is_shared", "entries", "size"), [(False, 16, 512), (True, 256, 4096)])
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
