"""The official Python client, whose tasks are those of 2025-11-25, uses the tasks of our server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.interop import install
from tests.interop.peers import printed
from tests.listening import listening

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
CLIENT = [str(install.INTEROP / "py1" / "bin" / "python"), str(HERE / "python_tasks.py")]
SERVER = [sys.executable, str(HERE / "servers" / "with_tasks.py")]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_official_client_uses_tasks(transport: str) -> None:
    if transport == "stdio":
        seen = json.loads(printed([*CLIENT, "stdio", *SERVER]))
    else:
        with listening([*SERVER, "http"]) as server:
            seen = json.loads(printed([*CLIENT, "http", server.address]))
    assert seen["capability"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert seen["tools"] == {"greet": "optional", "wait": "optional", "only": "required", "quick": "forbidden"}
    assert {*seen["statuses"]} >= {"input_required", "completed"}
    assert (seen["text"], seen["related"]) == ("Hello, Ada!", True)
    assert seen["cancelled"] == "cancelled"
    assert seen["listed"] == ["completed", "cancelled"]
    assert seen["refused"] == -32601
