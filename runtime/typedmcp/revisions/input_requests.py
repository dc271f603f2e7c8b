"""Conversion of input requests and their results between the dialect and older revisions.

In the dialect a server asks for input inside a result; on a legacy revision it sends the client a request. The
compiled converters convert what they can, and the functions here the rest, as plain JSON: a person or a model takes
much longer to answer than any conversion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

import msgspec

from mcpspec.support.converters import DroppedFields
from mcpspec.support.objects import find_differences, is_array
from mcpspec.support.rules import downgrade_elicitation, downgrade_sampling, has_content_lists
from mcpspec.support.structs import decode, from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.revisions.conversions import downgrade, downgrader, upgrader
from typedmcp.revisions.features import methods_of, structs_of

__all__ = [
    "REQUEST_DOWNGRADES", "downgrade_request", "downgrade_result", "is_compiled", "upgrade_request", "upgrade_result",
]  # fmt: skip

Json: TypeAlias = "dict[str, Any]"

# Requests, from server to client


def downgrade_request(method: str, params: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert the parameters of a request for input to the types of a legacy revision.

    Raises `DecodeError` if the revision cannot express them.
    """
    if is_compiled(method, revision):
        params = downgrade(params, revision, dropped)
    plain = to_builtins(params)
    adapted = (
        REQUEST_DOWNGRADES[method](plain, structs_of(revision), dropped) if method in REQUEST_DOWNGRADES else plain
    )
    if adapted.get("mode") == "url":
        adapted = {**adapted, "elicitationId": os.urandom(16).hex()}
    older = from_builtins(adapted, methods_of(revision).METHODS[method].exact.params)
    dropped += find_differences(adapted, to_builtins(older), "params")
    return older


def is_compiled(method: str, revision: str) -> bool:
    """Return whether requests of a method are converted to a revision by a compiled converter, with its rules."""
    return method == "sampling/createMessage" and has_content_lists(structs_of(revision))


def upgrade_request(method: str, params: bytes, revision: str) -> Any:
    """Decode the parameters of a legacy server's request for input, and return the request of the dialect.

    Raises `DecodeError` for parameters that the revision does not allow.
    """
    record = methods_of(revision).SERVER_REQUESTS[method].exact
    known = dialect.methods.INPUT_REQUESTS[method]
    exact: Any = {} if record.params is NoneType else decode(params, record.params)
    if isinstance(exact, msgspec.Struct):
        exact = _upgrade(exact, known.params, revision)
    plain: Json = to_builtins(exact)
    kept = {key: value for key, value in plain.items() if key not in ("_meta", "task", "elicitationId")}
    return from_builtins({"method": method, "params": kept}, known.message)


def _upgrade(value: Any, target: Any, revision: str) -> Any:
    convert = upgrader(revision).method_between(type(value), target)
    return value if convert is None else convert(value, lost=[])


REQUEST_DOWNGRADES: Final[Mapping[str, Callable[[Json, Any, DroppedFields], Json]]] = {
    "elicitation/create": downgrade_elicitation,
    "sampling/createMessage": downgrade_sampling,
}
"""The functions that adapt the parameters of a method, as plain JSON, to a legacy revision."""


# Results, from client to server


def upgrade_result(method: str, value: Any, revision: str) -> Any:
    """Convert the result of a legacy client, as plain JSON, to the dialect. Raises `DecodeError` if it is invalid."""
    result: Any = dialect.methods.INPUT_REQUESTS[method].result
    exact = getattr(structs_of(revision), result.__name__)
    return from_builtins(to_builtins(_upgrade(from_builtins(value, exact), result, revision)), result)


def downgrade_result(method: str, result: Any, revision: str) -> Any:
    """Convert a client's result to the types of a legacy revision.

    Raises `DecodeError` if the revision cannot express it.
    """
    record = methods_of(revision).SERVER_REQUESTS[method].exact
    known: Any = dialect.methods.INPUT_REQUESTS[method].result
    conversion = downgrader(revision)
    convert = conversion.method(known.__name__)
    kept: Json = to_builtins(result if convert is None else convert(result, lost=[]))
    if method == "sampling/createMessage" and not has_content_lists(structs_of(revision)):
        content = result.content  # a message has one content there
        if is_array(content):
            content = content[0] if content else dialect.structs.TextContent(text="")
        # A use of a tool is rejected below: a text in its place would be taken for an answer.
        kept["content"] = to_builtins(conversion.of_class[type(content)](content, lost=[]))
    return from_builtins(kept, record.result)
