"""Removal of secrets from recorded messages.

HTTP headers are no part of a message, so they are never recorded. Within a message, members with the name of a secret
are masked, and so are credentials in text and in URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from typedmcp.building import decode_json, is_array, is_object
from typedmcp_cli.recording.repeated import RepeatedTexts

__all__ = ["MASK", "SECRET_NAMES", "SecretMasker", "matches_masked"]

MASK: Final = "[masked]"
"""The text in place of a secret."""

SECRET_NAMES: Final = (
    "access_token", "api_key", "auth_token", "authorization", "client_assertion", "client_secret", "code_verifier",
    "cookie", "credentials", "id_token", "passphrase", "passwd", "password", "private_key", "proxy_authorization",
    "refresh_token", "secret", "secret_key", "set_cookie", "token", "x_api_key",
)  # fmt: skip
"""The members that are always masked. Case, hyphens, underscores and blanks do not matter."""

# A peer must not stop the process with a text: no pattern reads a part of it again, since quantifiers are possessive or
# bounded, and a value that does not end is masked up to the end of the text.

_CREDENTIALS: Final = re.compile(r"\b(bearer|basic|dpop)(\s*+:\s*+|\s++)[a-z0-9._~+/=-]{6,}+", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"""(:(?:\\{0,31}+/){2})((?:[^\s/?#"':]|:(?!\\{0,31}+/))++)""")
_NAME: Final = re.compile(
    r"(?<![\w-])(?:(?<=\\)(?:u[0-9a-f]{4}|[bfnrt])|(?<=%)[0-9a-f]{2})?+"  # an escape before it: `\n` or `%26`
    r"([\w-]++)"
    r"""(?:(\\{0,31}+["'])\s*+(?::|=[=>]?+)\s*+"""  # `"name": `, with the backslashes of JSON within JSON
    r"""|(?:(?:\[|%5B)?+(?:\]|%5D))?+[ \t]*+(?:=[=>]?+|%3D|:(?=[ \t]*+["']))[ \t]*+)""",  # `name=`, `user[name]=`
    re.IGNORECASE,
)
"""A name, and what is between it and its value."""
_AFTER_NAME: Final = re.compile("[\"'=%]")
_PAIRED_NAME: Final = re.compile(r"""(?:\\{0,31}+["'])?([\w-]++)""")
_OPENING: Final = re.compile(r"""\\{0,31}+["']|[\[{]""")
_LITERAL: Final = re.compile(r"(?:(null|true|false|none)|[-+.\de]++)(?=\s*+(?:[,}\]\\]|\Z))", re.IGNORECASE)
_WORD: Final = re.compile(
    r"""(?:(?:bearer|basic|dpop|token)[ \t]++)?+((?:[^&\s"'\\]++|\\++(?!["']))++)""", re.IGNORECASE
)
"""A value without quotes. It may have the scheme of an HTTP header."""
_BRACKET: Final = re.compile(r"""["']|[\[{]++|[\]}]++""")

_QUOTED_MASK: Final = re.compile(rf"(?:\\{{0,31}}+[\"'])?{re.escape(MASK)}(?:\\{{0,31}}+[\"'])?")
"""A mask with quotes, which it may have in place of a number or a list without."""

_NAMING: Final = frozenset({"name", "key"})
"""The members that name what is in the member `value` beside them."""
_SCHEMA_TABLES: Final = frozenset({"properties", "$defs", "definitions", "patternProperties"})
"""The members of a JSON Schema whose members are schemas: their names are names of secrets, not their values."""
_SCHEMA_VALUES: Final = frozenset({"default", "const", "enum", "examples"})
"""The members of a JSON Schema that are values. Many defaults are the empty text, which is kept."""
_Kind: TypeAlias = Literal["data", "schema", "schemas by name"]


class SecretMasker:
    """Masks the secrets in the messages of one connection. `names` are members to mask beside `SECRET_NAMES`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {_normalise(name) for name in (*SECRET_NAMES, *names)}
        self._repeated = RepeatedTexts()
        """Masked texts: a tool may return what it was given, in text that has no members."""

    def mask(self, message: object) -> Any:
        """Return a copy of a message without secrets."""
        return self._mask_repeated(self._mask_members(message, "data"))

    def _is_secret(self, name: object) -> bool:
        return isinstance(name, str) and _normalise(name) in self._names

    def _mask_members(self, value: object, kind: _Kind, *, of_secret: bool = False) -> Any:
        """Mask the secrets in a value. `of_secret` says that it is the schema of a secret."""
        if is_array(value):
            return [self._mask_members(child, kind, of_secret=of_secret) for child in value]
        if not is_object(value):
            return self._mask_text(value) if isinstance(value, str) else value
        is_named = any(_normalise(name) in _NAMING and self._is_secret(child) for name, child in value.items())
        masked: dict[str, Any] = {}
        for name, child in value.items():
            inner = self._kind_of(name, child, kind, of_secret)
            if inner is None or (is_named and _normalise(name) == "value"):
                masked[self._mask_text(name)] = self._hide(child)
            else:
                of_this = of_secret or (kind == "schemas by name" and self._is_secret(name))
                masked[self._mask_text(name)] = self._mask_members(child, inner, of_secret=of_this)
        return masked

    def _kind_of(self, name: str, value: object, kind: _Kind, of_secret: bool) -> _Kind | None:
        """Return what a member of an object of some kind is; None for a secret."""
        if kind == "schemas by name" and is_object(value):
            return "schema"
        if self._is_secret(name) or (of_secret and name in _SCHEMA_VALUES and value != ""):
            return None
        if kind == "data":
            return "schema" if _normalise(name).endswith("schema") else "data"
        return "schemas by name" if name in _SCHEMA_TABLES and is_object(value) else "schema"

    def _hide(self, value: object) -> Any:
        """Mask all texts and numbers in a value, whose structure stays."""
        if is_object(value):
            return {self._mask_text(name): self._hide(child) for name, child in value.items()}
        if is_array(value):
            return [self._hide(child) for child in value]
        if isinstance(value, str):
            self._repeated.add(value)
        return value if value is None or isinstance(value, bool) else MASK

    def _mask_text(self, text: str) -> str:
        if _AFTER_NAME.search(text):
            text = self._mask_values_in_text(text)
        if ":" in text:
            text = _AUTHORITY.sub(_mask_user, text)
        return _CREDENTIALS.sub(rf"\1\2{MASK}", text)

    def _mask_values_in_text(self, text: str) -> str:
        """Mask the values in a text that have the name of a secret: results often hold JSON or a URL as text."""
        plain = _normalise(text)
        if not any(name in plain for name in self._names):
            return text
        parts: list[str] = []
        end = place = 0
        is_named = False
        while (found := _NAME.search(text, place)) is not None:
            name, place = _normalise(found[1]), found.end()
            if name in _NAMING:
                paired = _PAIRED_NAME.match(text, place)
                is_named = paired is not None and self._is_secret(paired[1])
            elif name in self._names or (is_named and name == "value"):
                masked, after = self._hide_in_text(text, place, found[2] or "")
                parts += (text[end:place], masked)
                end = place = after
        return "".join([*parts, text[end:]])

    def _hide_in_text(self, text: str, start: int, name_quote: str) -> tuple[str, int]:
        """Return a mask for the value at a place of a text, and the place after the value."""
        opening = _OPENING.match(text, start)
        if opening is None:
            literal = _LITERAL.match(text, start) if name_quote else None
            if (found := literal or _WORD.match(text, start)) is None or (literal and literal[1]):
                return "", start
            if found is not literal:
                self._hide(found[1])
            return f"{name_quote}{MASK}{name_quote}", found.end()
        quote = name_quote
        if opening[0] in ("[", "{"):
            end = _find_closing_bracket(text, start, name_quote or '"')
        else:
            end, quote = _find_closing_quote(text, opening.end(), opening[0]), opening[0]
        self._repeat(text[start:end], len(quote).bit_length() - 1)
        return f"{quote}{MASK}{quote}", end

    def _repeat(self, value: str, times: int) -> None:
        """Look for the texts in a value of JSON from now on. Its quotes are escaped a number of times."""
        try:
            for _ in range(times):
                value = decode_json(f'"{value}"', str)
            self._hide(decode_json(value))
        except ValueError:  # Python's notation, or text that is cut off
            self._repeated.add(value.strip("\\\"'"))

    def _mask_repeated(self, value: Any) -> Any:
        if not self._repeated:
            return value
        if is_object(value):
            return {self._repeated.replace(name, MASK): self._mask_repeated(child) for name, child in value.items()}
        if is_array(value):
            return [self._mask_repeated(child) for child in value]
        return self._repeated.replace(value, MASK) if isinstance(value, str) else value


def _normalise(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _mask_user(found: re.Match[str]) -> str:
    user, _, host = found[2].rpartition("@")
    return f"{found[1]}{MASK}@{host}" if user else found[0]


def _find_closing_quote(text: str, start: int, opening: str) -> int:
    """Return the place after a string, or the end of a text in which it does not end.

    Each level of JSON within JSON has twice as many backslashes as the one around it, and one more. So a quote is part
    of the string if the number of backslashes before it, divided by the length of the opening quote, is odd.
    """
    quote, size = opening[-1], len(opening)
    inside = rf"(?:[^\\{quote}]++|\\++(?!{quote})|(?:\\{{{2 * size}}})*+\\{{{size},}}+{quote})*+"
    found = re.compile(rf"{inside}\\*+{quote}").match(text, start)
    return len(text) if found is None else found.end()


def _find_closing_bracket(text: str, start: int, quote: str) -> int:
    """Return the place after an object or array whose strings have such quotes, or the end of the text."""
    depth, place = 0, start
    while (found := _BRACKET.search(text, place)) is not None:
        brackets, place = found[0], found.end()
        if brackets in ('"', "'"):
            place = _find_closing_quote(text, place, quote[:-1] + brackets)
        else:
            depth += len(brackets) if brackets[0] in "[{" else -len(brackets)
            if depth <= 0:
                return place + depth
    return len(text)


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
    first, *middle, last = _QUOTED_MASK.split(recorded)
    if not value.startswith(first):
        return False
    place = len(first)
    for part in middle:
        if (found := value.find(part, place)) < 0:
            return False
        place = found + len(part)
    return value.endswith(last) and len(value) - len(last) >= place
