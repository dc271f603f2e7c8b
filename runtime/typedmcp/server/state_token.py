"""Signing of `requestState`: server state that the client returns with its next attempt.

The client could change it. The signature binds the state to a method and its parameters, to a principal, and to a time.
Within that time a state can be sent again, unless it is for single use.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from typedmcp.errors import InvalidParamsError, UsageError
from typedmcp.protocol.option_checks import check_seconds
from typedmcp_schemas.nesting import encode_json

__all__ = ["DEFAULT_TTL", "StateSigner", "UsedStates", "VerifiedState", "state_binding"]

DEFAULT_TTL = 900.0
"""Seconds for which a signed state is valid."""

_MAC_BYTES = 32
_KEY_ID_BYTES = 8
_MIN_KEY_BYTES = 16
_NONCE_BYTES = 16
_DIGEST_BYTES: Final = 16
_DIGESTED: Final = b"text:"
"""The beginning of texts before they are digested, which no signed state has."""
_MAX_USED_STATES: Final = 100_000


class _SignedState(msgspec.Struct, array_like=True):
    expires: float
    binding: bytes
    nonce: bytes
    """Makes every state unique, so that the use of one is not taken for the use of another."""
    content: msgspec.Raw


class VerifiedState(NamedTuple):
    """A state that this server has signed for this request."""

    id: str
    """Identifies the state."""
    expires: float
    """The time in seconds since 1970 until which it is valid."""
    content: bytes
    """The content in JSON."""


class StateSigner:
    """Signs state and verifies signed state, with HMAC-SHA256.

    `key` is a secret of at least 16 bytes. By default the key is new and unknown to other processes: several workers
    need a shared key. `ttl` is the time in seconds for which a signed state is valid. With `single_use`, a state is
    valid once: the server remembers those that were used, over HTTP in its store. Raises `UsageError` for a shorter
    key, or a `ttl` that is not positive.
    """

    def __init__(self, key: bytes | None = None, *, ttl: float = DEFAULT_TTL, single_use: bool = False) -> None:
        if isinstance(key, str):
            raise UsageError("key must be bytes, not a string; encode it, or use bytes.fromhex")
        if key is not None and len(key) < _MIN_KEY_BYTES:
            raise UsageError(f"key must have at least {_MIN_KEY_BYTES} bytes, not {len(key)}")
        check_seconds("ttl", ttl, is_positive=True)
        self.is_shared: bool = key is not None
        """True if other processes may have the same key."""
        self.single_use: bool = single_use
        """True if a state is valid once."""
        self._key = key or os.urandom(_MAC_BYTES)
        self._key_id = self._mac(b"key id")[:_KEY_ID_BYTES]
        """Tells the states of other keys from those that were altered, and nothing about the key."""
        self._ttl = ttl

    def sign(self, content: Any, binding: bytes, now: float) -> str:
        """Return signed state as a string for the client. `content` is any JSON, `now` is in seconds since 1970."""
        encoded = msgspec.Raw(encode_json(content))
        state = _SignedState(now + self._ttl, binding, os.urandom(_NONCE_BYTES), encoded)
        signed = self._key_id + msgspec.json.encode(state)
        return base64.urlsafe_b64encode(self._mac(signed) + signed).decode()

    def verify(self, text: str, binding: bytes, now: float) -> VerifiedState:
        """Verify a signed state, and return its content.

        Raises `InvalidParamsError` if the state was altered, has another key or has expired, or belongs to another
        request. The caller remembers the `id` of a state for single use.
        """
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError as error:
            raise _invalid_state("this server did not issue it") from error
        mac, signed = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(signed)):
            has_other_key = len(signed) > _KEY_ID_BYTES and not signed.startswith(self._key_id)
            raise _invalid_state(self._other_key() if has_other_key else "it was altered; call again without it")
        state = msgspec.json.decode(signed[_KEY_ID_BYTES:], type=_SignedState)
        if state.expires < now:
            raise _invalid_state("it has expired; call again without it")
        if not hmac.compare_digest(state.binding, binding):
            raise _invalid_state("it belongs to another request")
        return VerifiedState(mac.hex(), state.expires, bytes(state.content))

    def _other_key(self) -> str:
        """Return why a state with the id of another key is not valid."""
        if self.is_shared:
            return "it was signed with another key; call again without it"
        return "the server was restarted after it issued this, or another process did; call again without it"

    def digest(self, text: str) -> str:
        """Return a digest of a text, in Base64 for URLs, which only a process with the key can make."""
        return base64.urlsafe_b64encode(self._mac(_DIGESTED + text.encode())[:_DIGEST_BYTES]).decode().rstrip("=")

    def _mac(self, payload: bytes) -> bytes:
        return hmac.new(self._key, payload, hashlib.sha256).digest()


class UsedStates:
    """Remembers names that may be used once, each until it expires. At most `limit` names are kept at a time.

    `clock` returns seconds.
    """

    def __init__(self, limit: int = _MAX_USED_STATES, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._expiry: dict[str, float] = {}
        """The times at which the names expire, in the order in which they were used."""

    async def use_once(self, name: str, seconds: float) -> bool:
        """Record the use of a name for some seconds. Return False if it was used already.

        Raises `ConnectionError` if no further name can be kept: forgetting one would permit a second use of it.
        """
        now = self._clock()
        while self._expiry and self._expiry[first := next(iter(self._expiry))] <= now:
            del self._expiry[first]
        if self._expiry.get(name, 0.0) > now:
            return False
        if len(self._expiry) >= self._limit:
            raise ConnectionError(f"{self._limit} states were used that have not expired, which is the limit")
        self._expiry.pop(name, None)
        self._expiry[name] = now + seconds
        return True


def state_binding(method: str, params: Mapping[str, Any], principal: str | None) -> bytes:
    """Return a digest of the parts of a request that a state belongs to. `principal` is the key of its principal."""
    relevant = {key: value for key, value in params.items() if key not in ("_meta", "inputResponses", "requestState")}
    text = msgspec.json.encode([method, principal, relevant], order="deterministic")
    return hashlib.sha256(text).digest()


def _invalid_state(why: str) -> InvalidParamsError:
    return InvalidParamsError(f"requestState: {why}", {"path": "params.requestState"})
