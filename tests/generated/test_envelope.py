"""The envelope of a message is parsed without its revision, and nothing in it changes."""

from __future__ import annotations

import json
from contextlib import suppress
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcpspec
from mcpspec.support.envelope import (
    ErrorFrame,
    Frame,
    NotificationFrame,
    RequestFrame,
    ResultFrame,
    encode_frame,
    parse_frame,
    split_batch,
)
from mcpspec.support.errors import DecodeError
from tests.cases import each

VALID: list[tuple[str, Frame]] = [
    ('{"jsonrpc":"2.0","id":1,"method":"ping"}', RequestFrame(id=1, method="ping")),
    (
        '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name": "x", "n": 1.0}}',
        RequestFrame(id="a", method="tools/call", params=b'{"name": "x", "n": 1.0}'),
    ),
    ('{"jsonrpc":"2.0","method":"notifications/initialized"}', NotificationFrame(method="notifications/initialized")),
    ('{"jsonrpc":"2.0","id":7,"result":{}}', ResultFrame(id=7, result=b"{}")),
    (
        '{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}',
        ErrorFrame(id=7, error=b'{"code":-1,"message":"m"}'),
    ),
    ('{"jsonrpc":"2.0","id":null,"error":{}}', ErrorFrame(error=b"{}")),
    ('{"jsonrpc":"2.0","error":{}}', ErrorFrame(error=b"{}")),
]

INVALID: list[tuple[str, str]] = [
    ("{", "truncated"),
    ("[]", "expected an object, got an array; split_batch takes a batch apart"),
    ('{"id":1,"method":"ping"}', "jsonrpc: required, but missing"),
    ('{"jsonrpc":"1.0","id":1,"method":"ping"}', 'jsonrpc: expected "2.0", got "1.0"'),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', "id: expected a string or an integer, got null"),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', "id: "),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', "id: "),
    ('{"jsonrpc":"2.0","result":{}}', "id: required, but missing"),
    ('{"jsonrpc":"2.0","id":1}', "expected one of method, result and error, got none of them"),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', "got method and result"),
    ('{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', "got result and error"),
    ('{"jsonrpc":"2.0","id":1,"result":{},"params":{}}', "params: a response has no parameters"),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', "params: expected an object, got an array"),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', "params: expected an object, got null"),
    ('{"jsonrpc":"2.0","id":1,"result":3}', "result: expected an object, got a number"),
    ('{"jsonrpc":"2.0","id":1,"error":"x"}', "error: expected an object, got a string"),
    ("\ud800", "is not Unicode text"),
]


@each("text, frame", VALID)
def test_a_message_is_parsed_to_its_frame_and_encoded_again(text: str, frame: Frame) -> None:
    assert parse_frame(text) == frame
    for buf in (text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        assert parse_frame(buf) == frame
    assert parse_frame(encode_frame(frame)) == frame


@each("text, message", INVALID)
def test_anything_else_is_rejected_with_place_and_cause(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse_frame(text)
    assert message in str(caught.value)


IDENTIFIED: dict[str, int | str | None] = {
    '{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": []}': 6,
    '{"jsonrpc": "2.0", "id": "a", "method": 7}': "a",
    '{"jsonrpc": "1.0", "id": 6, "method": "m"}': 6,
    '{"jsonrpc": "2.0", "id": 6, "result": {}, "error": {}}': 6,
    '{"jsonrpc": "2.0", "id": 6, "params": {}}': 6,
    '{"jsonrpc": "2.0", "id": true, "method": "m"}': None,
    '{"jsonrpc": "2.0", "id": null, "method": "m"}': None,
    '{"jsonrpc": "2.0", "method": 7}': None,
    '[{"jsonrpc": "2.0", "id": 6, "method": "m"}]': None,
    '{"jsonrpc": "2.0", "id": 6, "method": "m"': None,
    "\ud800": None,
}


@each("text", IDENTIFIED)
def test_the_error_about_a_message_has_its_id(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse_frame(text)
    assert caught.value.id == IDENTIFIED[text]


@each("version", mcpspec.VERSIONS)
@each("face", ["exact.structs", "exact.models"])
def test_a_gateway_decodes_the_result_when_it_knows_the_revision(version: str, face: str) -> None:
    types = attrgetter(face)(mcpspec.revision(version))
    result = types.CallToolResult(content=[types.TextContent(text="hi")])
    frame = parse_frame(encode_frame(ResultFrame(id=1, result=types.encode(result))))
    assert isinstance(frame, ResultFrame)
    assert types.decode(frame.result, types.CallToolResult) == result


@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)),
    st.sampled_from([None, 1, 2]),
)
def test_parameters_keep_every_byte_but_line_breaks(params: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(params, indent=indent)
    frame = parse_frame(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{text}}}')
    assert frame == RequestFrame(id=1, method="m", params=text.encode())
    line = encode_frame(frame)
    assert b"\n" not in line
    assert json.loads(line)["params"] == params
    if indent is None:
        assert text.encode() in line


def test_a_number_that_python_cannot_hold_is_forwarded_as_it_is() -> None:
    text = b'{"n":1.00000000000000000001,"big":123456789012345678901234567890}'
    frame = parse_frame(b'{"jsonrpc":"2.0","method":"m","params":' + text + b"}")
    assert text in encode_frame(frame)


def test_a_batch_is_taken_apart_even_if_one_of_its_messages_is_invalid() -> None:
    first, second = split_batch(b' [{"jsonrpc":"2.0","method":"m"}, {"jsonrpc":"2.0"}]')
    assert parse_frame(first) == NotificationFrame(method="m")
    with pytest.raises(DecodeError, match="none of them"):
        parse_frame(second)


def test_a_single_message_is_a_batch_of_one() -> None:
    assert split_batch('{"jsonrpc":"2.0","method":"m"}') == [b'{"jsonrpc":"2.0","method":"m"}']


@each("text", ["[]", "[1", " [ ] "])
def test_an_empty_or_broken_batch_is_rejected(text: str) -> None:
    with pytest.raises(DecodeError):
        split_batch(text)


def test_text_that_is_not_json_is_not_encoded_over_several_lines() -> None:
    with pytest.raises(DecodeError):
        encode_frame(RequestFrame(id=1, method="m", params=b'{"a"\n'))


def test_deep_nesting_is_rejected_or_forwarded_but_ends() -> None:
    with suppress(DecodeError):  # Python 3.14 allows as many levels as the stack of the thread has room for
        split_batch(b"[" * 100_000 + b"]" * 100_000)
