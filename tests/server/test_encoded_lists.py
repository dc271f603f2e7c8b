"""Encodings of a list are kept while its items are the same objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from typedmcp.dialect import structs
from typedmcp.protocol.codec import MethodCodec, codec_for
from typedmcp.revisions.features import DIALECT
from typedmcp.server import encoded_lists
from typedmcp.server.encoded_lists import EncodedList


def tool(name: str = "a", **schema: Any) -> structs.Tool:
    return structs.Tool(name=name, input_schema={"type": "object", **schema})


def listed(*tools: structs.Tool, **members: Any) -> structs.ListToolsResult:
    made = structs.ListToolsResult(tools=[*tools], ttl_ms=0, cache_scope="public")
    return msgspec.structs.replace(made, **members)


@pytest.fixture
def codec() -> MethodCodec:
    found = codec_for(DIALECT).methods["tools/list"]
    found.downgrade(listed(), [])  # compiles the conversion
    return found


def test_the_encoding_of_the_same_items_is_kept(codec: MethodCodec) -> None:
    known, item = EncodedList(), tool()
    first = known.encode(listed(item), codec)
    assert known.encode(listed(item), codec) is first


def test_other_items_and_members_are_encoded_again(codec: MethodCodec) -> None:
    known, item = EncodedList(), tool(default=1)
    results = [
        listed(item),
        listed(item, tool("b")),
        listed(tool(default=True)),
        listed(item, ttl_ms=1),
        listed(item, cache_scope="private"),
        listed(item, next_cursor="1"),
        listed(),
    ]
    for result in results:
        assert known.encode(result, codec)[0] == structs.encode(result)


def test_a_list_that_is_changed_later_is_encoded_again(codec: MethodCodec) -> None:
    known, result = EncodedList(), listed(tool())
    known.encode(result, codec)
    result.tools.append(tool("b"))
    assert known.encode(result, codec)[0] == structs.encode(result)


def test_encodings_beyond_the_limit_are_not_kept(codec: MethodCodec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_lists, "_MAX_BYTES", 100)
    known, item = EncodedList(), tool("a" * 100)
    first = known.encode(listed(item), codec)
    again = known.encode(listed(item), codec)
    assert again == first
    assert again is not first


def test_a_number_that_json_lacks_is_an_error(codec: MethodCodec) -> None:
    with pytest.raises(ValueError, match="JSON has neither NaN nor infinity"):
        EncodedList().encode(listed(tool(default=float("nan"))), codec)
