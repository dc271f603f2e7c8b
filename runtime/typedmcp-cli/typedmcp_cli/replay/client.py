"""A client that sends what the client of a recording sent, and compares the responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import typedmcp.dialect.methods as methods
from typedmcp import Client, ConnectOptions, types
from typedmcp.building import is_array, is_object
from typedmcp.errors import INTERNAL_ERROR, Error, RemoteError
from typedmcp_cli.recording.masks import matches_masked
from typedmcp_cli.recording.reader import RecordedQuestion, RecordedRequest, Recording
from typedmcp_cli.replay.values import answer_of, request_of, result_of, show_json

__all__ = ["ReplayDifference", "compare_with_server"]

_IGNORED: Final = frozenset({"_meta", "ttlMs", "cacheScope", "resultType"})
"""Members of results that belong to the protocol, and not to the content."""
_MAX_DIFFERENCES: Final = 100
"""Differences of one response that are described."""


@dataclass(frozen=True)
class ReplayDifference:
    """A part of a response that differs from the recorded one."""

    line: int
    """The line of the request in the recording."""
    request: str
    path: str
    """The place, such as `result.content[0].text`."""
    recorded: str
    received: str

    def __str__(self) -> str:
        return f"{self.request}: {self.path}: {self.recorded} => {self.received}"


async def compare_with_server(
    recording: Recording, connect: Callable[[ConnectOptions], Client], *, ignore: Collection[str] = ()
) -> AsyncIterator[tuple[RecordedRequest, list[ReplayDifference]]]:
    """Yield each recorded request with the differences between the recorded response and that of a server.

    `connect` gets the options by which the client answers as it did in the recording, and returns a client of the
    server, on any revision. `ignore` are names of members that may differ. Requests without a recorded response are
    left out. Raises the exceptions of `connect` if the server cannot be reached.
    """
    answers = _Answers(recording)
    differ = _Comparison({*_IGNORED, *ignore})
    cursors: dict[str, str] = {}
    async with connect(answers.options) as client:
        for exchange in recording.exchanges:
            if not exchange.has_response:
                continue
            answers.begin(exchange)
            recorded = _recorded(recording, exchange)
            received = await _send(client, exchange, cursors)
            _remember_cursor(recorded, received, cursors)
            found = [*differ.find(recorded, received, ""), *answers.problems]
            yield exchange, [ReplayDifference(exchange.line, str(exchange), *each) for each in found[:_MAX_DIFFERENCES]]


def _recorded(recording: Recording, exchange: RecordedRequest) -> dict[str, Any]:
    if exchange.error is not None:
        return {"error": exchange.error}
    if exchange.method not in methods.CLIENT_REQUESTS:
        return {"result": exchange.result}
    return {"result": types.to_builtins(result_of(recording, exchange))}


async def _send(client: Client, exchange: RecordedRequest, cursors: dict[str, str]) -> dict[str, Any]:
    """Send a request, and return its result or error as plain JSON."""
    params = dict(exchange.params)
    if isinstance(params.get("cursor"), str):
        params["cursor"] = cursors.get(params["cursor"], params["cursor"])
    record = methods.CLIENT_REQUESTS.get(exchange.method)
    try:
        if record is None:
            return {"result": await client.send(exchange.method, params)}
        return {"result": types.to_builtins(await client.send(record, params))}
    except RemoteError as error:
        data = {} if error.data is None else {"data": error.data}
        return {"error": {"code": error.code, "message": error.message, **data}}
    except Error as error:
        return {"error": {"message": str(error)}}


def _remember_cursor(recorded: dict[str, Any], received: dict[str, Any], cursors: dict[str, str]) -> None:
    """Cursors are opaque: those of the server stand for the recorded ones."""
    pages: list[Any] = [each.get("result") for each in (recorded, received)]
    if all(is_object(page) and isinstance(page.get("nextCursor"), str) for page in pages):
        before, now = (page.pop("nextCursor") for page in pages)
        cursors[before] = now


class _Answers:
    """Answers the questions of the server as the client of the recording did."""

    def __init__(self, recording: Recording) -> None:
        self.problems: list[tuple[str, str, str]] = []
        self._open: list[tuple[RecordedQuestion, str]] = []
        self._loose = [each for each in recording.loose if each[0].answer is not None]
        declared = recording.client_capabilities
        self.options: ConnectOptions = {"max_time": None}
        if "sampling" in declared:
            self.options["sample"] = self._make("sampling/createMessage")
        if "elicitation" in declared:
            self.options["elicit"] = self._make("elicitation/create")
            mode: Any = declared["elicitation"]
            if is_object(mode) and "url" in mode:
                self.options["elicit_url"] = self._make("elicitation/create")
        if "roots" in declared:
            self.options["roots"] = self._list_roots

    def begin(self, exchange: RecordedRequest) -> None:
        """Answer with the answers that belong to a request."""
        self.problems = []
        self._open = [(question, exchange.revision) for step in exchange.steps for question in step.questions.values()]

    def _make(self, method: str) -> Callable[[Any], Any]:
        def answer(params: Any) -> Any:
            return self._answer(method, types.to_builtins(params))

        return answer

    def _list_roots(self) -> Any:
        return self._answer("roots/list", {}).roots

    def _answer(self, method: str, asked: Any) -> Any:
        """Return the recorded answer to a question: to the same one, else to the next one of its method."""
        of_method = [each for each in self._open if each[0].method == method]
        if not of_method and (loose := [each for each in self._loose if each[0].method == method]):
            return answer_of(*loose[-1])
        if not of_method:
            self.problems.append((f"question {method}", "none", show_json(asked)))
            raise RemoteError(INTERNAL_ERROR, f"the recording has no {method} here")
        same = [each for each in of_method if _is_same_question(each, asked)]
        if not same:
            self.problems.append((f"question {method}", show_json(of_method[0][0].params), show_json(asked)))
        chosen = (same or of_method)[0]
        self._open.remove(chosen)
        if chosen[0].error is not None:
            raise RemoteError.from_wire(chosen[0].error)
        return answer_of(*chosen)


def _is_same_question(recorded: tuple[RecordedQuestion, str], asked: Any) -> bool:
    params: Any = request_of(*recorded).params
    return matches_masked({} if params is None else types.to_builtins(params), asked)


class _Comparison:
    """Compares JSON values. A mask stands for any value."""

    def __init__(self, ignored: Collection[str]) -> None:
        self._ignored = ignored

    def find(self, recorded: Any, received: Any, path: str) -> Iterator[tuple[str, str, str]]:
        """Yield path, recorded and received value of each difference."""
        if is_object(recorded) and is_object(received):
            for name in [*recorded, *(name for name in received if name not in recorded)]:
                if name not in self._ignored:
                    place = f"{path}.{name}" if path else name
                    yield from self.find(recorded.get(name, _ABSENT), received.get(name, _ABSENT), place)
        elif is_array(recorded) and is_array(received) and len(recorded) == len(received):
            for number, (before, now) in enumerate(zip(recorded, received, strict=True)):
                yield from self.find(before, now, f"{path}[{number}]")
        elif not matches_masked(recorded, received):
            yield path, _show(recorded), _show(received)


_ABSENT: Final = object()


def _show(value: Any) -> str:
    return "nothing" if value is _ABSENT else show_json(value)
