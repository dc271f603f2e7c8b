"""Texts of a client without the values of variables, such as tokens, that were inserted into a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from typedmcp import ConnectOptions, Diagnostic
from typedmcp.building import deliver_diagnostic
from typedmcp.errors import Error

__all__ = ["HiddenValues"]

_SHORTEST: Final = 4
"""Characters from which on a value is hidden: shorter ones would be found everywhere."""


class HiddenValues:
    """Values that no error and no diagnostic of a client shows, wherever they are made. False if there are none."""

    def __init__(self, values: Iterable[str]) -> None:
        texts = {text for value in values if len(value) >= _SHORTEST for text in (value, repr(value)[1:-1])}
        self._texts = sorted(texts, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def hide(self, text: str) -> str:
        """Return a text with "…" in place of each value."""
        for each in self._texts:
            text = text.replace(each, "…")
        return text

    def hide_in_error(self, error: Error) -> Error:
        """Return an error, without the values in its text and its attributes."""
        error.args = tuple([self.hide(each) if isinstance(each, str) else each for each in error.args])
        vars(error).update({name: self.hide(each) for name, each in vars(error).items() if isinstance(each, str)})
        return error

    def hide_in_options(self, options: ConnectOptions) -> ConnectOptions:
        """Return options of `connect` with which the client hides the values."""
        change, on_diagnostic = options.get("change_error"), options.get("on_diagnostic")

        def change_error(error: Error) -> Error:
            hidden = self.hide_in_error(error)
            return hidden if change is None else change(hidden)

        def report(diagnostic: Diagnostic) -> None:
            cause = self.hide_in_error(diagnostic.error) if isinstance(diagnostic.error, Error) else diagnostic.error
            hidden = msgspec.structs.replace(diagnostic, text=self.hide(diagnostic.text), error=cause)
            deliver_diagnostic(hidden, on_diagnostic)

        return {**options, "change_error": change_error, "on_diagnostic": report}
