"""Signed state: what it is bound to, and for how long it is valid."""

from __future__ import annotations

from unittest.mock import ANY

import pytest

from tests.cases import each
from typedmcp import StateSigner, UsageError
from typedmcp.errors import InvalidParamsError
from typedmcp.server.state_token import state_binding

KEY = b"a key of 16 bytes"
BINDING = state_binding("tools/call", {"name": "x"}, "ada")


def test_a_signed_state_is_verified_until_its_ttl_has_passed() -> None:
    signer = StateSigner(KEY, ttl=10)
    token = signer.sign({"a": [1, None]}, BINDING, now=100.0)
    assert signer.verify(token, BINDING, now=110.0) == (ANY, 110.0, b'{"a":[1,null]}')
    with pytest.raises(InvalidParamsError, match="it has expired"):
        signer.verify(token, BINDING, now=110.5)


def test_signers_with_one_key_verify_the_states_of_each_other() -> None:
    token = StateSigner(KEY).sign("state", BINDING, now=0.0)
    assert StateSigner(KEY).verify(token, BINDING, now=0.0).content == b'"state"'
    with pytest.raises(InvalidParamsError, match="another key; call again"):
        StateSigner(KEY[::-1]).verify(token, BINDING, now=0.0)


def test_a_key_of_one_process_does_not_call_the_states_of_earlier_ones_altered() -> None:
    token = StateSigner().sign("state", BINDING, now=0.0)
    with pytest.raises(InvalidParamsError, match=r"the server was restarted .* call again without it"):
        StateSigner().verify(token, BINDING, now=0.0)


@each("place", [0, 60, 100])
def test_a_state_that_was_altered_is_rejected(place: int) -> None:
    signer = StateSigner()
    token = signer.sign("state", BINDING, now=0.0)
    other = "A" if token[place] != "A" else "B"
    with pytest.raises(InvalidParamsError, match="it was altered"):
        signer.verify(token[:place] + other + token[place + 1 :], BINDING, now=0.0)


@each("text", ["", "ü", "AAAA", "not base64!"])
def test_a_text_that_is_no_signed_state_is_rejected(text: str) -> None:
    with pytest.raises(InvalidParamsError, match="requestState: "):
        StateSigner(KEY).verify(text, BINDING, now=0.0)


@each(
    "method, params, principal",
    [
        ("prompts/get", {"name": "x"}, "ada"),
        ("tools/call", {"name": "y"}, "ada"),
        ("tools/call", {"name": "x"}, None),
    ],
)
def test_a_state_is_bound_to_method_parameters_and_principal(
    method: str, params: dict[str, str], principal: str | None
) -> None:
    signer = StateSigner(KEY)
    token = signer.sign(None, BINDING, now=0.0)
    with pytest.raises(InvalidParamsError, match="another request"):
        signer.verify(token, state_binding(method, params, principal), now=0.0)


def test_every_state_has_an_id_of_its_own() -> None:
    signer = StateSigner(KEY)
    tokens = [signer.sign("state", BINDING, now=0.0) for _ in range(2)]
    first, second, again = (signer.verify(token, BINDING, now=0.0).id for token in (*tokens, tokens[0]))
    assert first == again != second


def test_a_state_that_is_spelled_differently_has_the_same_id() -> None:
    """Base64 in URLs has two spellings, and the signature is over the bytes."""
    signer = StateSigner(KEY)
    tokens = (signer.sign("state", BINDING, now=0.0) for _ in range(100))
    token = next(token for token in tokens if "-" in token or "_" in token)
    other = token.replace("-", "+").replace("_", "/")
    assert signer.verify(other, BINDING, now=0.0).id == signer.verify(token, BINDING, now=0.0).id


def test_the_binding_ignores_what_differs_between_attempts() -> None:
    repeated = {"requestState": "s", "inputResponses": {}, "_meta": {"a": 1}, "name": "x"}
    assert state_binding("tools/call", repeated, "ada") == BINDING


def test_a_short_key_a_string_and_a_ttl_of_zero_are_rejected() -> None:
    with pytest.raises(UsageError, match="at least 16 bytes, not 5"):
        StateSigner(b"short")
    with pytest.raises(UsageError, match="key must be bytes, not a string"):
        StateSigner("a key of 16 bytes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="ttl must be positive"):
        StateSigner(ttl=0)
