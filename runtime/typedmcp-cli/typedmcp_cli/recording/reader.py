"""Reading of recordings: the messages of a file, and the requests of its client with all that belongs to each."""

from __future__ import annotations

import json
import os
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import msgspec

from mcpspec import VERSIONS
from typedmcp.building import decode_json, format_value, is_array, is_object
from typedmcp.errors import UsageError
from typedmcp.frames import Sender
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp_cli.recording.masks import matches_masked

__all__ = [
    "RecordedMessage",
    "RecordedQuestion",
    "RecordedRequest",
    "RecordedStep",
    "Recording",
    "matches_request",
    "read_recording",
]

_INPUT_MEMBERS: Final = ("_meta", "inputResponses", "requestState")
_INPUT_REQUESTS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
_SETUP: Final = frozenset(
    {
        "initialize", "server/discover", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
        "subscriptions/listen",
    }
)  # fmt: skip
"""Requests that the runtime sends and answers by itself, on each revision in its way."""


class RecordedMessage(msgspec.Struct):
    """A line of a recording, as `Recorder` writes it."""

    sender: Sender
    message: dict[str, Any] | list[Any] | None
    revision: str
    connection: int = 1


@dataclass
class RecordedQuestion:
    """A request of the server for input, and its answer."""

    method: str
    params: dict[str, Any]
    answer: Any = None
    """The result of the client, as plain JSON; None if it gave none."""
    error: dict[str, Any] | None = None
    """The error with which the client answered."""


@dataclass
class RecordedStep:
    """A notification, or questions that were asked together, which the server sent before its response."""

    notification: dict[str, Any] | None = None
    questions: dict[str, RecordedQuestion] = field(default_factory=dict[str, RecordedQuestion])


