"""Recorded values of any revision as values of the dialect."""

from __future__ import annotations

from typing import Any, Final

import msgspec

import typedmcp.dialect.methods as methods
from typedmcp import types
from typedmcp.building import is_object, visible
from typedmcp.client.results.decoder import result_decoder
from typedmcp.errors import DecodeError, ProtocolError, UsageError
from typedmcp.revisions.features import FEATURES
from typedmcp.revisions.input_requests import upgrade_request, upgrade_result
from typedmcp.types import from_builtins
from typedmcp_cli.recording.reader import RecordedQuestion, RecordedRequest, Recording

__all__ = ["answer_of", "request_of", "result_of", "server_capabilities", "show_json"]

_SHOWN_CHARACTERS: Final = 200
_CAPABILITIES: Final = frozenset({"tools", "prompts", "resources", "completions", "logging", "experimental"})
"""The capabilities of the protocol. Those of extensions are left out: they need their handlers."""


def result_of(recording: Recording, exchange: RecordedRequest) -> Any:
    """Return the recorded result in the dialect. Raises `UsageError` with its place if it is not a result."""
    try:
        return result_decoder(exchange.method, exchange.revision)(msgspec.json.encode(exchange.result), [])
    except (DecodeError, ProtocolError, UsageError) as error:
        text = f"{recording.file}:{exchange.line}: the recorded result of {exchange} is not valid: {error}"
        raise UsageError(text) from error


def request_of(question: RecordedQuestion, revision: str) -> Any:
    """Return a recorded question in the dialect. Raises `DecodeError` if it is not valid."""
    if FEATURES[revision].has_input_requests:
        known = methods.INPUT_REQUESTS[question.method]
        return from_builtins({"method": question.method, "params": question.params}, known.message)
    return upgrade_request(question.method, msgspec.json.encode(question.params), revision)


def answer_of(question: RecordedQuestion, revision: str) -> Any:
    """Return the recorded answer of the client in the dialect. Raises `DecodeError` if it is not valid."""
    if FEATURES[revision].has_input_requests:
        return from_builtins(question.answer, methods.INPUT_REQUESTS[question.method].result)
    return upgrade_result(question.method, question.answer, revision)


def show_json(value: Any) -> str:
    """Return a value of a peer as one short line of JSON."""
    return visible(msgspec.json.encode(value).decode(), _SHOWN_CHARACTERS)


def server_capabilities(recording: Recording) -> Any:
    """Return the recorded capabilities of the server in the dialect."""
    found: Any = recording.server.get("capabilities", {})
    known = {name: value for name, value in found.items() if name in _CAPABILITIES} if is_object(found) else {}
    try:
        return from_builtins(known, types.ServerCapabilities)
    except DecodeError as error:
        raise UsageError(f"{recording.file}: the recorded capabilities are not valid: {error}") from error
