"""Attempts: what a call carries from one attempt to the next, in its signed state.

An answer counts for the question that it was given to, and for no other: the state has a digest of the whole content of
each question. If a handler asks something else under the same key, no earlier answer counts, and the client is asked.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.errors import DecodeError
from typedmcp.protocol.backends import to_plain
from typedmcp.revisions.features import DIALECT, structs_of

__all__ = [
    "AskedQuestion", "Attempt", "AttemptState", "GivenAnswer", "InputRequested", "is_input_required",
    "remove_unknown_answers", "requested_input",
]  # fmt: skip

D = dialect.structs


class InputRequested(BaseException):  # control flow, not an error: the client repeats its request
    """Ends an attempt on a modern revision. The client repeats its request with the requested input.

    It derives from `BaseException`, so that `except Exception` in a handler does not catch it.
    """

    def __init__(self, requests: dict[str, Any]) -> None:
        super().__init__(requests)
        self.requests = requests


class AskedQuestion(msgspec.Struct, array_like=True, frozen=True):
    """A question that the client was asked in the last attempt."""

    digest: str
    method: str
    form: dict[str, Any] | None = None
    """The schema of the form that the answer has to fit, if there is one."""

    @classmethod
    def from_request(cls, request: Any) -> AskedQuestion:
        """Return the question of an input request."""
        method, params = _content_of(request)
        return cls(_digest(method, params), method, params.get("requestedSchema"))

    def find_fault(self, answer: Any) -> str | None:
        """Return what is wrong with an answer in plain JSON; None if it fits the question."""
        try:
            result: Any = D.from_builtins(answer, dialect.methods.INPUT_REQUESTS[self.method].result)
        except DecodeError as error:
            return str(error)
        if self.form is None:
            return None
        from typedmcp.protocol.input_checks import find_answer_fault  # here, since most servers never ask

        return find_answer_fault(self.form, result)


class GivenAnswer(msgspec.Struct, array_like=True, frozen=True):
    """An answer of the client, which fits the question with this digest."""

    digest: str
    value: Any
    """The answer in plain JSON."""


class AttemptState(msgspec.Struct):
    """The content of the signed state between two attempts."""

    answers: dict[str, GivenAnswer]
    """The answers to questions of earlier attempts, by key."""
    asked: dict[str, AskedQuestion]
    """The questions of the last attempt, by key."""
    rounds: int
    """The number of attempts so far."""
    handler_state: str | None
    """The state of a handler that returns its `InputRequiredResult` itself."""


class Attempt:
    """One attempt at a request, with the answers that the client gave in earlier ones."""

    __slots__ = ("_answers", "_asked", "_ordinals", "changed", "handler_state", "rounds")

    def __init__(self, state: AttemptState | None = None) -> None:
        self._answers: dict[str, GivenAnswer] = {} if state is None else state.answers
        self._asked: Mapping[str, AskedQuestion] = {} if state is None else state.asked
        self.rounds: int = 0 if state is None else state.rounds
        """The number of attempts before this one."""
        self.handler_state: str | None = None if state is None else state.handler_state
        self.changed: dict[str, None] = {}
        """The keys whose answers did not count, since the handler asks something else now."""
        self._ordinals: dict[str, int] = {}

    @property
    def answers(self) -> Mapping[str, GivenAnswer]:
        """The answers of the client so far, by key."""
        return self._answers

    def next_key(self, method: str) -> str:
        """Return the key of the next input request that has none: its method and its position among those."""
        self._ordinals[method] = number = self._ordinals.get(method, 0) + 1
        return f"{method}#{number}"

    def take_answers(self, responses: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
        """Take the answers to the questions of the last attempt.

        Return why the others are not taken, by key: those to no question, and those that do not fit their question. An
        answer of an earlier attempt is part of the signed state, and cannot be replaced.
        """
        unasked: dict[str, str] = {}
        unfit: dict[str, str] = {}
        for key, response in responses.items():
            question, answer = self._asked.get(key), to_plain(response)
            if question is None:
                unasked[key] = "answered already" if key in self._answers else "not asked in the last attempt"
            elif (fault := question.find_fault(answer)) is not None:
                unfit[key] = fault
            else:
                self._answers[key] = GivenAnswer(question.digest, answer)
        return unasked, unfit

    def answer_to(self, key: str, request: Any) -> Any:
        """Return the client's answer to an input request; None if it has not answered exactly this question."""
        if (given := self._answers.get(key)) is None:
            return None
        if given.digest != _digest(*_content_of(request)):
            self.changed[key] = None
            return None
        return D.from_builtins(given.value, dialect.methods.INPUT_REQUESTS[request.method].result)

    def next_state(self, requests: Mapping[str, Any], handler_state: str | None) -> AttemptState:
        """Return the state for the next attempt, in which the client answers these input requests."""
        asked = {key: AskedQuestion.from_request(request) for key, request in requests.items()}
        answers = {key: answer for key, answer in self._answers.items() if key not in asked}
        return AttemptState(answers, asked, self.rounds + 1, handler_state)


def is_input_required(result: object) -> bool:
    """Return whether a handler's result requests input, in either library."""
    return type(result).__name__ == "InputRequiredResult" and hasattr(result, "input_requests")


def requested_input(error: BaseException) -> dict[str, Any] | None:
    """Return the input requests that ended a handler, also within exception groups; None for other errors."""
    if isinstance(error, InputRequested):
        return error.requests
    if not isinstance(error, BaseExceptionGroup):
        return None
    requests: dict[str, Any] = {}
    group = cast("BaseExceptionGroup[BaseException]", error)
    for each in group.exceptions:
        found = requested_input(each)
        if found is None:
            return None
        requests.update(found)
    return requests


def remove_unknown_answers(responses: dict[str, Any]) -> list[str]:
    """Remove the answers in plain JSON that are none of the protocol's, and return their keys."""
    kind = structs_of(DIALECT).InputResponse
    unknown = [key for key, answer in responses.items() if not _fits(answer, kind)]
    for key in unknown:
        del responses[key]
    return unknown


def _fits(value: Any, kind: Any) -> bool:
    try:
        from_builtins(value, kind)
    except DecodeError:
        return False
    return True


def _content_of(request: Any) -> tuple[str, dict[str, Any]]:
    """Return method and parameters of an input request as plain JSON, without `_meta`, such as trace context."""
    params: dict[str, Any] = {} if request.params is None else to_builtins(request.params)
    return request.method, {name: value for name, value in params.items() if name != "_meta"}


def _digest(method: str, params: dict[str, Any]) -> str:
    text = msgspec.json.encode([method, params], order="deterministic")
    return base64.b64encode(hashlib.sha256(text).digest()).decode()
