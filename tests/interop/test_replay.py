"""A recording of npm's everything server answers the official Python clients on other revisions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop import install
from tests.interop.peers import printed
from tests.interop.test_servers import EVERYTHING
from typedmcp_cli.recording.reader import read_recording

pytestmark = pytest.mark.long

CLIENT = Path(__file__).parent / "everything_client.py"
TYPEDMCP = [sys.executable, "-m", "typedmcp"]
ENVIRONMENTS = {"mcp 1.x": ("py1", "legacy"), "mcp 2.x": ("py2", "modern")}
"""The environment of each client, and how it begins: 1.x with a handshake, 2.x on the newest revision."""


def observe(client: str, command: list[str]) -> dict[str, Any]:
    """Return what an official client observes of a server."""
    environment, mode = ENVIRONMENTS[client]
    seen: dict[str, Any] = json.loads(printed([str(install.python(environment)), str(CLIENT), mode, *command]))
    return seen


def check_everything(seen: dict[str, Any]) -> None:
    """Check what any client has to observe of the everything server, whether it runs or is replayed."""
    calls = seen["calls"]
    assert {"echo", "get-sum", "get-structured-content", "trigger-long-running-operation"} <= {*seen["tools"]}
    assert calls["echo"]["content"] == [{"type": "text", "text": "Echo: Grüße"}]
    assert calls["get-sum"]["content"][0]["text"] == "The sum of 2 and 40 is 42."
    assert calls["get-structured-content"]["structuredContent"] == json.loads(
        calls["get-structured-content"]["content"][0]["text"]
    )
    assert [block["type"] for block in calls["get-tiny-image"]["content"]] == ["text", "image", "text"]
    assert calls["get-annotated-message"]["content"][0]["annotations"] == {
        "audience": ["user", "assistant"], "priority": 1,
    }  # fmt: skip
    assert [block["type"] for block in calls["get-resource-links"]["content"]] == ["text", *["resource_link"] * 2]
    assert calls["get-resource-reference"]["content"][1]["resource"]["uri"] == "demo://resource/dynamic/text/1"
    assert "Paris, of course." in calls["trigger-sampling-request"]["content"][0]["text"]
    assert "Say something" in json.dumps(seen["asked"])
    assert len(seen["resources"]) == 7
    assert [template["uriTemplate"] for template in seen["templates"]] == [
        "demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}",
    ]  # fmt: skip
    assert seen["document"][0]["text"].startswith("# Everything Server")
    assert [prompt["name"] for prompt in seen["prompts"]][:2] == ["simple-prompt", "args-prompt"]
    assert seen["prompt"][0]["content"]["text"] == "What's weather in Oslo, Norway?"
    assert seen["completion"]["values"] == ["Engineering"]
    assert seen["progress"] == [[1, 2, None], [2, 2, None]]


@pytest.fixture(scope="module", params=[*ENVIRONMENTS])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The recording that an official client has made of the everything server, and what it observed."""
    file = tmp_path_factory.mktemp("recordings") / "everything.jsonl"
    parameters = EVERYTHING.parameters()
    command = [*TYPEDMCP, "record", "--out", str(file), "--", parameters.command, *parameters.args]
    return file, observe(request.param, command)


def test_the_recorded_client_observes_the_server(recorded: tuple[Path, dict[str, Any]]) -> None:
    assert recorded[1]["revision"] == "2025-11-25"  # the newest revision of the server
    check_everything(recorded[1])


@pytest.mark.parametrize("client", ENVIRONMENTS)
def test_another_client_observes_the_same_of_the_recording(client: str, recorded: tuple[Path, dict[str, Any]]) -> None:
    seen = observe(client, [*TYPEDMCP, "replay", str(recorded[0])])
    assert seen["revision"] == ("2026-07-28" if client == "mcp 2.x" else "2025-11-25")
    check_everything(seen)
    assert {**seen, "revision": ""} == {**recorded[1], "revision": ""}


def test_an_older_revision_has_what_it_can_express(recorded: tuple[Path, dict[str, Any]]) -> None:
    revision = "2025-03-26"
    seen = observe("mcp 1.x", [*TYPEDMCP, "replay", str(recorded[0]), "--revision", revision])
    assert seen["revision"] == revision
    assert seen["calls"]["echo"] == recorded[1]["calls"]["echo"]
    assert seen["progress"] == recorded[1]["progress"]
    assert "structuredContent" not in seen["calls"]["get-structured-content"]  # added later


def test_the_server_responds_as_it_did_when_the_recording_is_sent_to_it(recorded: tuple[Path, dict[str, Any]]) -> None:
    parameters = EVERYTHING.parameters()
    command = [*TYPEDMCP, "replay", str(recorded[0]), "--json", "--", parameters.command, *parameters.args]
    found = json.loads(printed(command))
    assert found["differences"] == []
    assert found["requests"] == len(read_recording(recorded[0]).exchanges)
