"""Results that handlers return as JSON, which is sent as it is."""

from __future__ import annotations

from typing import Any

import msgspec

from mcpspec.support.converters import Converter, DroppedFields
from typedmcp.errors import UsageError

__all__ = ["JsonResult", "json_result_reader"]


class JsonResult(msgspec.Struct, frozen=True):
    """A result as JSON of a revision, such as a gateway has it of a server. A handler may return it for any request.

    It is sent as it is, with members that no schema knows. The request must have the same revision: otherwise nothing
    is sent, and the client gets an internal error.
    """

    data: msgspec.Raw | dict[str, Any]
    """The result: encoded, or a dict. A dict gets the name of the server in its `_meta` where the revision has that."""
    revision: str
    """The protocol revision that the result belongs to, such as `2025-11-25`."""


def json_result_reader(revision: str) -> Converter:
    """Return the converter of such results for requests of a revision: it raises `UsageError` for another revision."""

    def read(value: Any, lost: DroppedFields) -> Any:  # noqa: ARG001  # nothing is converted
        if value.revision != revision:
            raise UsageError(f"a JsonResult of {value.revision} cannot answer a request of {revision}")
        return value.data

    return read
