"""Signing of `requestState`: server state that the client returns with its next attempt.

The client could change it. The signature binds the state to a method and its parameters, to a principal, and to a time.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from typedmcp.errors import InvalidParamsError, UsageError

__all__ = ["DEFAULT_TTL", "StateSigner", "state_binding"]

DEFAULT_TTL = 900.0
"""Seconds for which a signed state is valid."""

_MAC_BYTES = 32
_MIN_KEY_BYTES = 16


class _SignedState(msgspec.Struct, array_like=True):
    expires: float
    binding: bytes
    content: msgspec.Raw


class StateSigner:
    """Signs state and verifies signed state, with HMAC-SHA256.

    `key` is a secret of at least 16 bytes. By default the key is new and unknown to other processes: several workers
    need a shared key. `ttl` is the time in seconds for which a signed state is valid. Raises `UsageError` for a shorter
    key, or a `ttl` that is not positive.
    """

    def __init__(self, key: bytes | None = None, *, ttl: float = DEFAULT_TTL) -> None:
        if isinstance(key, str):
            raise UsageError("key must be bytes, not a string; encode it, or use bytes.fromhex")
        if key is not None and len(key) < _MIN_KEY_BYTES:
            raise UsageError(f"key must have at least {_MIN_KEY_BYTES} bytes, not {len(key)}")
        if ttl <= 0:
            raise UsageError(f"ttl must be positive, not {ttl:g}")
        self.is_shared: bool = key is not None
        """True if other processes may have the same key."""
        self._key = key or secrets.token_bytes(_MAC_BYTES)
        self._ttl = ttl

    def sign(self, content: Any, binding: bytes, now: float) -> str:
        """Return signed state as a string for the client. `content` is any JSON, `now` is in seconds since 1970."""
        state = _SignedState(now + self._ttl, binding, msgspec.Raw(msgspec.json.encode(content)))
        payload = msgspec.json.encode(state)
        return base64.urlsafe_b64encode(self._mac(payload) + payload).decode()

    def verify(self, text: str, binding: bytes, now: float) -> Any:
        """Return the content of a signed state.

        Raises `InvalidParamsError` if the state was altered, has expired, or belongs to another request.
        """
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError as error:
            raise _invalid_state("this server did not issue it") from error
        mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)):
            raise _invalid_state("it was altered, or signed with another key")
        state = msgspec.json.decode(payload, type=_SignedState)
        if state.expires < now:
            raise _invalid_state("it has expired; call again without it")
        if not hmac.compare_digest(state.binding, binding):
            raise _invalid_state("it belongs to another request")
        return msgspec.json.decode(state.content)

    def _mac(self, payload: bytes) -> bytes:
        return hmac.new(self._key, payload, hashlib.sha256).digest()


def state_binding(method: str, params: Mapping[str, Any], principal: str | None) -> bytes:
    """Return a digest of the parts of a request that a state belongs to."""
    relevant = {key: value for key, value in params.items() if key not in ("_meta", "inputResponses", "requestState")}
    text = msgspec.json.encode([method, principal, relevant], order="deterministic")
    return hashlib.sha256(text).digest()


def _invalid_state(why: str) -> InvalidParamsError:
    return InvalidParamsError(f"requestState: {why}", {"path": "params.requestState"})
