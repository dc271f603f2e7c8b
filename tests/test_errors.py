"""The codes of errors on the wire, by revision, and the exceptions for the errors of a peer."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import typedmcp
from tests.cases import each
from typedmcp.revisions.features import FEATURES, SUPPORTED


@each("revision", SUPPORTED)
def test_an_error_has_a_code_that_its_revision_defines(revision: str) -> None:
    codes = FEATURES[revision].error_codes
    missing_resource = typedmcp.ResourceNotFoundError("file:///none").wire_code(revision)
    missing_capability = typedmcp.MissingCapabilityError({"sampling": {}}).wire_code(revision)
    assert missing_resource == (-32602 if FEATURES[revision].is_modern else -32002)
    assert missing_capability == (-32021 if FEATURES[revision].is_modern else -32600)
    assert {missing_resource, missing_capability} <= {*codes.values()}


RESERVED = {-32002: -32602, -32042: -32603, -32020: -32020, -32023: -32603, -32050: -32603, -32099: -32603}
"""Codes that 2026-07-28 reserves, and the codes that are sent instead."""


@each("revision", SUPPORTED)
@each("code", [*RESERVED, -32000, -32019, -32100, -1, 7])
def test_a_code_that_a_revision_reserves_is_not_sent(code: int, revision: str) -> None:
    sent = RESERVED.get(code, code) if FEATURES[revision].is_modern else code
    for error in (typedmcp.RemoteError(code, ""), typedmcp.RemoteError.from_wire({"code": code, "message": ""})):
        assert error.wire_code(revision) == sent


@each(
    "code, data, kind",
    [
        (-32601, None, typedmcp.MethodNotFoundError),
        (-32602, None, typedmcp.InvalidParamsError),
        (-32602, {"uri": "file:///none"}, typedmcp.ResourceNotFoundError),
        (-32602, {"uri": "file:///none", "path": "params"}, typedmcp.InvalidParamsError),
        (-32002, None, typedmcp.ResourceNotFoundError),
        (-32020, None, typedmcp.HeaderMismatchError),
        (-32021, None, typedmcp.MissingCapabilityError),
        (-32022, None, typedmcp.UnsupportedVersionError),
        (-31403, None, typedmcp.InsufficientScopeError),
        (-31503, None, typedmcp.CallLostError),
        (-32603, None, typedmcp.RemoteError),
        (1, [1], typedmcp.RemoteError),
    ],
)
def test_an_error_of_a_peer_has_the_class_of_its_code(code: int, data: Any, kind: type) -> None:
    error = typedmcp.RemoteError.from_wire({"code": code, "message": "text", "data": data})
    assert type(error) is kind
    assert (error.code, error.message, error.data, str(error)) == (code, "text", data, f"text ({code})")


@each("code", [None, "1", 1.5, True, 1 << 60])
def test_an_unusable_code_becomes_that_of_an_internal_error(code: Any) -> None:
    assert typedmcp.RemoteError.from_wire({"code": code, "message": 1}).code == -32603


@each(
    "error",
    [
        typedmcp.ToolError("text", content=[1]),
        typedmcp.UnsupportedVersionError("2031-05-01", ["2026-07-28"]),
        typedmcp.ServerBusyError(429, 1.5, "body").attach_call("tools/call", 7),
        typedmcp.RequestTimeoutError(0.5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_can_be_copied_and_pickled(error: typedmcp.Error) -> None:
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301  # of this test
        assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


@each(
    "required, named",
    [
        ({"sampling": {}}, "sampling"),
        ({"elicitation": {"url": {}}}, "elicitation.url"),
        ({"roots": {}, "sampling": {"tools": {}, "context": {}}}, "roots, sampling.tools, sampling.context"),
    ],
)
def test_the_error_for_a_missing_capability_names_its_parts(required: dict[str, Any], named: str) -> None:
    error = typedmcp.MissingCapabilityError(required)
    assert error.message == f"the client has not declared: {named}"
    assert error.data == {"requiredCapabilities": required}


@each(
    "requested, supported, text",
    [
        ("2031-05-01", [], "2031-05-01"),
        ("2026-07-28", ["2025-06-18", "2025-03-26"], "2026-07-28; supported: 2025-06-18, 2025-03-26"),
        ("\x1b[31m\u202e", ["\n"], r"\x1b[31m\u202e; supported: \n"),
        ("9" * 1000, ["8" * 1000] * 100, f"{'9' * 40}; supported: {', '.join(['8' * 40] * 20)}"),
    ],
    ids=["nothing", "older ones", "control characters", "too much"],
)
def test_the_error_for_an_unsupported_version_names_the_supported_ones(
    requested: str, supported: list[str], text: str
) -> None:
    error = typedmcp.UnsupportedVersionError(requested, supported)
    assert error.message == f"unsupported protocol version: {text}"
    assert error.data == {"requested": requested, "supported": supported}
