"""Secrets are removed from recorded messages, and schemas keep their meaning."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from typedmcp.recording.masks import MASK, SECRET_NAMES, SecretMasker, matches_masked


@pytest.mark.parametrize("name", [*SECRET_NAMES, "API-Key", "apiKey", "ACCESS_TOKEN", "Set-Cookie"])
def test_a_member_with_the_name_of_a_secret_is_masked_at_any_depth(name: str) -> None:
    message = {"params": {"arguments": {"deep": [{name: "s3cret-value", "kept": 1}]}}}
    assert SecretMasker().mask(message) == {"params": {"arguments": {"deep": [{name: MASK, "kept": 1}]}}}


def test_numbers_lists_and_objects_under_a_secret_name_are_masked_and_keep_their_structure() -> None:
    masked = SecretMasker(["address"]).mask({"token": 1234, "cookie": ["a=b", None, True], "address": {"zip": 5003}})
    assert masked == {"token": MASK, "cookie": [MASK, None, True], "address": {"zip": MASK}}


def test_names_of_the_protocol_are_not_masked() -> None:
    message: dict[str, Any] = {"params": {"_meta": {"progressToken": 3}, "cursor": "abc", "requestState": "x"}}
    assert SecretMasker().mask(message) == message


def test_schemas_of_secrets_are_not_masked() -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]}
    message = {"result": {"tools": [{"name": "login", "inputSchema": schema}]}}
    assert SecretMasker(["password"]).mask(message) == message


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("sent Authorization: Bearer abc.def-123", "sent Authorization: Bearer [masked]"),
        ("basic QWxhZGRpbjpvcGVu", "basic [masked]"),
        ("postgres://ada:pw@db/x and https://ok.example", "postgres://[masked]@db/x and https://ok.example"),
        ('{"api_key": "abc\\"d", "n": "x"}', '{"api_key": "[masked]", "n": "x"}'),
        ("https://a.example/?access_token=abc&page=2", "https://a.example/?access_token=[masked]&page=2"),
        ("basic facts", "basic facts"),
        ("mail ada@example.com", "mail ada@example.com"),
    ],
)
def test_credentials_in_text_are_masked(text: str, masked: str) -> None:
    assert SecretMasker().mask({"text": text, "list": [text]}) == {"text": masked, "list": [masked]}


def test_a_masked_value_is_masked_wherever_it_appears_later() -> None:
    masker = SecretMasker()
    masker.mask({"params": {"password": "hunter2hunter2"}})
    assert masker.mask({"result": {"text": "you sent hunter2hunter2."}}) == {"result": {"text": f"you sent {MASK}."}}


def test_a_short_secret_is_not_looked_for_elsewhere() -> None:
    assert SecretMasker().mask({"password": "on", "text": "on and on"}) == {"password": MASK, "text": "on and on"}


def test_large_hostile_text_is_masked_in_linear_time() -> None:
    text = json.dumps({"a": '"' * 200_000 + "\\" * 100_000 + "=" * 100_000 + "://" * 50_000 + "bearer " * 20_000})
    start = time.process_time()
    SecretMasker().mask({"text": text})
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("recorded", "value", "expected"),
    [
        ({"a": [1, MASK]}, {"a": [1, "anything"]}, True),
        ({"a": MASK}, {"a": 7}, True),
        ({"a": f"to {MASK}@x and {MASK}"}, {"a": "to me@x and you"}, True),
        ({"a": f"to {MASK}@x"}, {"a": "to me@y"}, False),
        (f"ab{MASK}bc", "abc", False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 2], False),
        ("text", "text", True),
    ],
)
def test_a_mask_matches_any_value_in_its_place(recorded: object, value: object, expected: bool) -> None:
    assert matches_masked(recorded, value) is expected