@dataclass
class RecordedRequest:
    """A request of the client with all that belongs to it."""

    line: int
    """The number of the line in the file, from 1."""
    method: str
    params: dict[str, Any]
    """The parameters without `_meta`, and without the answers to questions."""
    revision: str
    steps: list[RecordedStep] = field(default_factory=list[RecordedStep])
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    is_cancelled: bool = False
    """True if the client cancelled the request."""
    later: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Notifications that the server sent after the response, and before the next request of the client."""

    def __str__(self) -> str:
        name = self.params.get("name", self.params.get("uri"))
        return self.method if name is None else f"{self.method} {format_value(name)}"

    @property
    def has_response(self) -> bool:
        """True if the recording has the response."""
        return self.result is not None or self.error is not None


@dataclass
class Recording:
    """The content of a recording."""

    file: str
    server: dict[str, Any] = field(default_factory=dict[str, Any])
    """The result of the first `initialize` or `server/discover`, as plain JSON."""
    server_method: Literal["initialize", "server/discover"] = "server/discover"
    server_revision: str = VERSIONS[-1]
    client_capabilities: dict[str, Any] = field(default_factory=dict[str, Any])
    exchanges: list[RecordedRequest] = field(default_factory=list[RecordedRequest])
    loose: list[tuple[RecordedQuestion, str]] = field(default_factory=list[tuple[RecordedQuestion, str]])
    """Questions that belong to no request, with their revision: a client is asked for its roots at any time."""
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """Messages that no replay sends, by method: those that belong to no request of the client."""


def read_recording(file: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Recording:
    """Read a recording. Raises `UsageError` that names the file and the line if it is none."""
    name = os.fspath(file)
    reader = _RecordingReader(Recording(name))
    try:
        with open(name, "rb") as source:
            if os.fstat(source.fileno()).st_size > limits.recording_bytes:
                raise UsageError(f"{name}: longer than {limits.recording_bytes} bytes (recording_bytes)")
            for number, message in _read_lines(source, name):
                reader.add(number, message)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from error
    if not reader.recording.exchanges and not reader.recording.server:
        raise UsageError(f"{name}: no request of a client is recorded there")
    return reader.recording


_DEPTH: Final = 201
"""Levels of arrays and objects in a line: those of a message, and the line itself."""


def _read_lines(source: Iterable[bytes], name: str) -> Iterator[tuple[int, RecordedMessage]]:
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        try:
            message: RecordedMessage = decode_json(line, RecordedMessage, depth=_DEPTH)
        except ValueError as error:
            raise UsageError(f"{name}:{number}: not a line of a recording: {error}") from error
        if message.revision not in VERSIONS:
            text = f"{name}:{number}: unknown revision {format_value(message.revision)}; known: {', '.join(VERSIONS)}"
            raise UsageError(text)
        yield number, message


class _RecordingReader:
    """Assigns the messages of all connections to the requests of the client."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._open: defaultdict[int, dict[object, RecordedRequest]] = defaultdict(dict)
        """The client's requests without a response, by connection and by id, the newest last."""
        self._setup: dict[tuple[int, object], dict[str, Any]] = {}
        self._questions: dict[tuple[int, object], RecordedQuestion] = {}
        self._continued: defaultdict[_Continuation, deque[tuple[RecordedRequest, RecordedStep]]] = defaultdict(deque)
        """Requests that the client repeats with answers, and the questions; the oldest first."""
        self._tokens: dict[tuple[int, object], RecordedRequest] = {}
        """The requests that want progress, by connection and token."""
        self._last: RecordedRequest | None = None

    def add(self, line: int, recorded: RecordedMessage) -> None:
        """Add a message, or the messages of a batch."""
        content = recorded.message
        for message in content if is_array(content) else [content]:
            if not is_object(message):
                continue
            handle = self._add_from_client if recorded.sender == "client" else self._add_from_server
            handle(line, recorded, message)

    def _add_from_client(self, line: int, recorded: RecordedMessage, message: dict[str, Any]) -> None:
        key, method = (recorded.connection, _id_of(message)), message.get("method")
        params: Any = message.get("params")
        params = params if is_object(params) else {}
        if method is None:
            self._answer(key, message)
        elif not isinstance(method, str) or "id" not in message:
            if method == "notifications/cancelled" and (
                found := self._open[recorded.connection].pop(_id_of(params, "requestId"), None)
            ):
                found.is_cancelled = True
        elif method in _SETUP:
            self._setup[key] = message
            if method == "initialize" and is_object(found := params.get("capabilities")):
                self.recording.client_capabilities |= found
        else:
            self._open[recorded.connection][key[1]] = self._last = self._begin(line, recorded, method, params)

    def _begin(self, line: int, recorded: RecordedMessage, method: str, params: dict[str, Any]) -> RecordedRequest:
        """Return the exchange of a request: a new one, or that which it continues with answers."""
        plain = {name: value for name, value in params.items() if name not in _INPUT_MEMBERS}
        exchange = self._continue(plain, method, params)
        if exchange is None:
            exchange = RecordedRequest(line, method, plain, recorded.revision)
            self.recording.exchanges.append(exchange)
        meta: Any = params.get("_meta")
        token: Any = meta.get("progressToken") if is_object(meta) else None
        declared: Any = meta.get("io.modelcontextprotocol/clientCapabilities") if is_object(meta) else None
        if is_object(declared):
            self.recording.client_capabilities |= declared
        if isinstance(token, str | int):
            self._tokens[recorded.connection, token] = exchange
        return exchange

    def _continue(self, plain: dict[str, Any], method: str, params: dict[str, Any]) -> RecordedRequest | None:
        state: Any = params.get("requestState")
        answers: Any = params.get("inputResponses")
        if state is None and answers is None:
            return None
        waiting = self._continued.get(_continuation(state, method, plain))
        if not waiting:
            return None
        exchange, step = waiting.popleft()
        for key, question in step.questions.items():
            question.answer = answers.get(key) if is_object(answers) else None
        exchange.result = None
        return exchange

    def _answer(self, key: tuple[int, object], message: dict[str, Any]) -> None:
        question = self._questions.pop(key, None)
        if question is not None:
            question.answer, question.error = message.get("result"), message.get("error")

    def _add_from_server(self, _line: int, recorded: RecordedMessage, message: dict[str, Any]) -> None:
        key, method = (recorded.connection, _id_of(message)), message.get("method")
        if method is None:
            self._respond(key, recorded, message)
        elif "id" in message:
            self._ask(key, method, message, recorded.revision)
        else:
            self._notify(recorded, method, message)

    def _respond(self, key: tuple[int, object], recorded: RecordedMessage, message: dict[str, Any]) -> None:
        result: Any = message.get("result")
        setup = self._setup.pop(key, None)
        if setup is not None:
            self._describe_server(setup, recorded, result)
            return
        exchange = self._open[key[0]].pop(key[1], None)
        if exchange is None:
            return
        exchange.revision = recorded.revision
        exchange.error = message.get("error")
        exchange.result = result if is_object(result) else None
        if exchange.result is not None and exchange.result.get("resultType") == "input_required":
            requests: Any = exchange.result.get("inputRequests")
            asked = requests if is_object(requests) else {}
            for request in asked.values():
                if not _is_question(request):
                    self._skip(request.get("method") if is_object(request) else request)
            known = {name: _question(request) for name, request in asked.items() if _is_question(request)}
            step = RecordedStep(questions=known)
            exchange.steps.append(step)
            continuation = _continuation(exchange.result.get("requestState"), exchange.method, exchange.params)
            self._continued[continuation].append((exchange, step))

    def _describe_server(self, setup: dict[str, Any], recorded: RecordedMessage, result: Any) -> None:
        if setup["method"] != "ping" and is_object(result) and not self.recording.server:
            self.recording.server = result
            self.recording.server_method = setup["method"]
            self.recording.server_revision = recorded.revision

    def _ask(self, key: tuple[int, object], method: Any, message: dict[str, Any], revision: str) -> None:
        exchange = self._newest_open(key[0])
        if not _is_question(message):
            self._skip(method)
            return
        question = self._questions[key] = _question(message)
        if exchange is None:
            self._skip(method)
            self.recording.loose.append((question, revision))
            return
        exchange.steps.append(RecordedStep(questions={f"question-{len(exchange.steps)}": question}))

    def _notify(self, recorded: RecordedMessage, method: Any, message: dict[str, Any]) -> None:
        params: Any = message.get("params")
        token: Any = params.get("progressToken") if is_object(params) else None
        if method == "notifications/progress":
            exchange = self._tokens.get((recorded.connection, token if isinstance(token, str | int) else None))
        else:
            exchange = self._newest_open(recorded.connection)
        if exchange is not None:
            exchange.steps.append(RecordedStep(message))
        elif self._last is not None and method != "notifications/message":
            self._last.later.append(message)
        else:
            self._skip(method)

    def _newest_open(self, connection: int) -> RecordedRequest | None:
        """Return the newest request of a connection without a response: others cannot be told apart."""
        return next(reversed(self._open[connection].values()), None)

    def _skip(self, method: object) -> None:
        name = method if isinstance(method, str) else format_value(method)
        self.recording.skipped[name] = self.recording.skipped.get(name, 0) + 1


