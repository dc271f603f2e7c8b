"""Checks of options that a type checker may not have seen, such as values from the environment."""

from __future__ import annotations

from typedmcp.errors import UsageError
from typedmcp.limits import Limits

__all__ = ["check_integer", "check_limits", "check_list", "check_seconds", "check_text"]


def check_seconds(name: str, value: object) -> None:
    """Raise `UsageError` if an option is not a number."""
    if not isinstance(value, (int, float)):
        raise UsageError(f"{name} must be a number of seconds, not {value!r}")


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
