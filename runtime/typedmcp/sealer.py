"""Sealing `requestState`: what a server hands to a client to bring back, so that it can trust it.

It passes through the client and is the attacker's to write. A seal binds it to the method, to the parameters that
matter, to the principal and to a time.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Any

import msgspec

from typedmcp.errors import InvalidParams, UsageError

__all__ = ["DEFAULT_TTL", "Sealer"]

DEFAULT_TTL = 900.0
"""How many seconds a sealed state is taken."""

_MAC_BYTES = 32
_KEY_BYTES = 16


class _Sealed(msgspec.Struct, array_like=True):
    expires: float
    binding: bytes
    content: msgspec.Raw


class Sealer:
    """Seals and opens state with HMAC-SHA256.

    `key` is a secret of at least 16 bytes. Without one a new key is made, which no other process has: give one as
    soon as there is more than one worker. `ttl` is in seconds.
    """

    def __init__(self, key: bytes | None = None, *, ttl: float = DEFAULT_TTL) -> None:
        if key is not None and len(key) < _KEY_BYTES:
            raise UsageError(f"a key needs at least {_KEY_BYTES} bytes, this one has {len(key)}")
        if ttl <= 0:
            raise UsageError(f"ttl must be positive, not {ttl:g}")
        self.is_shared: bool = key is not None
        """Whether other processes may have the same key."""
        self._key = key or secrets.token_bytes(_MAC_BYTES)
        self._ttl = ttl

    def seal(self, content: Any, binding: bytes, now: float) -> str:
        """State as a text for the client. `now` is in seconds since 1970."""
        sealed = _Sealed(now + self._ttl, binding, msgspec.Raw(msgspec.json.encode(content)))
        payload = msgspec.json.encode(sealed)
        return base64.urlsafe_b64encode(self._mac(payload) + payload).decode()

    def open(self, text: str, binding: bytes, now: float) -> Any:
        """What was sealed. Raises `InvalidParams` for what was altered, has lapsed or belongs to another request."""
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError as error:
            raise _refused("it is not one of ours") from error
        mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)):
            raise _refused("it was altered, or sealed with another key")
        sealed = msgspec.json.decode(payload, type=_Sealed)
        if sealed.expires < now:
            raise _refused("it has lapsed")
        if not hmac.compare_digest(sealed.binding, binding):
            raise _refused("it belongs to another request")
        return msgspec.json.decode(sealed.content)

    def _mac(self, payload: bytes) -> bytes:
        return hmac.new(self._key, payload, hashlib.sha256).digest()


def binding(method: str, params: Any, principal: str | None) -> bytes:
    """What a state is bound to: the method, a digest of the parameters that matter, and who asks."""
    plain = {key: value for key, value in params.items() if key not in ("_meta", "inputResponses", "requestState")}
    text = msgspec.json.encode([method, principal, plain], order="deterministic")
    return hashlib.sha256(text).digest()


def _refused(why: str) -> InvalidParams:
    return InvalidParams(f"requestState: {why}", {"path": "params.requestState"})
