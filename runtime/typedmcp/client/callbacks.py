"""What a server may ask of a client: its model, the person before it, its folders.

Written once, in the dialect. On a modern wire the questions come in an `InputRequiredResult`, on older ones as
requests of the server's.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeAlias, cast

from mcpspec._support.objects import is_array, is_object
from mcpspec._support.structs import decode, from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.dispatch import is_awaitable
from typedmcp.edge.revisions import DIALECT, methods, types
from typedmcp.errors import DecodeError, Error, MethodNotFound, RemoteError, UsageError, in_params

__all__ = ["Callbacks", "Elicit", "Roots", "Sample", "with_defaults"]

D = dialect.structs

Question: TypeAlias = "D.ElicitRequestFormParams | D.ElicitRequestURLParams"

Sample: TypeAlias = Callable[
    ["D.CreateMessageRequestParams"], "D.CreateMessageResult | Awaitable[D.CreateMessageResult]"
]
"""Asks the model."""

Elicit: TypeAlias = Callable[
    [Question], "D.ElicitResult | Mapping[str, Any] | Awaitable[D.ElicitResult | Mapping[str, Any] | None] | None"
]
"""Asks the person. A mapping accepts with these contents and the form's defaults for others, None declines."""

Roots: TypeAlias = "Sequence[str | D.Root] | Callable[[], Sequence[str | D.Root] | Awaitable[Sequence[str | D.Root]]]"
"""The folders, as URIs or roots, or what gives them."""


def with_defaults(params: Question, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a form is filled in with: `content`, and the defaults of the fields that it leaves out."""
    schema = to_builtins(params).get("requestedSchema", {})
    fields: dict[str, Any] = schema.get("properties", {})
    defaults = {name: field["default"] for name, field in fields.items() if is_object(field) and "default" in field}
    return {**defaults, **(content or {})}


@dataclass(frozen=True)
class Callbacks:
    """What a client answers questions with; without one it has not the capability."""

    sample: Sample | None = None
    elicit: Elicit | None = None
    roots: Roots | None = None
    more: Mapping[str, Any] | None = None
    """Capabilities beside those that follow from the callbacks, such as `{"sampling": {"tools": {}}}`."""

    def capabilities(self, revision: str) -> Any:
        """What the client declares, in the types of a revision."""
        declared: dict[str, Any] = {}
        if self.sample is not None:
            declared["sampling"] = {}
        if self.elicit is not None:
            has_modes = hasattr(types(revision), "ElicitRequestURLParams")
            declared["elicitation"] = {"form": {}, "url": {}} if has_modes else {}
        if self.roots is not None:
            declared["roots"] = {} if revision == DIALECT else {"listChanged": True}
        return from_builtins({**declared, **(self.more or {})}, types(revision).ClientCapabilities)

    async def answer(self, request: Any) -> Any:
        """The result for one question, in the dialect.

        Raises `MethodNotFound` for a question that the client did not declare to answer.
        """
        if isinstance(request, D.CreateMessageRequest) and self.sample is not None:
            return _checked(await _given(self.sample(request.params)), D.CreateMessageResult, "sample")
        if isinstance(request, D.ElicitRequest) and self.elicit is not None:
            return _elicited(request.params, await _given(self.elicit(request.params)))
        if isinstance(request, D.ListRootsRequest) and self.roots is not None:
            given = await _given(self.roots()) if callable(self.roots) else self.roots
            return D.ListRootsResult(roots=[D.Root(uri=root) if isinstance(root, str) else root for root in given])
        raise MethodNotFound(str(request.method))

    async def answer_older(self, method: str, params: bytes, revision: str) -> Any:
        """The result for a request of an older server's, in the types of its revision.

        Raises `RemoteError` for what it is answered with instead.
        """
        record = methods(revision).SERVER_REQUESTS.get(method)
        if method == "ping":
            return {}
        if record is None or method not in _REQUESTS:
            raise MethodNotFound(method)
        try:
            plain: dict[str, Any] = {} if record.params is NoneType else to_builtins(decode(params, record.params))
            request = _newer(method, plain)
        except DecodeError as error:
            raise in_params(error) from error
        result = to_builtins(await self.answer(request))
        return from_builtins(_older(method, result, revision), record.result)


_REQUESTS = {name: record.message for name, record in dialect.methods.METHODS.items() if record.kind == "input"}
"""What a server may ask, by method."""


def _newer(method: str, plain: dict[str, Any]) -> Any:
    """An older request in the dialect."""
    kept = {key: value for key, value in plain.items() if key not in ("_meta", "task", "elicitationId")}
    if method == "elicitation/create":
        kept = {"mode": "form", **kept}
    return from_builtins({"method": method, "params": kept}, _REQUESTS[method])


def _older(method: str, plain: dict[str, Any], revision: str) -> dict[str, Any]:
    """A result as an older revision has it: a message has one content there, and some none of the newer kinds."""
    kept = {key: value for key, value in plain.items() if key != "resultType"}
    if method == "sampling/createMessage" and not hasattr(types(revision), "ToolUseContent"):
        content = kept["content"]
        if is_array(content):
            kept["content"] = content[0] if content else {"type": "text", "text": ""}
    return kept


def _elicited(params: Question, given: Any) -> D.ElicitResult:
    if given is None:
        return D.ElicitResult(action="decline")
    if isinstance(given, D.ElicitResult):
        return given
    if not isinstance(given, Mapping):
        raise UsageError(f"elicit gave {type(given).__name__}, expected ElicitResult, a mapping or None")
    if isinstance(params, D.ElicitRequestURLParams):
        return D.ElicitResult(action="accept")
    content = with_defaults(params, cast("Mapping[str, Any]", given))
    return from_builtins({"action": "accept", "content": content}, D.ElicitResult)


def _checked(given: Any, kind: type, name: str) -> Any:
    if not isinstance(given, kind):
        raise UsageError(f"{name} gave {type(given).__name__}, expected {kind.__name__}")
    return given


async def _given(value: Any) -> Any:
    return await value if is_awaitable(value) else value


def refusal(error: BaseException, method: str) -> RemoteError:
    """What a server is told when a callback fails."""
    if isinstance(error, RemoteError):
        return error
    return RemoteError(-32603, f"the client failed in {method}" if not isinstance(error, Error) else str(error))
