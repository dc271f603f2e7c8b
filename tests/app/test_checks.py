"""The findings of `Server.check`."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from tests.cases import each
from tests.paths import ROOT
from typedmcp import Server
from typedmcp_schemas.validate import can_validate

OBJECT = {"type": "object"}
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if "Server(" in path.read_text(encoding="utf-8"))


def check_tool(name: str = "add", schema: dict[str, Any] | None = None, description: str = "Add.") -> set[str]:
    """Return the findings about a tool as `severity rule hosts`."""
    server = Server()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some names are warned of when they are registered
        server.add_tool(take_anything, name=name, input_schema=schema, description=description)
    return {f"{each.severity} {each.rule} {' '.join(each.hosts)}".strip() for each in server.check()}


def take_anything(**rest: Any) -> str:
    return str(rest)


def described(schema: Any) -> dict[str, Any]:
    return {**OBJECT, "properties": {"a": {"description": "A value.", **schema}}}


@each(
    "name, expected",
    [
        ("add", set[str]()),
        ("a" * 64, set[str]()),
        ("größe", {"error name"}),
        ("a" * 129, {"error name"}),
        ("a" * 65, {"error host-name openai anthropic gemini"}),
        ("files.read", {"warning host-name openai anthropic gemini"}),
        ("1st", {"warning host-name openai anthropic gemini"}),
    ],
)
def test_names_that_the_specification_or_hosts_refuse_are_found(name: str, expected: set[str]) -> None:
    assert check_tool(name) == expected


@pytest.mark.skipif(not can_validate(), reason="the extra jsonschema is not installed")
@each(
    "kind, default, expected",
    [
        (int, 1, None),
        (int | None, None, None),
        (list[int], [], None),
        (int, "a", 'the default of n: "a" is not of type "integer"'),
        (int, None, 'the default of n: null is not of type "integer"; write T | None where None is meant'),
        (Literal["a", "b"], "c", "the default of n: "),
        (Annotated[int, Meta(ge=1)], 0, "the default of n: 0 is less than the minimum of 1"),
    ],
)
def test_defaults_that_their_own_schema_rejects_are_found(kind: Any, default: Any, expected: str | None) -> None:
    def count(n: Any = default) -> str:
        return str(n)

    count.__annotations__["n"] = kind
    server = Server()
    server.add_tool(count, description="Count.")
    found = [each for each in server.check() if each.rule == "default"]
    assert [each.severity for each in found] == ["warning"] * (expected is not None)
    assert all(each.text.startswith(str(expected)) for each in found)


CASES: list[tuple[Any, set[str]]] = [
    (described({"type": "array", "items": {}}), set()),
    (described({"type": "array"}), {"error host-schema openai anthropic gemini"}),
    (
        described({"type": ["array", "null"]}),
        {"error host-schema openai anthropic gemini", "warning host-schema gemini"},
    ),
    (described({"type": ["string", "null"]}), {"warning host-schema gemini"}),
    (described({"const": "a"}), {"warning host-schema gemini"}),
    (described({"enum": ["a", 1]}), {"warning host-schema gemini"}),
    (described({"enum": ["a", "b"]}), set()),
    (described({"type": "string", "pattern": "^(?P<n>a)$"}), {"warning host-schema typescript"}),
    (described({"type": "string", "pattern": "^(?<n>a)$"}), set()),
    (described({"anyOf": [True]}), {"error host-schema openai anthropic gemini"}),
    (described({"type": "array", "prefixItems": [{}], "items": {}}), {"warning host-schema typescript"}),
    (described({"type": "array", "prefixItems": [{}], "items": {}, "minItems": 1, "maxItems": 1}), set()),
    (described({"type": "array", "items": False}), {"error host-schema openai anthropic gemini"}),
    ({**OBJECT, "anyOf": [{"required": ["a"]}]}, {"error host-schema openai anthropic"}),
    ({**OBJECT, "properties": {"a b": {"description": "A value."}}}, {"warning host-schema anthropic"}),
    ({**described({"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}}, {"warning host-schema gemini"}),
    ({**OBJECT, "properties": {"a": {"type": "string"}}}, {"warning description"}),
]


@each("schema, expected", CASES)
def test_schemas_that_hosts_refuse_are_found(schema: Any, expected: set[str]) -> None:
    pytest.importorskip("jsonschema_rs")
    assert check_tool(schema=schema) == expected


def test_a_pattern_that_breaks_the_lists_of_typescript_is_found_in_output_schemas_alone() -> None:
    pytest.importorskip("jsonschema_rs")

    def named(n: Annotated[str, Meta(pattern=r"^(?P<n>a)\Z")]) -> dict[str, Annotated[str, Meta(pattern=r"a\-")]]:
        """Name.

        Args:
            n: A name.
        """
        return {n: "a-"}

    server = Server()
    server.add_tool(named)
    assert not list(server.check())
    schema = {"type": "object", "additionalProperties": {"type": "string", "pattern": r"a\-"}}
    server.add_tool(named, name="given", output_schema=schema)
    (found,) = server.check()
    assert (found.severity, found.hosts) == ("error", ("typescript",))
    assert found.text == (
        r"output schema: /additionalProperties: a pattern that JavaScript does not read: a\-; write a-"
    )


def test_names_that_become_equal_are_found() -> None:
    server = Server()
    for name in ("files.read", "files_read"):
        server.add_tool(lambda: "", name=name, description="Read.")
    (collision,) = [each for each in server.check() if each.rule == "name-collision"]
    assert str(collision) == (
        "tool files_read: error: in the APIs of hosts it has the name of files.read [name-collision]"
    )


def test_missing_descriptions_of_everything_are_found() -> None:
    server = Server()
    server.add_tool(undescribed)
    server.add_prompt(undescribed)
    server.add_resource(undescribed, "data://{a}")
    assert [(each.item, each.rule) for each in server.check()] == [
        ("tool undescribed", "description"), ("tool undescribed", "description"),
        ("prompt undescribed", "description"), ("prompt undescribed", "description"),
        ("resource data://{a}", "description"),
    ]  # fmt: skip


def undescribed(a: str) -> str:
    return a


@each("page, expected", [(None, []), (2, []), (1, ["list of Tool: 1 of 2"])])
def test_a_list_of_which_many_clients_would_see_a_part_is_found(page: int | None, expected: list[str]) -> None:
    server = Server(page=page)
    for name in ("a", "b"):
        server.add_tool(lambda: "", name=name, description="Do it.")
    server.add_resource(lambda: "", "data://a", description="Data.")

    def read(a: str) -> str:
        return a

    server.add_resource(read, "data://{a}", description="Data.")
    found = [each for each in server.check() if each.rule == "page"]
    assert [f"{each.item}: {each.text.partition('first ')[2].partition(';')[0]}" for each in found] == expected


def test_mounted_servers_are_checked_under_their_outer_names() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: "", name="a" * 60, description="A tool.")
    outer.mount(inner, "outer")
    assert [each.rule for each in outer.check()] == ["host-name"]


def test_an_illegal_header_is_found_in_a_schema_that_was_changed_later() -> None:
    server = Server()
    server.add_tool(undescribed, description="A tool.")
    defaults: Any = server.__server_config__()
    schema = defaults["input_schema_of"]("undescribed")
    schema["properties"]["a"]["x-mcp-header"] = "a b"
    assert "header" in {each.rule for each in server.check()}


@each("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_no_errors(path: Path) -> None:
    if path.stem in ("langchain_adapter", "official_session"):
        pytest.skip("it needs packages that are not installed")
    spec = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    servers = [value for value in vars(module).values() if isinstance(value, Server)]
    assert [str(each) for server in servers for each in server.check() if each.severity == "error"] == []


def test_most_examples_have_a_server_to_check() -> None:
    assert len(EXAMPLES) >= 10


def test_completions_of_what_does_not_exist_are_found() -> None:
    server, inner = Server(), Server()

    def suggest(text: str) -> list[str]:
        return []

    for of, argument in (("absent", "n"), ("later", "n"), ("later", "m"), ("data://{n}", "n"), ("in_named", "n")):
        server.completion(of, argument)(suggest)

    @server.prompt
    def later(n: str) -> str:
        """Say something.

        Args:
            n: A name.
        """
        return n

    @server.resource("data://{n}")
    def data(n: str) -> str:
        """Read data."""
        return n

    inner.add_prompt(later, name="named")
    server.mount(inner, "in")
    assert [str(found) for found in server.check()] == [
        "completion absent: error: no prompt or resource template has this name [completion]",
        "completion later: error: it has no argument 'm' [completion]",
    ]
