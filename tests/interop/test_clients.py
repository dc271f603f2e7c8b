"""The official clients use our server over every transport, with all features of their revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspec.v2026_07_28.exact import structs
from tests.cases import each
from tests.conformance import server
from tests.interop.peers import PEERS, Peer, observe
from typedmcp_extensions.tasks import TASKS

pytestmark = pytest.mark.long

every_client = each("peer", PEERS, ids=str)
with_forms = each("peer", [peer for peer in PEERS if peer.has_forms], ids=str)
without_forms = each("peer", [peer for peer in PEERS if not peer.has_forms], ids=str)
modern = each("peer", [peer for peer in PEERS if peer.is_modern], ids=str)
typescript = each("peer", [peer for peer in PEERS if peer.client == "typescript"], ids=str)


@pytest.fixture(scope="module", autouse=True)
def observed() -> None:
    """Run all clients at the beginning, side by side."""
    observe(PEERS)


ANSWER = "Paris, of course."
"""The text that the model of every client generates."""


# Connecting


@every_client
def test_the_client_and_the_server_agree_on_the_revision(peer: Peer) -> None:
    assert peer.saw("about")["protocolVersion"] == peer.revision


@every_client
def test_the_client_receives_the_server_s_name_and_version(peer: Peer) -> None:
    about = peer.saw("about")
    assert about["serverInfo"] == {"name": "everything", "version": "1"}
    assert about["instructions"] == "Call anything; nothing is real."


@every_client
def test_the_client_receives_the_capabilities_that_its_revision_has(peer: Peer) -> None:
    newer: dict[str, Any] = {} if peer.revision == "2024-11-05" else {"completions": {}}
    if peer.revision in TASKS.revisions:
        newer["extensions"] = {TASKS.identifier: {}}
    assert peer.saw("about")["capabilities"] == newer | {
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }


# Lists

RICH = "test_structured_content"
"""A tool with all members that a tool can have."""
SINCE = {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18", "icons": "2025-11-25"}
"""The revision that added a member of tools."""


@every_client
def test_the_client_lists_every_tool_with_its_description_and_schema(peer: Peer) -> None:
    listed = [tool for tool in peer.saw("lists")["tools"] if tool["name"] != RICH]
    offered = [item for name, (item, _) in server.TOOLS.items() if name not in {*server.LATE, RICH}]
    assert listed == structs.to_builtins(offered)


@every_client
def test_a_tool_has_all_members_that_its_revision_has(peer: Peer) -> None:
    listed = next(tool for tool in peer.saw("lists")["tools"] if tool["name"] == RICH)
    everything = structs.to_builtins(server.TOOLS[RICH][0])
    unknown = {name for name, since in SINCE.items() if peer.revision < since}
    assert listed == {name: value for name, value in everything.items() if name not in unknown}


@every_client
def test_the_client_lists_resources_and_templates(peer: Peer) -> None:
    lists = peer.saw("lists")
    assert lists["resources"] == structs.to_builtins(server.RESOURCES)
    assert lists["templates"] == structs.to_builtins(server.TEMPLATES)


@every_client
def test_the_client_lists_prompts_with_their_arguments(peer: Peer) -> None:
    offered = structs.to_builtins([item for name, (item, _) in server.PROMPTS.items() if name not in server.LATE])
    if not peer.has_empty_lists:
        offered = [{key: value for key, value in item.items() if value != []} for item in offered]
    assert peer.saw("lists")["prompts"] == offered


# Contents


def embedded(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


IMAGE = {"type": "image", "data": server.PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": server.WAV, "mimeType": "audio/wav"}
CONTENT: dict[str, list[dict[str, Any]]] = {
    "simple_text": [{"type": "text", "text": "This is a simple text response for testing."}],
    "image_content": [IMAGE],
    "audio_content": [AUDIO],
    "embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ],
    "multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}


@every_client
@each("tool", CONTENT)
def test_a_call_returns_the_content_that_the_tool_made(peer: Peer, tool: str) -> None:
    expected = CONTENT[tool]
    if tool == "audio_content" and peer.revision == "2024-11-05":  # which has no sound
        expected = [{"type": "text", "text": "[audio, audio/wav]"}]
    result = peer.saw("calls")[tool]
    assert result["content"] == expected
    assert not result.get("isError")


@every_client
def test_structured_content_and_links_arrive_as_text_in_revisions_without_them(peer: Peer) -> None:
    result = peer.saw("calls")["structured_content"]
    data, link = result["content"]
    assert data == {"type": "text", "text": '{"degrees": 12.5}'}
    if peer.revision >= "2025-06-18":
        assert result["structuredContent"] == {"degrees": 12.5}
        named = {"type": "resource_link", "name": "static-text", "uri": "test://static-text", "mimeType": "text/plain"}
        assert link == named
    else:
        assert "structuredContent" not in result
        assert link == {"type": "text", "text": "[resource static-text: test://static-text]"}


@every_client
def test_the_result_of_a_failing_tool_is_an_error(peer: Peer) -> None:
    result = peer.saw("calls")["error_handling"]
    assert result["isError"] is True
    assert result["content"] == [
        {"type": "text", "text": "This tool intentionally returns an error for testing"},
    ]


@every_client
def test_the_client_reads_text_binary_and_templated_resources(peer: Peer) -> None:
    static, binary, made = "test://static-text", "test://static-binary", "test://template/123/data"
    data = {"id": "123", "templateTest": True, "data": "Data for ID: 123"}
    assert peer.saw("reads") == {
        static: [{"uri": static, "mimeType": "text/plain", "text": "This is the content of the static text resource."}],
        binary: [{"uri": binary, "mimeType": "image/png", "blob": server.PNG}],
        made: [{"uri": made, "mimeType": "application/json", "text": json.dumps(data)}],
    }


def user(*contents: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content} for content in contents]


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


PROMPTS = {
    "test_simple_prompt": user(text("This is a simple prompt for testing.")),
    "test_prompt_with_arguments": user(text("Prompt with arguments: arg1='hello', arg2='world'")),
    "test_prompt_with_embedded_resource": user(
        embedded("test://example", "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    ),
    "test_prompt_with_image": user(IMAGE, text("Please analyze the image above.")),
}


@every_client
@each("prompt", PROMPTS)
def test_the_client_gets_prompts_with_its_arguments_in_them(peer: Peer, prompt: str) -> None:
    assert peer.saw("prompts")[prompt] == PROMPTS[prompt]


@every_client
def test_the_client_receives_completions(peer: Peer) -> None:
    assert peer.saw("completions") == {
        "prompt": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False},
        "template": {"values": ["12", "123"], "total": 2, "hasMore": False},
    }


# While a call runs


@every_client
def test_the_client_receives_progress_in_order(peer: Peer) -> None:
    has_messages = peer.revision != "2024-11-05"
    expected = [[done, 100, f"{done} of 100" if has_messages else None] for done in (0, 50, 100)]
    assert peer.saw("progress") == expected


@every_client
def test_a_call_that_the_client_cancels_ends_in_the_server(peer: Peer) -> None:
    assert peer.saw("cancelling") == {"before": "0", "after": "1" if peer.can_cancel else "0"}


@every_client
def test_the_client_receives_log_messages_from_its_level_on(peer: Peer) -> None:
    messages: list[list[Any]] = [
        ["debug", "Looking closely", None],
        ["info", {"step": 1, "of": 2}, None],
        ["error", "Nothing is wrong, this is a test", None],
    ]
    expected = {"debug": messages, "info": messages[1:], "error": messages[2:]}
    if not peer.logs_objects:
        expected = {level: [each for each in said if isinstance(each[1], str)] for level, said in expected.items()}
    assert peer.saw("logging") == expected


# Requests for input


@every_client
def test_a_tool_gets_a_message_from_the_client_s_model(peer: Peer) -> None:
    seen = peer.saw("asking")["test_sampling"]
    assert seen["text"] == f"LLM response: {ANSWER}"
    assert seen["asked"] == [{"messages": user(text("Say something")), "maxTokens": 100}]


@every_client
def test_a_sampling_request_may_have_a_key(peer: Peer) -> None:
    seen = peer.saw("asking")["test_input_required_result_sampling"]
    assert seen["text"] == f"The model says: {ANSWER}"


@every_client
def test_a_tool_gets_the_client_s_roots(peer: Peer) -> None:
    seen = peer.saw("asking")["test_input_required_result_list_roots"]
    assert seen == {"text": "Roots: file:///home/ada/project", "asked": [] if peer.answers_for_roots else ["roots"]}


def form(message: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """Return the form that the user sees, without the mode, which is the default."""
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"message": message, "requestedSchema": schema}


def without_mode(question: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in question.items() if (key, value) != ("mode", "form")}


@with_forms
def test_a_tool_gets_input_of_the_user(peer: Peer) -> None:
    seen = peer.saw("asking")["test_elicitation"]
    fields = server.ACCOUNT["properties"]
    assert [without_mode(question) for question in seen["asked"]] == [form("Who are you?", **fields)]
    action, _, content = seen["text"].partition(", content=")
    assert action == "User response: action=accept"
    answered = json.loads(content)
    assert answered == {"username": "ada", "email": "ada@example.org"}
    assert list(answered) == peer.order(["username", "email"])


@with_forms
def test_a_form_has_the_defaults_that_the_revision_supports(peer: Peer) -> None:
    seen = peer.saw("asking")["test_elicitation_sep1034_defaults"]
    fields: dict[str, dict[str, Any]] = seen["asked"][0]["requestedSchema"]["properties"]
    known = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    if peer.revision == "2025-06-18":  # which has a default for what is true or false only
        known = {"verified": True}
    assert {name: field["default"] for name, field in fields.items() if "default" in field} == known
    assert list(fields) == peer.order(server.DEFAULTS["properties"])
    answered = json.loads(seen["text"].partition("content=")[2])
    assert answered == {"name": "Ada", "age": 36, "score": 1.5, "status": "pending", "verified": False}


@with_forms
def test_a_form_offers_the_choices_that_the_revision_supports(peer: Peer) -> None:
    seen = peer.saw("asking")["test_elicitation_sep1330_enums"]
    fields = seen["asked"][0]["requestedSchema"]["properties"]
    expected: dict[str, Any] = dict(server.CHOICES["properties"])
    if peer.revision == "2025-06-18":  # one choice at a time, with names beside the values
        del expected["untitledMulti"], expected["titledMulti"]
        titles = {"enum": ["value1", "value2"], "enumNames": ["First choice", "Second choice"]}
        expected["titledSingle"] = {"type": "string", **titles}
    assert fields == expected
    answered = json.loads(seen["text"].partition("content=")[2])
    assert list(answered) == peer.order(expected)


@with_forms
@each(
    ("tool", "answer"),
    [
        ("elicitation", "Hello, Ada!"),
        ("request_state", "state-ok"),
        ("multiple_inputs", f"{ANSWER} Ada, 1 folder(s)."),
        ("multi_round", "Ada likes green."),
        ("capabilities", "Answered: client_roots, greeting, user_name"),
    ],
)
def test_a_tool_gets_the_requested_input_on_every_revision(peer: Peer, tool: str, answer: str) -> None:
    seen = peer.saw("asking")[f"test_input_required_result_{tool}"]
    if peer.client == "go" and peer.is_modern and tool in ("multiple_inputs", "capabilities"):
        # It cannot decode a request for roots without parameters, and these tools request them without.
        assert "unexpected end of JSON input" in seen["failed"]
    else:
        assert seen["text"] == answer


@with_forms
def test_a_tool_with_two_questions_asks_each_once(peer: Peer) -> None:
    asked = peer.saw("asking")["test_input_required_result_multi_round"]["asked"]
    messages = ["Step 1: What is your name?", "Step 2: What is your favorite color?"]
    assert [question["message"] for question in asked] == messages


@with_forms
def test_a_prompt_may_request_input_too(peer: Peer) -> None:
    seen = peer.saw("prompts")["test_input_required_result_prompt"]
    assert seen == user(text("Prompt with context: tea"))


@without_forms
def test_a_tool_that_needs_a_form_fails_on_a_revision_without_forms(peer: Peer) -> None:
    seen = peer.saw("asking")["test_elicitation"]
    assert seen["code"] == -32600
    assert seen["data"] == {"requiredCapabilities": {"elicitation": {}}}
    assert seen["asked"] == []


@without_forms
def test_a_tool_may_request_all_input_that_the_client_declares(peer: Peer) -> None:
    seen = peer.saw("asking")["test_input_required_result_capabilities"]
    assert seen["text"] == "Answered: client_roots, greeting"


@typescript
def test_only_older_revisions_send_requests_to_the_client(peer: Peer) -> None:
    older = ["elicitation/create"] if peer.has_forms else []
    older += ["roots/list", "sampling/createMessage"]
    assert peer.saw("requested") == ([] if peer.is_modern else older)


# Rounds


@modern
def test_a_question_is_a_round_with_the_key_of_the_question(peer: Peer) -> None:
    assert peer.saw("rounds")["one"] == [["user_name"], "Hello, Ada!"]


@modern
def test_a_second_question_is_a_second_round_without_the_first(peer: Peer) -> None:
    assert peer.saw("rounds")["two"] == [["step1"], ["step2"], "Ada likes green."]


@modern
def test_a_modified_request_state_is_rejected(peer: Peer) -> None:
    tampered = peer.saw("rounds")["tampered"]
    assert tampered["code"] == -32602
    assert "altered" in tampered["message"]


# Changes


@every_client
def test_the_client_receives_changes_while_it_listens(peer: Peer) -> None:
    assert peer.saw("changes")["heard"] == ["tools", "prompts", server.WATCHED]


@every_client
def test_the_client_receives_no_updates_after_unsubscribing(peer: Peer) -> None:
    assert peer.saw("changes")["after_leaving"] == []


@every_client
def test_the_client_finds_the_announced_changes(peer: Peer) -> None:
    seen = peer.saw("changes")
    assert seen["late"] == ["test_late_tool"]
    assert seen["watched"] == ["Changed 0 time(s).", "Changed 2 time(s)."]


# Errors


@every_client
@each(
    ("what", "code", "data"),
    [
        ("tool", -32602, {"name": "no_such_tool"}),
        ("argument", -32602, {"path": "params.arguments.prompt"}),
        ("prompt", -32602, {"name": "no_such_prompt"}),
        ("method", -32601, None),
    ],
)
def test_the_client_receives_errors_for_unknown_names(peer: Peer, what: str, code: int, data: Any) -> None:
    error = peer.saw("errors")[what]
    assert (error["code"], error["data"]) == (code, data)


@every_client
def test_an_unknown_resource_is_an_error_with_the_code_of_the_revision(peer: Peer) -> None:
    error = peer.saw("errors")["resource"]
    assert error["code"] == (-32602 if peer.is_modern else -32002)
    assert error["data"] == {"uri": "test://no-such-resource"}
    assert "test://no-such-resource" in error["message"]
