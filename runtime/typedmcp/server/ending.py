"""Functions that are called at the end of a connection or session."""

from __future__ import annotations

import logging
from collections.abc import Callable

from typedmcp.protocol.text import log_failure

__all__ = ["EndCallbacks"]


class EndCallbacks:
    """The functions for the end of one connection or session."""

    def __init__(self) -> None:
        self._functions: dict[object, Callable[[], object]] = {}

    def add(self, function: Callable[[], object]) -> Callable[[], None]:
        """Add a function. Return one that removes it."""
        key = object()
        self._functions[key] = function

        def remove() -> None:
            self._functions.pop(key, None)

        return remove

    def call(self) -> None:
        """Call each function once. Errors that they raise are logged."""
        while self._functions:
            _, function = self._functions.popitem()
            try:
                function()
            except Exception as error:
                log_failure(logging.ERROR, "a function for the end of a session failed", error)
