"""Python names made from names of the schema."""

from __future__ import annotations

import keyword

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcpspec_codegen.names import name_attribute, name_constant, to_pascal, to_snake
from tests.cases import each


@each(
    "text, name",
    [
        ("text", "text"),
        ("callTool", "call_tool"),
        ("CallToolRequest", "call_tool_request"),
        ("ListResourceTemplates", "list_resource_templates"),
        ("URLElicitationRequired", "url_elicitation_required"),
        ("JSONRPCMessage", "jsonrpc_message"),
        ("websiteUrl", "website_url"),
        ("ES256Key", "es256_key"),
        ("sha256Sum", "sha256_sum"),
        ("already_snake", "already_snake"),
        ("tools/call", "tools_call"),
        ("notifications/tools/list_changed", "notifications_tools_list_changed"),
        ("logging/setLevel", "logging_set_level"),
        ("content-type", "content_type"),
        ("$schema", "schema"),
        ("_meta", "meta"),
    ],
)
def test_snake_splits_words_where_case_or_punctuation_does(text: str, name: str) -> None:
    assert to_snake(text) == name


@each(
    "text, name",
    [
        ("inputSchema", "InputSchema"),
        ("Tool", "Tool"),
        ("_meta", "Meta"),
        ("$schema", "Schema"),
        ("list_changed", "ListChanged"),
        ("notifications/progress", "NotificationsProgress"),
        ("text/event-stream", "TextEventStream"),
        ("io.modelcontextprotocol/clientInfo", "IoModelcontextprotocolClientInfo"),
        ("websiteURL", "WebsiteURL"),
        ("", ""),
    ],
)
def test_pascal_joins_words_and_leaves_capitals_within_them_alone(text: str, name: str) -> None:
    assert to_pascal(text) == name


@each(
    "text, name",
    [
        ("ping", "PING"),
        ("tools/call", "TOOLS_CALL"),
        ("logging/setLevel", "LOGGING_SET_LEVEL"),
        ("sampling/createMessage", "SAMPLING_CREATE_MESSAGE"),
        ("notifications/resources/list_changed", "NOTIFICATIONS_RESOURCES_LIST_CHANGED"),
        ("HeaderMismatchError", "HEADER_MISMATCH_ERROR"),
    ],
)
def test_constant_name_is_the_snake_name_in_capitals(text: str, name: str) -> None:
    assert name_constant(text) == name


@each(
    "wire, attribute",
    [
        ("name", "name"),
        ("mimeType", "mime_type"),
        ("_meta", "meta"),
        ("x.y/clientInfo", "client_info"),
        ("io.modelcontextprotocol/subscriptionId", "subscription_id"),
        ("class", "class_"),
        ("x.y/class", "class_"),
        ("from", "from_"),
        ("schema", "schema_"),
        ("$schema", "schema_"),
        ("json", "json_"),
        ("modelConfig", "model_config_"),
        ("items", "items"),
        ("type", "type"),
        ("\N{FEMININE ORDINAL INDICATOR}", "a"),
        ("\N{LATIN SMALL LIGATURE FI}le", "file"),
        ("\N{FULLWIDTH LATIN SMALL LETTER C}lass", "class_"),
    ],
)
def test_attribute_name_drops_the_namespace_and_avoids_keywords_and_methods(wire: str, attribute: str) -> None:
    assert name_attribute(wire) == attribute


@each("method", ["clear", "copy", "get", "items", "keys", "pop", "update", "values"])
def test_a_member_of_an_open_object_does_not_shadow_a_method_of_dict(method: str) -> None:
    assert name_attribute(method, in_dict=True) == method + "_"


def test_other_members_of_an_open_object_are_named_like_those_of_records() -> None:
    assert name_attribute("mimeType", in_dict=True) == "mime_type"


def test_no_field_shadows_an_attribute_of_a_pydantic_model() -> None:
    public = [name for name in dir(BaseModel) if not name.startswith("_")]
    assert [name for name in public if name_attribute(name) == name] == []


@given(st.from_regex(r"[a-z][A-Za-z0-9]*(/[a-z][A-Za-z0-9]*)?", fullmatch=True))
def test_a_camel_case_name_always_becomes_a_python_name(wire: str) -> None:
    attribute = name_attribute(wire)
    assert attribute.isidentifier()
    assert not keyword.iskeyword(attribute)
