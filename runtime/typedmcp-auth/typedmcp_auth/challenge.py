"""The header `WWW-Authenticate`.

https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Challenge", "find_challenge", "parse_challenges"]

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105  # a pattern
_SCHEME: Final = re.compile(_TOKEN)
_PARAMETER: Final = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))[ \t]*(?=,|\Z)')
_TOKEN68: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*[ \t]*(?=,|\Z)")
_COMMAS: Final = re.compile(r"[ \t,]*")
_MAX_CHARACTERS: Final = 8192
"""Characters of a header that is parsed. Longer ones count as invalid."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """One challenge: its scheme in lower case, and its parameters by name in lower case."""

    scheme: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that the request needs."""
        return tuple(self.parameters.get("scope", "").split())

    @property
    def is_about_proof(self) -> bool:
        """True if the server rejects the proof of a request, and not its token."""
        return self.parameters.get("error") in ("invalid_dpop_proof", "use_dpop_nonce")


def find_challenge(header: str) -> Challenge | None:
    """Return the challenge for access tokens, or None if the header has none or is not valid.

    A server that takes bearer tokens and tokens that are bound to a key (DPoP) sends two challenges. The result has the
    parameters of both, and the scheme `bearer`; the scheme `dpop` says that the server takes bound tokens only.
    """
    found = {one.scheme: one for one in reversed(parse_challenges(header))}
    bearer, bound = found.get("bearer"), found.get("dpop")
    if bearer is None or bound is None:
        return bearer or bound
    return Challenge("bearer", {**bound.parameters, **bearer.parameters})


def parse_challenges(header: str) -> list[Challenge]:
    """Return all challenges of a header, or none if one of them is not valid or names a parameter twice."""
    found: list[Challenge] = []
    if len(header) > _MAX_CHARACTERS:
        return found
    position = _skip_commas(header, 0)
    while position < len(header):
        parameter = _PARAMETER.match(header, position) if found else None
        if parameter is not None:
            if not _add_parameter(found[-1], parameter):
                return []
            position = parameter.end()
        else:
            scheme = _SCHEME.match(header, position)
            if scheme is None or not _ends_scheme(header, scheme.end()):
                return []
            found.append(Challenge(scheme[0].lower()))
            position = _skip_token68(header, scheme.end())
        position = _skip_commas(header, position)
    return found


def _add_parameter(challenge: Challenge, match: re.Match[str]) -> bool:
    name = match[1].lower()
    value = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
    return challenge.parameters.setdefault(name, value) is value


def _ends_scheme(header: str, position: int) -> bool:
    return position == len(header) or header[position] in " ,"


def _skip_token68(header: str, position: int) -> int:
    """Skip the credentials of schemes such as Negotiate, which are no parameters."""
    start = position + len(header[position:]) - len(header[position:].lstrip(" "))
    found = _TOKEN68.match(header, start)
    return found.end() if found is not None and start > position else start


def _skip_commas(header: str, position: int) -> int:
    found = _COMMAS.match(header, position)
    return position if found is None else found.end()
