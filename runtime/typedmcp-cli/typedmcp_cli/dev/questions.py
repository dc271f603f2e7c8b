"""Questions of a server that a person answers on the page: elicitation and sampling."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any, TypeAlias

from typedmcp import types
from typedmcp.building import find_answer_fault, is_object
from typedmcp.errors import RemoteError
from typedmcp_cli.dev.events import EventLog
from typedmcp_cli.elicitation import USER_REJECTED

__all__ = ["AnswerError", "Questions"]


Answer: TypeAlias = Mapping[str, Any]


class AnswerError(ValueError):
    """An answer that does not fit its question."""


class Questions:
    """The open questions. A question that the server withdraws, or whose connection ends, leaves the page."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._ids = count(1)
        self._open: dict[str, tuple[asyncio.Future[Answer], types.ElicitRequestFormParams | None]] = {}

    async def fill_form(self, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        """Ask for the values of a form."""
        answer = await self._ask("form", types.to_builtins(params), params)
        content = answer["content"] if answer["action"] == "accept" else None
        return types.ElicitResult(action=answer["action"], content=content)

    async def ask_consent(self, params: types.ElicitRequestURLParams) -> types.ElicitResult:
        """Ask for consent to open a URL."""
        return types.ElicitResult(action=(await self._ask("url", types.to_builtins(params)))["action"])

    async def sample(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Ask for the message that a model would write."""
        answer = await self._ask("sampling", types.to_builtins(params))
        if answer["action"] != "accept":
            raise RemoteError(USER_REJECTED, "the user rejected the sampling request")
        text, model = str(answer.get("text", "")), str(answer.get("model") or "a person")
        content = types.TextContent(text=text)
        return types.CreateMessageResult(role="assistant", model=model, content=content, stop_reason="endTurn")

    async def _ask(self, kind: str, params: Any, form: types.ElicitRequestFormParams | None = None) -> Answer:
        id = str(next(self._ids))
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[id] = future, form
        self._events.set(f"question {id}", "question", {"id": id, "kind": kind, "params": params})
        try:
            return await future
        finally:
            del self._open[id]
            self._events.unset(f"question {id}", "answered", {"id": id})

    def answer(self, id: str, answer: Answer) -> None:
        """Answer a question. Raises `AnswerError` if it is no longer open, or if the answer does not fit."""
        if id not in self._open:
            raise AnswerError("the question is no longer open")
        future, form = self._open[id]
        if answer.get("action") not in ("accept", "decline", "cancel"):
            raise AnswerError("action: expected accept, decline or cancel")
        if form is not None and answer["action"] == "accept":
            _check_form(form, answer.get("content"))
        if not future.done():
            future.set_result(answer)


def _check_form(form: types.ElicitRequestFormParams, content: object) -> None:
    if not is_object(content):
        raise AnswerError("content: expected an object")
    schema: Any = types.to_builtins(form.requested_schema)
    fault = find_answer_fault(schema, types.ElicitResult(action="accept", content=content))
    if fault is not None:
        raise AnswerError(fault)
