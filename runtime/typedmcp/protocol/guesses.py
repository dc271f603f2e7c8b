"""Attributes that people expect by guessing, or from an earlier version: the error says what to use."""

from __future__ import annotations

from typing import Any

__all__ = ["GuessedAttribute"]


class GuessedAttribute:
    """Raise an error about an attribute that a class does not have, and say what to use.

    A method `__getattr__` would slow down every attribute of the class.
    """

    def __init__(self, meant: str) -> None:
        self._meant = meant
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type) -> Any:
        text = f"{owner.__name__!r} object has no attribute {self._name!r}; {self._meant}"
        raise AttributeError(text, name=self._name, obj=value)
