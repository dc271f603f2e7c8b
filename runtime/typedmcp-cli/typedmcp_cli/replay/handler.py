"""A server that answers its clients from a recording, on any revision."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Unpack, cast

import msgspec

import typedmcp.dialect.methods as methods
from mcpspec.features import LOG_LEVELS
from typedmcp import Context, ServerConfig, ServerOptions, types
from typedmcp.building import is_array, is_object
from typedmcp.errors import INTERNAL_ERROR, RemoteError
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp_cli.recording.masks import MASK, matches_masked
from typedmcp_cli.recording.reader import RecordedRequest, RecordedStep, Recording, matches_request, read_recording
from typedmcp_cli.replay.values import request_of, result_of, server_capabilities, show_json

__all__ = ["ReplayHandler", "replay_server"]

_METHODS: Final = {
    method.name: method.handler
    for method in methods.CLIENT_REQUESTS.values()
    if method.name not in ("server/discover", "subscriptions/listen")
}
"""The methods that a recording can answer."""
_CAPABILITIES: Final = {
    "tools": "tools", "prompts": "prompts", "resources": "resources", "completion": "completions", "logging": "logging",
}  # fmt: skip
"""The capability of a server that the requests with a prefix belong to."""
_MAX_SHOWN: Final = 5
"""Recorded requests that an error about an unknown one shows."""
_MAX_PROBLEMS: Final = 1000


class ReplayHandler:
    """Answers requests from a recording. A request is the same if method and parameters are, apart from `_meta`.

    The same request, made several times, gets the recorded responses in their order, and then the last one again.
    Progress, log messages, changes and questions of the server come with the response, as they were recorded.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording: Recording = recording
        self.problems: list[str] = []
        """Requests that the recording does not have, and answers to questions that differ from the recorded ones."""
        self._used: set[int] = set()
        """The lines of the exchanges that were replayed."""
        recorded = {exchange.method for exchange in recording.exchanges}
        offered: Any = recording.server.get("capabilities")
        for method, name in _METHODS.items():
            if method in recorded or (is_object(offered) and _CAPABILITIES.get(method.partition("/")[0]) in offered):
                setattr(self, name, self._replay)
        if recorded - _METHODS.keys():
            self.fallback: Callable[[Any, Context], Any] = self._replay_unknown

    @property
    def unused(self) -> list[RecordedRequest]:
        """The recorded requests that no client has made yet."""
        return [each for each in self.recording.exchanges if each.line not in self._used]

    async def _replay(self, params: Any, ctx: Context) -> Any:  # noqa: ARG002  # compared as they were sent
        exchange = self._take(ctx)
        if exchange is None:
            return self._empty_list(ctx)
        await self._replay_steps(exchange, ctx)
        self._used.add(exchange.line)
        if exchange.error is not None:
            raise RemoteError.from_wire(exchange.error)
        result = result_of(self.recording, exchange)
        self._publish(exchange.later, ctx)
        return result

    async def _replay_unknown(self, params: Any, ctx: Context) -> Any:  # noqa: ARG002
        """Replay a request of a method that the dialect does not have: its result is passed on unchanged."""
        exchange = self._take(ctx)
        if exchange is None:
            raise self._unknown(ctx)
        await self._replay_steps(exchange, ctx)
        self._used.add(exchange.line)
        if exchange.error is not None:
            raise RemoteError.from_wire(exchange.error)
        return exchange.result

    def _take(self, ctx: Context) -> RecordedRequest | None:
        """Return the recorded exchange of a request: the first that was not replayed, or the last of all."""
        params = _params_of(ctx)
        found = [each for each in self.recording.exchanges if matches_request(each, ctx.method, params)]
        if not found:
            return None
        fresh = [each for each in found if each.line not in self._used]
        exchange = fresh[0] if fresh else found[-1]
        if not any(step.questions for step in exchange.steps):  # otherwise further attempts have to find it
            self._used.add(exchange.line)
        return exchange

    def _empty_list(self, ctx: Context) -> Any:
        """Return an empty list where no list was recorded: clients ask for lists by themselves."""
        record = methods.CLIENT_REQUESTS[ctx.method]
        if ctx.method.endswith("/list") and not any(each.method == ctx.method for each in self.recording.exchanges):
            member = ctx.method.split("/")[-2]
            plain = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            name = "resourceTemplates" if member == "templates" else member
            return types.from_builtins({**plain, name: []}, record.result)
        raise self._unknown(ctx)

    def _unknown(self, ctx: Context) -> RemoteError:
        params = _params_of(ctx)
        shown = {name: value for name, value in params.items() if name != "_meta"}
        known = [each for each in self.recording.exchanges if each.method == ctx.method]
        listed = "; ".join(show_json(each.params) for each in known[:_MAX_SHOWN])
        more = f", and {len(known) - _MAX_SHOWN} more" if len(known) > _MAX_SHOWN else ""
        recorded = f"recorded are {listed}{more}" if known else f"no {ctx.method} is recorded"
        text = f"{os.path.basename(self.recording.file)} has no {ctx.method} with {show_json(shown)}; {recorded}"
        self._report(f"{text}. Record it again if the client has changed")
        return RemoteError(INTERNAL_ERROR, text)

    def _report(self, problem: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS and problem not in self.problems:  # each attempt meets it again
            self.problems.append(problem)

    # What belongs to an exchange

    async def _replay_steps(self, exchange: RecordedRequest, ctx: Context) -> None:
        """Send what the server sent before its response. On modern revisions, each attempt continues the last one."""
        asked = 0
        rounds = ctx.attempt.rounds if ctx.attempt is not None else 0
        for step in exchange.steps:
            if step.questions:
                await self._ask(exchange, step, ctx)
                asked += 1
            elif step.notification is not None and asked >= rounds:
                await self._notify(step.notification, ctx)
        if exchange.result is None and exchange.error is None:
            if exchange.is_cancelled:
                await asyncio.Event().wait()  # until this client cancels it, too
            raise RemoteError(INTERNAL_ERROR, f"{self.recording.file}: no response to {exchange} is recorded")

    async def _ask(self, exchange: RecordedRequest, step: RecordedStep, ctx: Context) -> None:
        requests = {key: request_of(question, exchange.revision) for key, question in step.questions.items()}
        answers = await ctx.ask(requests)
        for key, question in step.questions.items():
            answer = types.to_builtins(answers[key])
            recorded = question.answer
            same = {name: answer.get(name) for name in recorded} if is_object(recorded) else None
            if same is not None and not matches_masked(recorded, same):
                text = f"{exchange}: the answer to {question.method} is {show_json(answer)}"
                self._report(f"{text}, and {show_json(recorded)} in the recording")

    async def _notify(self, message: dict[str, Any], ctx: Context) -> None:
        params: Any = message.get("params")
        params = params if is_object(params) else {}
        method = message["method"]
        if method == "notifications/progress":
            progress, total, text = (params.get(name) for name in ("progress", "total", "message"))
            if isinstance(progress, int | float):
                await ctx.progress(progress, total, text)
        elif method == "notifications/message":
            if (level := params.get("level")) in LOG_LEVELS:
                await ctx.log(level, params.get("data"), params.get("logger"))
        else:
            self._publish([message], ctx)

    def _publish(self, messages: list[dict[str, Any]], ctx: Context) -> None:
        """Publish recorded changes to the clients that listen for them."""
        for message in messages:
            method, params = message.get("method"), message.get("params")
            if method == "notifications/resources/updated" and is_object(params):
                ctx.changes.resource_updated(str(params.get("uri")))
            elif method == "notifications/tools/list_changed":
                ctx.changes.tools_changed()
            elif method == "notifications/prompts/list_changed":
                ctx.changes.prompts_changed()
            elif method == "notifications/resources/list_changed":
                ctx.changes.resources_changed()


def _params_of(ctx: Context) -> Mapping[str, Any]:
    """Return the parameters of a request as the client sent them."""
    message: Any = msgspec.json.decode(ctx.raw)
    if is_array(message):
        message = next((each for each in message if is_object(each) and each.get("id") == ctx.id), None)
    params = message.get("params") if is_object(message) else None
    return cast("Mapping[str, Any]", params) if is_object(params) else {}


def replay_server(file: str | os.PathLike[str], **options: Unpack[ServerOptions]) -> ServerConfig:
    """Return a server that answers from a recording, for `connect`, `serve` and `asgi`.

    It has the name, the instructions and the capabilities of the recorded server, and speaks every revision; `options`
    are those of `ServerConfig`, such as `revisions`. Its `handler` is a `ReplayHandler`. Raises `UsageError` if the
    file is not a recording.
    """
    recording = read_recording(file, options.get("limits", DEFAULT_LIMITS))
    info: Any = recording.server.get("serverInfo")
    if not is_object(info):
        meta: Any = recording.server.get("_meta")
        info = meta.get("io.modelcontextprotocol/serverInfo") if is_object(meta) else None
    info = info if is_object(info) else {}
    instructions: Any = recording.server.get("instructions")
    described: ServerOptions = {
        "name": str(info.get("name", "replay")).replace(MASK, "") or "replay",
        "version": str(info.get("version", "0")),
        "title": info.get("title") if isinstance(info.get("title"), str) else None,
        "instructions": instructions if isinstance(instructions, str) else None,
    }
    if recording.server:
        described["capabilities"] = server_capabilities(recording)
    merged: ServerOptions = {**described, **options}
    return ServerConfig(ReplayHandler(recording), **merged)