_Continuation: TypeAlias = tuple[str, str, str]
"""The `requestState`, the method and the parameters, as JSON, that a repeated request has."""


def _continuation(state: object, method: str, params: Mapping[str, Any]) -> _Continuation:
    return state if isinstance(state, str) else "", method, json.dumps(params, sort_keys=True)


def _id_of(message: dict[str, Any], name: str = "id") -> int | str | None:
    id: Any = message.get(name)
    return id if isinstance(id, int | str) else None


def _is_question(request: object) -> bool:
    method: object = request.get("method") if is_object(request) else None
    return isinstance(method, str) and method in _INPUT_REQUESTS


def _question(request: Any) -> RecordedQuestion:
    params: Any = request.get("params")
    return RecordedQuestion(request["method"], params if is_object(params) else {})


def _comparable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without members that differ between clients which mean the same."""
    kept = {name: value for name, value in params.items() if name not in _INPUT_MEMBERS and value is not None}
    if kept.get("arguments") == {}:
        del kept["arguments"]
    return kept


def matches_request(exchange: RecordedRequest, method: str, params: Mapping[str, Any]) -> bool:
    """Return whether an exchange is about the same request. A mask stands for any value."""
    return exchange.method == method and matches_masked(_comparable(exchange.params), _comparable(params))
