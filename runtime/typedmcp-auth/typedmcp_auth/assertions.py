"""Signed assertions, by PyJWT.

https://www.rfc-editor.org/rfc/rfc7523#section-3
"""

from __future__ import annotations

from secrets import token_urlsafe
from typing import Final

from typedmcp.errors import SignInError, UsageError

__all__ = ["sign_assertion"]

_LIFETIME: Final = 120
"""Seconds for which an assertion is valid."""


def sign_assertion(private_key: str, algorithm: str, client_id: str, audience: str, now: float) -> str:
    """Return a JWT that authenticates a client. Raises `SignInError` for a key that does not fit the algorithm."""
    import jwt  # with cryptography, which most clients do not need

    if algorithm.startswith("HS") or algorithm == "none":
        raise UsageError(f"algorithm: {algorithm!r} does not use a private key; expected one such as ES256 or RS256")
    times = {"iat": int(now), "exp": int(now) + _LIFETIME}
    claims = {"iss": client_id, "sub": client_id, "aud": audience, "jti": token_urlsafe(16), **times}
    try:
        return jwt.encode(claims, private_key, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError) as error:
        raise SignInError(f"the private key does not fit {algorithm}: {type(error).__name__}") from None
