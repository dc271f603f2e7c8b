"""Text of peers in logs, on terminals and in errors."""

from __future__ import annotations

import asyncio
import json
import logging
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import typedmcp
from tests.cases import each
from typedmcp.protocol.text import escape_controls, log_failure, visible

CASES = [
    ("it rains 🌧 in Ålesund", "it rains 🌧 in Ålesund"),
    ("\x1b[2Jcleared", "\\x1b[2Jcleared"),
    ("a\nWARNING: forged\r\n", "a\\x0aWARNING: forged\\x0d\\x0a"),
    ("\x7f\x9b31m\0", "\\x7f\\x9b31m\\x00"),
    ("user\u202egnp.exe\u2066x\u2069", "user\\u202egnp.exe\\u2066x\\u2069"),
    ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
    ("a\ud800b", "a\\ud800b"),
    ("family 👩\u200d👧, 東京\u3000駅", "family 👩\u200d👧, 東京\u3000駅"),
]


@each("text, expected", CASES)
def test_what_controls_a_terminal_or_a_log_is_escaped_and_nothing_else(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text(), st.integers(1, 50))
def test_visible_text_is_one_short_line_of_harmless_characters(text: str, limit: int) -> None:
    shown = visible(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not any(unicodedata.bidirectional(each)[:2] in ("LR", "RL") and len(unicodedata.bidirectional(each)) == 3
                   for each in shown)  # fmt: skip
    shown.encode()


def test_a_long_text_is_shortened_in_constant_time() -> None:
    assert visible("x" * 10_000_000, 10) == "xxxxxxxxx…"


def test_lines_and_tabs_are_kept_on_request() -> None:
    assert escape_controls("a\tb\r\nc\x1b\rd", keep_lines=True) == "a\tb\nc\\x1b\\x0dd"


def test_an_exception_cannot_forge_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    try:
        raise ValueError("no city a\nERROR: forged\x1b[1m")
    except ValueError as error:
        log_failure(logging.WARNING, "tool 'x\n' failed", error)
    (record,) = caplog.records
    assert isinstance(record.exc_info, tuple)
    assert isinstance(record.exc_info[1], ValueError)
    assert record.funcName == "test_an_exception_cannot_forge_a_line_of_the_log"
    first, *others = caplog.text.splitlines()
    assert first == "WARNING: tool 'x\\x0a' failed"
    assert "  ERROR: forged\\x1b[1m" in others
    assert all(line.startswith("  ") for line in others)


FORGED = "x\nWARNING: forged\x1b[2J\u202e"


def test_a_server_logs_what_its_functions_and_clients_say_without_forged_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    server = typedmcp.Server("s")

    @server.tool
    async def fail() -> str:
        raise ValueError(FORGED)

    async def main() -> None:
        with caplog.at_level(logging.DEBUG, "typedmcp"):
            async with typedmcp.connect(server) as client:
                await client.call_tool("fail")
                with pytest.raises(typedmcp.MethodNotFoundError) as caught:
                    await client.send(FORGED)
                assert str(caught.value).isprintable()

    asyncio.run(main())
    assert "tool 'fail' failed: ValueError: x\\x0aWARNING: forged\\x1b[2J\\u202e" in caplog.text
    assert harmful(caplog.text) == []


def test_a_client_logs_what_a_server_sends_without_forged_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))

    async def main() -> None:
        near, far = typedmcp.memory_pair()
        client = typedmcp.connect(near, revisions=["2025-06-18"])
        opening = asyncio.create_task(client.open())
        await far.read()
        messages: list[dict[str, Any]] = [
            {"method": FORGED},
            {"method": "notifications/progress", "params": {FORGED: 1}},
            {"id": 99, "error": {"code": 1, "message": FORGED}},
            {"error": {"code": 1, "message": FORGED}},
        ]
        for message in messages:
            far.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        with pytest.raises(typedmcp.RemoteError) as caught:
            await opening
        assert str(caught.value).isprintable()
        assert caught.value.message == FORGED

    with caplog.at_level(logging.WARNING, "typedmcp"):
        asyncio.run(main())
    assert len(caplog.records) == 3
    assert harmful(caplog.text) == []


def harmful(logged: str) -> list[str]:
    """Return the lines of a log that are forged, or would control a terminal."""
    return [line for line in logged.splitlines() if not line.isprintable() or line.startswith("WARNING: forged")]
