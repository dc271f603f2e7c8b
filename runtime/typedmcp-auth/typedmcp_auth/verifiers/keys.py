"""The keys of an authorization server (JWKS): given, or fetched and kept.

https://www.rfc-editor.org/rfc/rfc7517
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import jwt
from jwt import PyJWK
from msgspec import Struct

from typedmcp.building import is_array, is_object
from typedmcp.errors import SignInError, UsageError
from typedmcp_auth.verifiers.documents import Documents

__all__ = ["FixedKeys", "KeySource", "RemoteKeys", "load_key"]

_MAX_AGE: Final = 600.0
"""Seconds after which keys are fetched again: for so long a key that has been withdrawn is accepted."""
_MAX_STALE: Final = 3600.0
"""Seconds for which keys are used if the authorization server cannot be reached."""
_MIN_INTERVAL: Final = 10.0
"""Seconds between two requests for the keys. A token with an unknown key does not cause another one before."""
_MAX_KEYS: Final = 64
"""Keys of one set that are used."""
_MAX_CANDIDATES: Final = 4
"""Keys that are tried for one token: each costs the check of a signature."""
_MIN_RSA_BITS: Final = 2048

_log = logging.getLogger("typedmcp.auth")


class KeySource(Protocol):
    """Finds the keys that may have signed a token."""

    def find(self, kid: str | None, algorithm: str) -> Sequence[PyJWK] | Awaitable[Sequence[PyJWK]]:
        """Return the keys with this id that fit the algorithm, or an awaitable for them.

        The awaitable raises `ConnectionError` if they cannot be fetched.
        """
        ...


class KeySetDocument(Struct):
    """A JSON Web Key Set."""

    keys: list[Any]


class KeySet:
    """Public keys. Keys for other uses, secret keys, and keys that the library does not know are left out."""

    def __init__(self, keys: Sequence[Any]) -> None:
        self._keys = [key for key in keys[:_MAX_KEYS] if is_object(key) and _is_for_signatures(key)]
        self._loaded: dict[tuple[int, str], PyJWK | None] = {}

    def find(self, kid: str | None, algorithm: str) -> Sequence[PyJWK]:
        """Return the keys with an id that fit an algorithm: those without an id, if none has this one."""
        named = [place for place, key in enumerate(self._keys) if kid is not None and key.get("kid") == kid]
        if not named:
            named = [place for place, key in enumerate(self._keys) if kid is None or "kid" not in key]
        found = [key for place in named if (key := self._load(place, algorithm)) is not None]
        return found[:_MAX_CANDIDATES]

    def _load(self, place: int, algorithm: str) -> PyJWK | None:
        if (place, algorithm) not in self._loaded:
            self._loaded[place, algorithm] = load_key(self._keys[place], algorithm)
        return self._loaded[place, algorithm]


def _is_for_signatures(key: Mapping[str, Any]) -> bool:
    """Return whether a key is public, and may be used to check signatures."""
    operations: Any = key.get("key_ops")
    is_allowed = operations is None or (is_array(operations) and "verify" in operations)
    return key.get("kty") in ("RSA", "EC", "OKP") and key.get("use") in (None, "sig") and is_allowed


def load_key(key: Mapping[str, Any], algorithm: str) -> PyJWK | None:
    """Return a key if it fits the algorithm. A token cannot choose another algorithm than the key is for."""
    if key.get("alg") not in (None, algorithm):
        return None
    public = {name: value for name, value in key.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")}
    try:
        loaded = jwt.PyJWK(public, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError):
        return None
    is_short = key["kty"] == "RSA" and loaded.key.key_size < _MIN_RSA_BITS
    return None if is_short else loaded


class FixedKeys:
    """Keys that are given. Raises `UsageError` for a value that is no key set."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        keys: Any = document.get("keys")
        if not is_array(keys) or not keys:
            raise UsageError('jwks must be a key set, {"keys": […]}, with at least one key')
        self._keys = KeySet(keys)

    def find(self, kid: str | None, algorithm: str) -> Sequence[PyJWK]:
        """See `KeySource`."""
        return self._keys.find(kid, algorithm)


class RemoteKeys:
    """Keys that are fetched when they are first needed, when they are old, and for a key that is not among them.

    `url` is their address; by default the metadata of the issuer name it. One request serves all calls that wait for
    it. However many tokens name unknown keys, there is at most one request in ten seconds.
    """

    def __init__(self, documents: Documents, url: str | None) -> None:
        self._documents = documents
        self._url = url
        self._keys: KeySet | None = None
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._error: SignInError | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._clock: Callable[[], float] = time.monotonic

    def find(self, kid: str | None, algorithm: str) -> Sequence[PyJWK] | Awaitable[Sequence[PyJWK]]:
        """See `KeySource`."""
        age = self._clock() - self._fetched_at
        found: Sequence[PyJWK] = [] if self._keys is None or age > _MAX_STALE else self._keys.find(kid, algorithm)
        if found and age > _MAX_AGE and self._may_fetch():
            self._start_fetch()  # calls do not wait for it, since the authorization server may be slow
        if found or (self._keys is not None and age <= _MAX_AGE and not self._may_fetch()):
            return found
        return self._find_fetched(kid, algorithm)

    def _may_fetch(self) -> bool:
        return self._clock() - self._tried_at >= _MIN_INTERVAL or self._current_fetch() is not None

    def _current_fetch(self) -> asyncio.Task[None] | None:
        """Return the request that is under way in this event loop."""
        task = self._fetching
        is_open = task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()
        return task if is_open else None

    def _start_fetch(self) -> asyncio.Task[None]:
        """Return the request that is under way, or start one."""
        task = self._current_fetch()
        if task is None:
            self._tried_at = self._clock()
            task = self._fetching = asyncio.create_task(self._fetch())
        return task

    async def _find_fetched(self, kid: str | None, algorithm: str) -> Sequence[PyJWK]:
        if self._may_fetch():
            await asyncio.shield(self._start_fetch())  # others wait for it as well
        if self._keys is None or self._clock() - self._fetched_at > _MAX_STALE:
            raise ConnectionError(f"the keys of {self._documents.issuer} cannot be fetched: {self._error}")
        return self._keys.find(kid, algorithm)

    async def _fetch(self) -> None:
        documents = self._documents
        try:
            url = self._url
            if url is None:
                url = documents.check_named((await documents.discover()).jwks_uri, "jwks_uri")
            found = await documents.get(url, KeySetDocument)
        except SignInError as error:
            self._error = error
            _log.warning("the keys of %s cannot be fetched: %s", documents.issuer, error)
            return
        self._keys, self._fetched_at, self._error = KeySet(found.keys), self._clock(), None
