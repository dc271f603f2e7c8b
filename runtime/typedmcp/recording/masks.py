"""Removal of secrets from recorded messages.

HTTP headers are no part of a message, so they are never recorded. Within a message, members with the name of a secret
are masked, and so are credentials in text and in URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from mcpspec.support.objects import is_array, is_object
from typedmcp.recording.repeated import RepeatedTexts

__all__ = ["MASK", "SECRET_NAMES", "SecretMasker", "matches_masked"]

MASK: Final = "[masked]"
"""The text in place of a secret."""

SECRET_NAMES: Final = (
    "access_token", "api_key", "auth_token", "authorization", "client_assertion", "client_secret", "code_verifier",
    "cookie", "credentials", "id_token", "passphrase", "passwd", "password", "private_key", "proxy_authorization",
    "refresh_token", "secret", "secret_key", "set_cookie", "token", "x_api_key",
)  # fmt: skip
"""The members that are always masked. Case, hyphens and underscores do not matter."""

_CREDENTIALS: Final = re.compile(r"(?i)\b(bearer|basic|dpop)(\s+)[a-z0-9._~+/=-]{6,}")
_URL_USER: Final = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/?#@\"']+@")
_MEMBER_IN_TEXT: Final = re.compile(r'"([\w-]{1,64})"(\s{0,8}:\s{0,8})"((?:[^"\\]|\\.)*)"')
_PAIR_IN_TEXT: Final = re.compile(r"(?<![\w-])([\w-]{1,64})=([^&\s\"']+)")
"""Members and pairs within a text: results often hold JSON or a URL as text."""
_SCHEMA_MEMBERS: Final = frozenset({"properties", "$defs", "definitions", "patternProperties"})
"""The members of a JSON Schema whose members are schemas: their names are names of secrets, not their values."""


class SecretMasker:
    """Masks the secrets in the messages of one connection. `names` are members to mask beside `SECRET_NAMES`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {_normalise(name) for name in (*SECRET_NAMES, *names)}
        self._repeated = RepeatedTexts()
        """Masked texts: a tool may return what it was given, in text that has no members."""

    def mask(self, message: object) -> Any:
        """Return a copy of a message without secrets."""
        return self._mask_repeated(self._mask_members(message, is_schema_table=False))

    def _mask_members(self, value: object, *, is_schema_table: bool) -> Any:
        if is_object(value):
            return {
                self._mask_text(name): self._hide(child)
                if not is_schema_table and _normalise(name) in self._names
                else self._mask_members(child, is_schema_table=name in _SCHEMA_MEMBERS)
                for name, child in value.items()
            }
        if is_array(value):
            return [self._mask_members(child, is_schema_table=False) for child in value]
        return self._mask_text(value) if isinstance(value, str) else value

    def _hide(self, value: object) -> Any:
        """Mask all texts and numbers in a value, whose structure stays."""
        if is_object(value):
            return {name: self._hide(child) for name, child in value.items()}
        if is_array(value):
            return [self._hide(child) for child in value]
        if isinstance(value, str):
            self._repeated.add(value)
        return value if value is None or isinstance(value, bool) else MASK

    def _mask_text(self, text: str) -> str:
        if "://" in text:
            text = _URL_USER.sub(rf"\1{MASK}@", text)
        if '"' in text:
            text = _MEMBER_IN_TEXT.sub(self._mask_member, text)
        if "=" in text:
            text = _PAIR_IN_TEXT.sub(self._mask_pair, text)
        return _CREDENTIALS.sub(rf"\1\2{MASK}", text)

    def _mask_member(self, found: re.Match[str]) -> str:
        name, colon, value = found.groups()
        return f'"{name}"{colon}"{self._hide(value)}"' if _normalise(name) in self._names else found[0]

    def _mask_pair(self, found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"{name}={self._hide(value)}" if _normalise(name) in self._names else found[0]

    def _mask_repeated(self, value: Any) -> Any:
        if not self._repeated:
            return value
        if is_object(value):
            return {name: self._mask_repeated(child) for name, child in value.items()}
        if is_array(value):
            return [self._mask_repeated(child) for child in value]
        return self._repeated.replace(value, MASK) if isinstance(value, str) else value


def _normalise(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def matches_masked(recorded: object, value: object) -> bool:
    """Return whether a value equals a recorded one, in which a mask stands for any text or number."""
    if is_object(recorded):
        return (
            is_object(value)
            and recorded.keys() == value.keys()
            and all(matches_masked(child, value[name]) for name, child in recorded.items())
        )
    if is_array(recorded):
        return is_array(value) and len(recorded) == len(value) and all(map(matches_masked, recorded, value))
    if isinstance(recorded, str) and MASK in recorded:
        return recorded == MASK or (isinstance(value, str) and _fits_mask(recorded, value))
    return type(recorded) is type(value) and recorded == value


def _fits_mask(recorded: str, value: str) -> bool:
    """Return whether the parts around the masks appear in a text, in their order, without backtracking."""
    first, *middle, last = recorded.split(MASK)
    if not value.startswith(first):
        return False
    place = len(first)
    for part in middle:
        if (found := value.find(part, place)) < 0:
            return False
        place = found + len(part)
    return value.endswith(last) and len(value) - len(last) >= place
