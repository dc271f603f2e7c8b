"""Checks of options that a type checker may not have seen, such as values from the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from typedmcp.errors import UsageError
from typedmcp.limits import Limits
from typedmcp_schemas.annotations import annotations_of

__all__ = [
    "check_extensions", "check_flag", "check_grace", "check_integer", "check_limits", "check_list", "check_names",
    "check_seconds", "check_text", "option_names", "unknown_option",
]  # fmt: skip


@cache
def option_names(kind: type) -> tuple[str, ...]:
    """Return the keys of a TypedDict of options, in their order."""
    return tuple(annotations_of(kind))


def unknown_option(name: str, known: Iterable[str], of: str = "") -> str:
    """Return the text of an error about an unknown option, with the known ones and the one that may be meant."""
    from difflib import get_close_matches  # nothing was wrong before

    names = [*known]
    close = get_close_matches(name, names, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"unknown option {name!r}{of}; known: {', '.join(names)}{meant}"


def check_names(subject: str, options: Mapping[str, Any], known: type, remedy: str = "") -> None:
    """Raise `TypeError` for an option that is not a key of the TypedDict. `subject` is what has the options."""
    names = option_names(known)
    if unknown := options.keys() - names:
        raise TypeError(unknown_option(min(unknown), sorted(names), f" of {subject}") + remedy)


def check_seconds(name: str, value: object, *, is_positive: bool = False) -> None:
    """Raise `UsageError` if an option is not a number, or not positive if it has to be."""
    if not isinstance(value, (int, float)):
        raise UsageError(f"{name} must be a number of seconds, not {value!r}")
    if is_positive and not value > 0:
        raise UsageError(f"{name} must be positive, not {value:g}")


def check_grace(grace: Any) -> None:
    """Raise `UsageError` if the seconds for what ends late are not valid."""
    check_seconds("grace", grace)
    if grace < 0:
        raise UsageError(f"grace must be at least 0 seconds, not {grace:g}")


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EXTENSION_ID: Final = rf"{_LABEL}(?:\.{_LABEL})*/(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"


def check_extensions(extensions: Iterable[str]) -> None:
    """Raise `UsageError` for an identifier of an extension that is not a prefix and a name.

    https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation
    """
    for name in extensions:
        if not re.fullmatch(_EXTENSION_ID, name):
            raise UsageError(
                f"capabilities: {name!r} cannot identify an extension; expected a prefix of labels with dots, a slash, "
                "and a name, such as com.example/charts"
            )


def check_flag(name: str, value: object) -> None:
    """Raise `UsageError` if an option is neither True nor False."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {value!r}")


def check_integer(name: str, value: object) -> None:
    """Raise `UsageError` if an option is not an integer."""
    if not isinstance(value, int):
        raise UsageError(f"{name} must be an integer, not {value!r}")


def check_text(name: str, value: object) -> None:
    """Raise `UsageError` if an option is not a string."""
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a string, not {value!r}")


def check_list(name: str, value: object) -> None:
    """Raise `UsageError` if an option is one string instead of a list of them."""
    if isinstance(value, str):
        raise UsageError(f"{name} must be a list, such as [{value!r}], not a string")


def check_limits(limits: object) -> None:
    """Raise `UsageError` if the option `limits` is not a `Limits`, such as a dict."""
    if not isinstance(limits, Limits):
        raise UsageError(f"limits must be a Limits, such as Limits(threads=8), not {limits!r}")
