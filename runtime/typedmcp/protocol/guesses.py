"""Attributes and options that people expect by guessing, or from another library: the error says what to use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typedmcp.errors import UsageError, moved
from typedmcp.protocol.option_checks import unknown_option
from typedmcp.satellites import other_names

__all__ = ["GuessedAttribute", "guessed", "reject_options"]


class GuessedAttribute:
    """Raise an error about an attribute that a class does not have, and say what to use, by `other_names.json`.

    A method `__getattr__` would slow down every attribute of the class.
    """

    def __init__(self, owner: str, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, value: object, owner: type) -> Any:
        meant, *use = other_names("attributes")[self._owner][self._name]
        text = f"{owner.__name__!r} object has no attribute {self._name!r}; "
        raise AttributeError(text + (moved("it", meant, *use) if use else meant), name=self._name, obj=value)


def guessed(owner: str, *names: str) -> dict[str, GuessedAttribute]:
    """Return attributes with these names, for the namespace of a class that is called `owner`."""
    return {name: GuessedAttribute(owner, name) for name in names}


def reject_options(names: Iterable[str], known: Iterable[str], of: str) -> None:
    """Raise `UsageError` for an option that is not known, with what is used for it here."""
    known = list(known)
    for name in sorted(set(names).difference(known)):
        meant = other_names("options").get(name)
        raise UsageError(f"unknown option {name!r}{of}; {meant}" if meant else unknown_option(name, known, of))
