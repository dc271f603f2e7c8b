"""Checks recorded messages against a revision: each by its method, results by the request with the same id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from mcpspec import VERSIONS, revision
from mcpspec.features import FEATURES
from typedmcp.building import decode_json, is_array, is_object
from typedmcp.dialect.methods import Method
from typedmcp.errors import DecodeError
from typedmcp.types import from_builtins

__all__ = ["MalformedLineError", "TrafficChecker", "TrafficFault", "decode_line"]

_SIDES = ("client", "server")
_MAX_SHOWN = 60
"""Characters of a value that a fault shows."""
_Record: TypeAlias = Method[Any, Any]
_RequestKey: TypeAlias = tuple[str | None, str, int | str | None]
"""The sender of a request, or None if unknown, the type of its id and the id: 1, "1" and 1.0 differ."""


class MalformedLineError(ValueError):
    """A line that is not JSON."""


class TrafficFault(NamedTuple):
    """A fault of a message: the method if it is known, the place, and the reason."""

    method: str | None
    path: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(part for part in self if part)


def decode_line(line: bytes) -> object:
    """Decode a line. Raises `MalformedLineError`."""
    try:
        return decode_json(line)
    except msgspec.DecodeError as error:
        raise MalformedLineError(f"not JSON: {error}") from None
    except UnicodeError:
        raise MalformedLineError("not UTF-8") from None


class TrafficChecker:
    """Checks messages in their order, and keeps requests until they have a response."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.messages: int = 0
        """How many messages were checked; each message of a batch counts."""
        module = revision(version)
        self._types: Any = module.structs
        self._methods: Mapping[str, _Record] = module.methods.METHODS
        self._task_methods: Mapping[str, _Record] = _load_task_methods() if FEATURES[version].has_input_requests else {}
        self._result: Any = getattr(self._types, "JSONRPCResultResponse", None) or self._types.JSONRPCResponse
        self._error: Any = getattr(self._types, "JSONRPCErrorResponse", None) or self._types.JSONRPCError
        self._open: dict[_RequestKey, list[_Record | None]] = {}
        """Requests without a response; None stands for an unknown method."""

    @property
    def open_requests(self) -> int:
        """The number of requests without a response."""
        return sum(map(len, self._open.values()))

    def has_request(self, side: str, id: object) -> bool:
        """Return whether a request of a side has no response yet."""
        return any(_key(sender, id) in self._open for sender in (side, None))

    def check(self, value: object) -> Iterator[TrafficFault]:
        """Yield the faults of a message or a batch, either by itself or in an object with its sender."""
        side: str | None = None
        if is_object(value) and "jsonrpc" not in value and "message" in value:
            side, value = value.get("sender"), value["message"]
            if side is not None and side not in _SIDES:
                yield TrafficFault(None, "sender", f'expected "client" or "server", got {_shorten(side)}')
                side = None
        yield from self.check_from(side, value)

    def check_from(self, side: str | None, value: object) -> Iterator[TrafficFault]:
        """Yield the faults of a message or a batch of a side, which is None if it is not known."""
        if not is_array(value):
            yield from self._check_message(value, side, "")
            return
        if not hasattr(self._types, "JSONRPCBatchRequest"):
            self.messages += 1
            yield TrafficFault(None, "", f"batches do not exist in {self.version}")
            return
        for index, message in enumerate(value):
            yield from self._check_message(message, side, f"[{index}]")

    def _check_message(self, value: object, side: str | None, place: str) -> Iterator[TrafficFault]:
        self.messages += 1
        if not is_object(value) or not {"method", "result", "error"} & value.keys():
            yield TrafficFault(None, place, "not a message: it has no method, result or error")
        elif "error" in value and "method" not in value:
            yield from self._check_error(value, side, place)
        elif "method" not in value:
            yield from self._check_result(value, side, place)
        elif not isinstance(value["method"], str):
            yield TrafficFault(None, _join(place, "method"), f"expected string, got {_shorten(value['method'])}")
        else:
            yield from self._check_call(value, side, place)

    # Requests and notifications

    def _check_call(self, value: dict[str, Any], side: str | None, place: str) -> Iterator[TrafficFault]:
        name, is_request = value["method"], "id" in value
        record = self._methods.get(name) or self._task_methods.get(name)
        if is_request:
            sender = side or (record.sender if record is not None and record.sender in _SIDES else None)
            self._open.setdefault(_key(sender, value["id"]), []).append(record)
        reason = self._check_method(name, record, side, is_request=is_request)
        if reason is not None:
            yield TrafficFault(name, _join(place, "method"), reason)
            return
        assert record is not None
        yield from _check_type(value, record.message, name, place)

    def _check_method(self, name: str, record: _Record | None, side: str | None, *, is_request: bool) -> str | None:
        """Return why a message with this method is not allowed, or None if it is."""
        if record is None:
            known = [version for version in VERSIONS if name in revision(version).methods.METHODS]
            elsewhere = f"; known in {', '.join(known)}" if known else ""
            return f"unknown in {self.version}{elsewhere}"
        if record.kind == "input":
            return f"not a message in {self.version}; it is part of a result"
        if is_request and record.kind == "notification":
            return "a notification must not have an id"
        if not is_request and record.kind == "request":
            return "a request must have an id"
        if side is not None and record.sender not in (side, "both"):
            return f"sent by the {side}, but only the {record.sender} may send it"
        return None

    # Responses

    def _check_error(self, value: dict[str, Any], side: str | None, place: str) -> Iterator[TrafficFault]:
        record = self._pop_request(value, side) if value.get("id") is not None else None
        yield from _check_type(value, self._error, None if record is None else record.name, place)

    def _check_result(self, value: dict[str, Any], side: str | None, place: str) -> Iterator[TrafficFault]:
        is_known = any(key in self._open for key in self._keys(value, side))
        record = self._pop_request(value, side)
        name = None if record is None else record.name
        inside = _join(place, "result")
        faults = [*_check_type(value, self._result, name, place)]
        if record is not None or not is_known:  # the result is checked by its method below, or cannot be checked
            faults = [fault for fault in faults if not fault.path.startswith(inside)]
        if not is_known and not faults:
            faults = [TrafficFault(None, _join(place, "id"), f"no earlier request has the id {_shorten(value['id'])}")]
        if record is not None and not faults:
            faults = [*_check_type(value["result"], self._result_type(record, value["result"]), name, inside)]
        yield from faults

    def _keys(self, value: dict[str, Any], side: str | None) -> list[_RequestKey]:
        """Return the keys that the request of a response may have: sent by the other side, or by an unknown one."""
        others = [other for other in _SIDES if other != side]
        return [_key(sender, value.get("id")) for sender in (*others, None)]

    def _pop_request(self, value: dict[str, Any], side: str | None) -> _Record | None:
        """Remove the open request of a response, and return its method if that is known."""
        keys = [key for key in self._keys(value, side) if key in self._open]
        if not keys:
            return None
        key = next((key for key in keys if self._matches(value, self._open[key][0])), keys[0])
        records = self._open[key]
        record = records.pop(0)
        if not records:
            del self._open[key]
        return record

    def _matches(self, value: dict[str, Any], record: _Record | None) -> bool:
        if record is None or "result" not in value:
            return False
        return not any(_check_type(value["result"], self._result_type(record, value["result"]), None, ""))

    def _result_type(self, record: _Record, result: object) -> Any:
        """Return the type of a result: the method's own, or a task of the extension."""
        is_task = is_object(result) and result.get("resultType") == "task"
        if self._task_methods and record.name == "tools/call" and is_task:
            from mcpspec.ext import tasks

            return tasks.structs.CreateTaskResult
        return record.result


def _load_task_methods() -> Mapping[str, _Record]:
    from mcpspec.ext import tasks

    return tasks.methods.METHODS


def _key(sender: str | None, id: object) -> _RequestKey:
    return sender, type(id).__name__, id if isinstance(id, int | str) else None


def _check_type(value: object, kind: Any, method: str | None, place: str) -> Iterator[TrafficFault]:
    try:
        from_builtins(value, kind)
    except DecodeError as error:
        yield TrafficFault(method, _join(place, error.path), error.reason)


def _join(place: str, path: str) -> str:
    return f"{place}{'.' if place and path and not path.startswith('[') else ''}{path}"


def _shorten(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
