"""Secrets are removed from recorded messages, and schemas keep their meaning."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.cases import each
from tests.growth import growth
from typedmcp_cli.recording.masks import MASK, SECRET_NAMES, SecretMasker, matches_masked
from typedmcp_schemas.nesting import MAX_DEPTH


@each("name", [*SECRET_NAMES, "API-Key", "apiKey", "ACCESS_TOKEN", "Set-Cookie", "api key"])
def test_a_member_with_the_name_of_a_secret_is_masked_at_any_depth(name: str) -> None:
    message = {"params": {"arguments": {"deep": [{name: "s3cret-value", "kept": 1}]}}}
    assert SecretMasker().mask(message) == {"params": {"arguments": {"deep": [{name: MASK, "kept": 1}]}}}


def test_numbers_lists_and_objects_under_a_secret_name_are_masked_and_keep_their_structure() -> None:
    masked = SecretMasker(["address"]).mask({"token": 1234, "cookie": ["a=b", None, True], "address": {"zip": 5003}})
    assert masked == {"token": MASK, "cookie": [MASK, None, True], "address": {"zip": MASK}}


def test_names_of_the_protocol_are_not_masked() -> None:
    message: dict[str, Any] = {"params": {"_meta": {"progressToken": 3}, "cursor": "abc", "requestState": "x"}}
    assert SecretMasker().mask(message) == message


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "password": {"type": "string", "title": "Password", "default": ""},
        "properties": {"type": "integer"},
    },
    "$defs": {"token": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "secret": True},
    "required": ["password"],
}


@each("name", ["inputSchema", "outputSchema", "requestedSchema", "schema", "input_schema"])
def test_schemas_of_secrets_are_not_masked(name: str) -> None:
    message = {"result": {"tools": [{"name": "login", name: SCHEMA}]}}
    assert SecretMasker(["password"]).mask(message) == message


def test_values_that_a_schema_has_for_secrets_are_masked() -> None:
    object_of_secrets = {"properties": {"key": {"type": "string", "default": "a"}}, "examples": [{"key": "b"}]}
    schema = {"properties": {"token": {"enum": ["c"]}, "credentials": object_of_secrets, "kept": {"default": "d"}}}
    masked_object = {"properties": {"key": {"type": "string", "default": MASK}}, "examples": [{"key": MASK}]}
    assert SecretMasker().mask({"inputSchema": {**schema, "default": {"token": "e", "kept": "f"}}}) == {
        "inputSchema": {
            "properties": {"token": {"enum": [MASK]}, "credentials": masked_object, "kept": {"default": "d"}},
            "default": {"token": MASK, "kept": "f"},
        }
    }


@each(
    "message, masked",
    [
        ({"properties": {"password": "S", "kept": 1}}, {"properties": {"password": MASK, "kept": 1}}),
        ({"properties": {"token": {"type": "S"}}}, {"properties": {"token": {"type": MASK}}}),
        ({"schema": {"properties": {"token": "S"}}}, {"schema": {"properties": {"token": MASK}}}),
        ({"schema": {"properties": [{"token": {"a": 1}}]}}, {"schema": {"properties": [{"token": {"a": MASK}}]}}),
        ({"schema": {"token": {"a": "S"}}}, {"schema": {"token": {"a": MASK}}}),
        ({"name": "password", "value": "S"}, {"name": "password", "value": MASK}),
        ([{"Value": ["S"], "Key": "api key"}], [{"Value": [MASK], "Key": "api key"}]),
        ({"name": "title", "value": "kept"}, {"name": "title", "value": "kept"}),
        ({"secret": {"token=S": "S"}}, {"secret": {f"token={MASK}": MASK}}),
        ({"token=S": 1}, {f"token={MASK}": 1}),
    ],
)
def test_members_that_look_like_a_schema_or_are_named_by_another_are_masked(message: object, masked: object) -> None:
    assert SecretMasker().mask(message) == masked


@each(
    "text, masked",
    [
        ("sent Authorization: Bearer abc.def-123", "sent Authorization: Bearer [masked]"),
        ("basic QWxhZGRpbjpvcGVu", "basic [masked]"),
        ("bearer:abc.def-123", "bearer:[masked]"),
        ("basic facts", "basic facts"),
        ("postgres://ada:pw@db/x and https://ok.example", "postgres://[masked]@db/x and https://ok.example"),
        ("https://ada:p@w@db/?a=b@c", "https://[masked]@db/?a=b@c"),
        ("https:\\/\\/ada:pw@db\\/x", "https:\\/\\/[masked]@db\\/x"),
        ("a://bhttps://ada:pw@db", "a://bhttps://[masked]@db"),
        ("://ada@db", "://[masked]@db"),
        ("mail ada@example.com, see https://@db", "mail ada@example.com, see https://@db"),
        ("https://a.example/?access_token=abc&page=2", "https://a.example/?access_token=[masked]&page=2"),
        ("?user[password]=abc&token[]=def&a[]=g", "?user[password]=[masked]&token[]=[masked]&a[]=g"),
        ("?user%5Bpassword%5D=abc&page=2", "?user%5Bpassword%5D=[masked]&page=2"),
        ("?next=%3Fpage%3D2%26token%3Dabc", "?next=%3Fpage%3D2%26token%3D[masked]"),
        ("token=abc == token, tokens=7, my-token=7", "token=[masked] == token, tokens=7, my-token=7"),
        ('password="a b", n="x"', 'password="[masked]", n="x"'),
        ("password = 'a b'\nn = 7", "password = '[masked]'\nn = 7"),
        ("{user: 'ada', password: 'abc'}", "{user: 'ada', password: '[masked]'}"),
        ("password=\nn=7", "password=\nn=7"),
        ("authorization=Bearer abc", "authorization=[masked]"),
        ('if token == "abc"', 'if token == "[masked]"'),
        ("Login(token=['a', 'b'], n=1)", "Login(token=[masked], n=1)"),
        ("{'password': 'it\\'s', 'n': 7}", "{'password': '[masked]', 'n': 7}"),
        ('{"password"=>"abc", :n=>7}', '{"password"=>"[masked]", :n=>7}'),
        ('{"api_key": "abc\\"d", "n": "x"}', '{"api_key": "[masked]", "n": "x"}'),
        ('{"api_key"\t:\n"abc\\\\", "n": "x"}', '{"api_key"\t:\n"[masked]", "n": "x"}'),
        ('{"token": 12.5e3, "n": 7}', '{"token": "[masked]", "n": 7}'),
        ('{"n": 7, "token":-12}', '{"n": 7, "token":"[masked]"}'),
        ('{"token": null, "secret": true}', '{"token": null, "secret": true}'),
        ('{"token": ["a]", {"b": [1]}], "n": [7]}', '{"token": "[masked]", "n": [7]}'),
        ('[[{"token": [[1]]}]]', '[[{"token": "[masked]"}]]'),
        ('{"token": "cut off', '{"token": "[masked]"'),
        ('{"token": ["cut off"', '{"token": "[masked]"'),
        ('{"name": "token", "value": "abc"}', '{"name": "token", "value": "[masked]"}'),
        ('{"name": "title", "value": "abc"}', '{"name": "title", "value": "abc"}'),
        ('<field name="token" value="abc"/>', '<field name="token" value="[masked]"/>'),
        ('{\\"token\\": [\\"a\\"], \\"n\\": 7}', '{\\"token\\": \\"[masked]\\", \\"n\\": 7}'),
        ('{\\"token\\": \\"cut off", "password": "abc"}', '{\\"token\\": \\"[masked]\\", "password": "[masked]"}'),
        ('{\\"q\\": \\"?a=1\\u0026token=abc\\"}', '{\\"q\\": \\"?a=1\\u0026token=[masked]\\"}'),
        ("the password: your own, the token is 7", "the password: your own, the token is 7"),
    ],
)
def test_secrets_in_text_are_masked(text: str, masked: str) -> None:
    assert SecretMasker().mask({"text": text, "list": [text]}) == {"text": masked, "list": [masked]}
    assert matches_masked(masked, text)


@each("depth", range(6))
def test_json_in_json_is_masked_exactly_at_every_depth(depth: int) -> None:
    source = random.Random(depth)

    def text(password: str, token: object) -> str:
        value = json.dumps({"password": password, "n": 7, "token": token, "kept": "]"})
        for _ in range(depth):
            value = json.dumps({"note": 'a "note"', "inner": value, "n": 7})
        return value

    for _ in range(300):
        secret = "".join(source.choices('"\\ab,]}\n', k=source.randrange(8)))
        assert SecretMasker().mask(text(secret, [secret, {"a": secret}])) == text(MASK, MASK)


def test_a_masked_value_is_masked_wherever_it_appears_later() -> None:
    masker = SecretMasker()
    masker.mask({"params": {"password": "hunter2hunter2"}})
    assert masker.mask({"result": {"text": "you sent hunter2hunter2."}}) == {"result": {"text": f"you sent {MASK}."}}


def test_a_short_secret_is_not_looked_for_elsewhere() -> None:
    assert SecretMasker().mask({"password": "on", "text": "on and on"}) == {"password": MASK, "text": "on and on"}


@each(
    "text",
    [
        {"password": 'an "unusual" secret'},
        json.dumps({"password": 'an "unusual" secret'}),
        json.dumps({"inner": json.dumps({"token": [7, 'an "unusual" secret']})}),
        "token='an \"unusual\" secret'",
    ],
)
def test_secrets_in_text_are_masked_wherever_they_appear_later(text: object) -> None:
    masker = SecretMasker()
    masker.mask({"params": text})
    later = {'an "unusual" secret': ['you sent: an "unusual" secret']}
    assert masker.mask(later) == {MASK: [f"you sent: {MASK}"]}


@each("name", ["a", "password", "schema", "properties"])
def test_the_deepest_message_is_masked_on_a_deep_stack(name: str) -> None:
    message: Any = ["password=abc"]
    for _ in range(MAX_DEPTH):
        message = {name: message}

    def mask(frames: int) -> str:
        return mask(frames - 1) if frames else json.dumps(SecretMasker().mask({"token": "a long secret", "m": message}))

    assert "abc" not in mask(400)


@each(
    "part",
    [
        "://a.", "a://b", "://a-", "a://b@", ":\\/\\/", ":////", "a@b:", '"a":"\\', '"a":\\"', '"', "'", "\\", '\\"',
        '\\\\"', "\\\\\\", '"password":"\\', '"password":"', 'password="', 'password="\\\\', "password='\\\"",
        '"token":[', '"token":["', "token={", "token=[]", "token=[{}]", "token=['", "token=", "token=\\", "token=a&",
        "token=12,", '"token": 1 ', '"token":1\\', "name=", '"name":"token","value":', "a", "a=", "a =", '"a"    ', "=",
        "=>", "%3D", "%5B", "a%5B%5D", "a[]", "\\n", "\\u0026", "bearer ", "bearer :", "bearer", "basic  ", " ", "\n",
        "bearer a", "authorization=bearer ", "authorization = token   ", "password ", "token: ", "token :'", "token",
    ],
)  # fmt: skip
def test_masking_takes_linear_time(part: str) -> None:
    assert growth(lambda text: SecretMasker().mask({"text": text}), part) < 10


@each(
    "recorded, value, expected",
    [
        ({"a": [1, MASK]}, {"a": [1, "anything"]}, True),
        ({"a": MASK}, {"a": 7}, True),
        ({"a": f'to {{"n": "{MASK}"}} or \\"{MASK}\\"'}, {"a": 'to {"n": [7]} or 8'}, True),
        ({"a": f"to {MASK}@x and {MASK}"}, {"a": "to me@x and you"}, True),
        ({"a": f"to {MASK}@x"}, {"a": "to me@y"}, False),
        (f"ab{MASK}bc", "abc", False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 2], False),
        ("text", "text", True),
    ],
)
def test_a_mask_matches_any_value_in_its_place(recorded: object, value: object, expected: bool) -> None:
    assert matches_masked(recorded, value) is expected
