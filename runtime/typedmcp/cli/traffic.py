"""Recorded messages, checked against one revision: each by its method, results by the request with the same id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from mcpspec import LATEST, VERSIONS, revision
from mcpspec._support.methods import Method
from mcpspec._support.objects import is_array, is_object
from mcpspec._support.structs import from_builtins
from typedmcp.errors import DecodeError

__all__ = ["Checker", "Fault", "Malformed", "parsed"]

_SIDES = ("client", "server")
_Key: TypeAlias = tuple[str | None, str, int | str | None]
"""Who sent a request, if that is known, and its id, with its type: 1, "1" and 1.0 are three."""


class Malformed(ValueError):  # noqa: N818  # it is the line that is
    """A line that is no JSON."""


class Fault(NamedTuple):
    """What is wrong with a message."""

    method: str | None
    path: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(part for part in self if part)


def parsed(line: bytes) -> Any:
    """The value of a line. Raises `Malformed`."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise Malformed(f"not JSON: {error}") from None
    except UnicodeError:
        raise Malformed("not UTF-8") from None
    except RecursionError:
        raise Malformed("nested too deeply") from None


class Checker:
    """Checks messages in their order. It remembers requests until they are answered."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.messages: int = 0
        """How many there were, those in batches each for itself."""
        module = revision(version)
        self._types: Any = module.structs
        self._methods: Any = module.methods
        self._tasks: Mapping[str, Method[Any, Any]] = _extension() if version == LATEST else {}
        self._result: Any = getattr(self._types, "JSONRPCResultResponse", None) or self._types.JSONRPCResponse
        self._error: Any = getattr(self._types, "JSONRPCErrorResponse", None) or self._types.JSONRPCError
        self._open: dict[_Key, list[Method[Any, Any] | None]] = {}
        """Requests by who sent them and id; None for one of an unknown method."""

    @property
    def waiting(self) -> int:
        """How many requests have not been answered."""
        return sum(map(len, self._open.values()))

    def check(self, value: Any) -> Iterator[Fault]:
        """What is wrong with a message, with or without a wrapper that says which way it went."""
        side = None
        if is_object(value) and "jsonrpc" not in value and "message" in value:
            side, value = value.get("direction"), value["message"]
            if side is not None and side not in _SIDES:
                yield Fault(None, "direction", f'expected "client" or "server", got {_json(side)}')
                side = None
        if not is_array(value):
            yield from self._message(value, side, "")
            return
        if not hasattr(self._types, "JSONRPCBatchRequest"):
            self.messages += 1
            yield Fault(None, "", f"a batch, which {self.version} does not have")
            return
        for index, message in enumerate(value):
            yield from self._message(message, side, f"[{index}]")

    def _message(self, value: Any, side: str | None, place: str) -> Iterator[Fault]:
        self.messages += 1
        if not is_object(value) or not {"method", "result", "error"} & value.keys():
            yield Fault(None, place, "no message: it has neither method nor result nor error")
        elif "method" not in value:
            yield from self._answer(value, side, place)
        elif not isinstance(value["method"], str):
            yield Fault(None, _path(place, "method"), f"expected string, got {_json(value['method'])}")
        else:
            yield from self._sent(value, side, place)

    # Requests and notifications

    def _sent(self, value: dict[str, Any], side: str | None, place: str) -> Iterator[Fault]:
        name, is_request = value["method"], "id" in value
        record = self._methods.METHODS.get(name) or self._tasks.get(name)
        if is_request:
            sender = side or (record.direction if record is not None and record.direction in _SIDES else None)
            self._open.setdefault(_key(sender, value["id"]), []).append(record)
        reason = self._misplaced(name, record, side, is_request=is_request)
        if reason is not None:
            yield Fault(name, _path(place, "method"), reason)
            return
        assert record is not None
        yield from _faults(value, record.message, name, place)

    def _misplaced(
        self, name: str, record: Method[Any, Any] | None, side: str | None, *, is_request: bool
    ) -> str | None:
        if record is None:
            known = [version for version in VERSIONS if name in revision(version).methods.METHODS]
            where = f"; it is in {', '.join(known)}" if known else ""
            return f"unknown in {self.version}{where}"
        if record.kind == "input":
            return f"no message of its own in {self.version}: it travels in results"
        if is_request and record.kind == "notification":
            return "a notification, and it has an id"
        if not is_request and record.kind == "request":
            return "a request, and it has no id"
        if side is not None and record.direction not in (side, "both"):
            return f"sent by the {side}, and only the {record.direction} may"
        return None

    # Answers

    def _answer(self, value: dict[str, Any], side: str | None, place: str) -> Iterator[Fault]:
        if "error" in value:
            record = self._asked(value, side) if value.get("id") is not None else None
            yield from _faults(value, self._error, None if record is None else record.name, place)
            return
        known = self._is_known(value, side)
        record = self._asked(value, side)
        name = None if record is None else record.name
        inside = _path(place, "result")
        faults = [*_faults(value, self._result, name, place)]
        if record is not None or not known:  # what is in the result is looked at below, or cannot be
            faults = [fault for fault in faults if not fault.path.startswith(inside)]
        if not known and not faults:
            faults = [Fault(None, _path(place, "id"), f"no request with the id {_json(value['id'])} came before")]
        if record is not None and not faults:
            faults = [
                *_faults(value["result"], self._result_type(record, value["result"]), name, _path(place, "result"))
            ]
        yield from faults

    def _keys(self, value: dict[str, Any], side: str | None) -> list[_Key]:
        """Where the request may be that is answered: of the other side, or of one that is not known."""
        others = [other for other in _SIDES if other != side]
        return [_key(sender, value.get("id")) for sender in (*others, None)]

    def _is_known(self, value: dict[str, Any], side: str | None) -> bool:
        return any(key in self._open for key in self._keys(value, side))

    def _asked(self, value: dict[str, Any], side: str | None) -> Method[Any, Any] | None:
        """The method of the request that is answered, which is open no longer."""
        keys = [key for key in self._keys(value, side) if key in self._open]
        if not keys:
            return None
        key = next((key for key in keys if self._fits(value, self._open[key][0])), keys[0])
        waiting = self._open[key]
        record = waiting.pop(0)
        if not waiting:
            del self._open[key]
        return record

    def _fits(self, value: dict[str, Any], record: Method[Any, Any] | None) -> bool:
        if record is None or "result" not in value:
            return False
        return not any(_faults(value["result"], self._result_type(record, value["result"]), None, ""))

    def _result_type(self, record: Method[Any, Any], result: Any) -> Any:
        """The type of a result: what a method gives, or, with the extension, the task that will."""
        if self._tasks and record.name == "tools/call" and is_object(result) and result.get("resultType") == "task":
            from mcpspec.ext import tasks

            return tasks.structs.CreateTaskResult
        return record.result


def _extension() -> Mapping[str, Method[Any, Any]]:
    from mcpspec.ext import tasks

    return tasks.methods.METHODS


def _key(sender: str | None, id: Any) -> _Key:
    return sender, type(id).__name__, id if isinstance(id, int | str) else None


def _faults(value: Any, kind: Any, method: str | None, place: str) -> Iterator[Fault]:
    try:
        from_builtins(value, kind)
    except DecodeError as error:
        yield Fault(method, _path(place, error.path), error.reason)


def _path(place: str, path: str) -> str:
    return f"{place}{'.' if place and path and not path.startswith('[') else ''}{path}"


def _json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
