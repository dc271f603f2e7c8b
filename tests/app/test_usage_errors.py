"""Functions and options that a server rejects, with the texts of the errors."""

from __future__ import annotations

import asyncio
import collections
import enum
import functools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Never, TypedDict, TypeVar, Unpack, cast

import annotated_types as at
import pytest
from msgspec import Meta, to_builtins
from pydantic import BaseModel, Field

import typedmcp
from tests.app.type_cases import Address, Colour, Point, User
from tests.cases import each
from tests.paths import ROOT
from typedmcp import Context, Server, UsageError, UserMessage


class Plain:
    pass


class Names(list[str]):
    pass


class Odd(enum.Enum):
    ONE = object()


class Words(TypedDict):
    a: int


@dataclass
class Undefined:
    x: Missing  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownVariableType]


@dataclass
class Within:
    inner: list[complex]


class Model(BaseModel):
    call: Callable[[], int]


class Sparse(enum.Flag):
    ONE = 1
    FOUR = 4


B = TypeVar("B", bound=Plain)

TYPES: dict[str, tuple[Any, str]] = {
    "complex": (complex, "complex has no JSON form"),
    "a class": (Plain, "Plain has no JSON form"),
    "a list of a class": (list[Plain], "Plain has no JSON form"),
    "a dict of a class": (dict[str, Plain], "Plain has no JSON form"),
    "a union with a class": (int | Plain, "Plain has no JSON form"),
    "a dataclass with complex within": (Within, "complex has no JSON form"),
    "a variable": (B, "Plain has no JSON form"),
    "an exception": (Exception, "Exception has no JSON form"),
    "a function": (Callable[[int], int], r"Callable\[\[int\], int\] has no JSON form"),
    "any function": (Callable, "Callable has no JSON form"),
    "a type": (type[int], r"type\[int\] has no JSON form"),
    "an iterator": (Iterator[int], r"Iterator\[int\] has no JSON form"),
    "a generator": (Generator[int, None, None], "Generator.* has no JSON form"),
    "an async iterator": (AsyncIterator[int], "AsyncIterator.* has no JSON form"),
    "an awaitable": (Awaitable[int], "Awaitable.* has no JSON form"),
    "a range": (range, "range has no JSON form"),
    "Never": (Never, "Never has no JSON form"),
    "a defaultdict": (collections.defaultdict[str, int], "defaultdict.* has no JSON form"),
    "a subclass of list": (Names, "Names has no JSON form: it is a subclass of a builtin class"),
    "an enum of objects": (Odd, "Odd: object has no JSON form"),
    "a model of a function": (Model, "Cannot generate a JsonSchema"),
    "a value": (5, "5 has no JSON form"),
    "a set of lists": (set[list[int]], r"set\[list\[int\]\]: list\[int\] is not hashable"),
    "a set of dataclasses": (frozenset[Point], "Point is not hashable"),
    "a set of Structs": (set[User], "User is not hashable"),
    "a set of models": (set[Address], "Address is not hashable"),
    "a set of tuples of lists": (set[tuple[int, list[int]]], r"tuple\[int, list\[int\]\] is not hashable"),
    "flags with gaps": (Sparse, "Sparse has no JSON form: its flags are not 1, 2, 4 and so on"),
    "keys that are booleans": (dict[bool, str], r"dict\[bool, str\]: bool cannot be a key of a JSON object"),
    "keys that are nothing": (dict[None, str], "None cannot be a key of a JSON object"),
    "keys that have no text": (dict[tuple[int, int], int], "cannot be a key of a JSON object"),
    "an unknown name": ("Missing", "name 'Missing' is not defined"),
    "an unknown name in brackets": ("list[Missing]", "name 'Missing' is not defined"),
    "a dataclass with an unknown name": (Undefined, "Undefined: name 'Missing' is not defined"),
    "a malformed annotation": ("int[", "must be an expression"),
    "an annotation that raises": ("1 / 0", "an annotation cannot be evaluated: ZeroDivisionError: division by zero"),
    "a dataclass with an annotation that raises": (
        make_dataclass("Divided", [("x", "1 / 0")]),
        "an annotation cannot be evaluated: ZeroDivisionError",
    ),
    "a bound of a bool": (Annotated[bool, at.Ge(1)], "ge does not apply to bool"),
    "a bound of a text": (Annotated[str, Field(ge=1)], "ge does not apply to str"),
    "a length of a number": (Annotated[int, Field(max_length=1)], "max_length does not apply to int"),
    "a pattern of a number": (Annotated[int | None, Field(pattern="a")], r"pattern does not apply to int \| None"),
    "a length of an enum": (Annotated[Colour, Field(min_length=1)], "min_length does not apply to Colour"),
    "a length of anything": (Annotated[Any, Field(min_length=1)], "min_length does not apply to Any"),
    "an invalid pattern": (Annotated[str, Field(pattern="(")], "unterminated subpattern"),
    "a bound that is not a number": (Annotated[int, at.Ge("a")], "`ge` must be an int or float"),
    "a list of contexts": (list[Context], "Context.* has no JSON form"),
}
"""Types that no parameter can have, with the error."""


@each("name", TYPES)
def test_a_parameter_whose_type_has_no_json_form_is_rejected(name: str) -> None:
    def function(fine: int, x: Any) -> None: ...

    hint, why = TYPES[name]
    function.__annotations__["x"] = hint
    with pytest.raises(UsageError, match=rf"^tool 'it': function\(\), parameter 'x': .*{why}"):
        Server().add_tool(function, name="it")


# Functions


def with_positional_rest(*args: int) -> None: ...


def with_typed_rest(**rest: Unpack[Words]) -> None: ...


def with_context_rest(**contexts: Context) -> None: ...


def with_two_contexts(x: int, ctx: Context, again: Context) -> None: ...


def with_a_name_twice(x: Annotated[int, Field(alias="y")], y: int) -> None: ...


def with_an_alias_twice(x: int, y: Annotated[int, Field(alias="x")]) -> None: ...


def with_a_dependent_default(x: Annotated[int, Field(default_factory=lambda data: data["y"])]) -> None: ...


def with_an_unknown_return_type(x: int) -> Missing: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]


class Methods:
    def plain(self, x: int) -> None: ...

    @classmethod
    def of_class(cls, x: int) -> None: ...

    async def slow(self) -> None: ...


class Caller:
    def __call__(self, *args: Any) -> None: ...


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "*args": (with_positional_rest, r"with_positional_rest\(\), parameter 'args': a client cannot pass `\*` arguments"),
    "**kwargs with names": (with_typed_rest, r"with_typed_rest\(\), parameter 'rest': .* has no JSON form"),
    "**kwargs of contexts": (
        with_context_rest,
        r"with_context_rest\(\), parameter 'contexts': Context.* has no JSON form",
    ),
    "two contexts": (
        with_two_contexts,
        r"with_two_contexts\(\), parameter 'again': only one parameter can take the context",
    ),
    "two of a name": (with_a_name_twice, r"with_a_name_twice\(\), parameter 'y': another parameter is called 'y'"),
    "two of an alias": (
        with_an_alias_twice,
        r"with_an_alias_twice\(\), parameter 'y': another parameter is called 'x'",
    ),
    "a default of others": (
        with_a_dependent_default,
        r"with_a_dependent_default\(\), parameter 'x': default_factory: ",
    ),
    "an unknown result": (with_an_unknown_return_type, r"\(\), return type: name 'Missing' is not defined"),
    "a method without its object": (Methods.plain, r"plain\(\), parameter 'self': a method needs its object"),
    "an async method without": (Methods.slow, r"slow\(\), parameter 'self': a method needs its object"),
    "a class method without": (
        cast(Any, Methods.of_class).__func__,
        r"of_class\(\), parameter 'cls': a method needs its object",
    ),
    "an object": (Caller(), r"Caller\(\), parameter 'args': a client cannot pass `\*` arguments"),
    "a partial": (functools.partial(print), r"print\(\), parameter 'args': a client cannot pass `\*` arguments"),
    "a builtin without signature": (max, "max has no readable signature"),
    "a class without signature": (dict, "dict has no readable signature"),
    "a number": (5, "int has no readable signature"),
    "an unbound classmethod object": (classmethod(lambda _: 1), "has no readable signature"),
}
"""Functions that cannot be tools, with the error."""


@each("name", FUNCTIONS)
def test_a_function_that_cannot_be_called_with_json_is_rejected(name: str) -> None:
    function, why = FUNCTIONS[name]
    with pytest.raises(UsageError, match=f"^tool 'it': .*{why}"):
        Server().add_tool(function, name="it")


# Uses of a server


def add(a: int, b: int) -> int:
    return a + b


def shout(text: str) -> str:
    return text.upper()


def everything() -> str:
    return ""


def header(name: str) -> Meta:
    return Meta(extra_json_schema={"x-mcp-header": name})


@dataclass
class Places:
    regions: list[Annotated[str, header("Region")]]


def header_of_float(x: Annotated[float, header("Region")]) -> str:
    return str(x)


def header_in_list(x: list[Annotated[str, header("Region")]]) -> str:
    return str(x)


def header_in_record(x: Places) -> str:
    return str(x)


def header_twice(x: Annotated[str, header("Region")], y: Annotated[str, header("region")]) -> str:
    return x + y


def schema_with_header(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": name}}}


def imaginary(x: complex) -> complex:
    return x


def nothing_imaginary() -> complex:
    return 1j


def twice(use: Callable[[Server], Any]) -> Callable[[Server], Any]:
    def both(server: Server) -> None:
        use(server)
        use(server)

    return both


USES: dict[str, tuple[Callable[[Server], Any], str]] = {
    "a lambda without a name": (lambda s: s.add_tool(lambda: 1), "a lambda needs a name"),
    "two names": (lambda s: s.tool("a", name="b"), "two names are given: 'a' and 'b'"),
    "a number for a name": (lambda s: s.tool(cast(Any, 5)), "a function or a name, not 5"),
    "a tool of the same name": (twice(lambda s: s.add_tool(add)), "already has 'add' among its tools"),
    "a tool under the same name": (
        twice(lambda s: s.add_tool(shout, name="x")),
        "already has 'x' among its tools",
    ),
    "a prompt of the same name": (twice(lambda s: s.add_prompt(shout)), "already has 'shout' among its prompts"),
    "a resource of the same URI": (
        twice(lambda s: s.add_resource(everything, "data://all")),
        "already has 'data://all' among its resources",
    ),
    "a result without JSON": (
        lambda s: s.add_tool(nothing_imaginary, structured=True),
        "tool 'nothing_imaginary': return type: complex has no JSON form",
    ),
    "an invalid input schema": (lambda s: s.add_tool(add, input_schema={"type": 5}), "tool 'add': input_schema"),
    "an invalid output schema": (
        lambda s: s.add_tool(add, output_schema={"type": "no"}),
        "tool 'add': output_schema",
    ),
    "a prompt with *args": (
        lambda s: s.add_prompt(with_positional_rest),
        r"prompt 'with_positional_rest': with_positional_rest\(\), parameter 'args'",
    ),
    "a resource without a URI": (lambda s: s.resource(cast(Any, everything)), "a resource needs a URI"),
    "a resource without a scheme": (lambda s: s.add_resource(everything, "all"), "'all': a URI begins with a scheme"),
    "a resource with a space": (
        lambda s: s.add_resource(everything, "data://a b"),
        "'data://a b': a URI cannot have ' '; percent-encode it: %20",
    ),
    "a resource with a letter outside of ASCII": (
        lambda s: s.add_resource(everything, "data://é"),
        "a URI cannot have 'é'; percent-encode it: %C3%A9",
    ),
    "a resource with a bare percent sign": (
        lambda s: s.add_resource(everything, "data://100%"),
        "a URI cannot have '%'; percent-encode it: %25",
    ),
    "a template with a space": (
        lambda s: s.add_resource(shout, "data://a b/{text}"),
        "a URI cannot have ' '",
    ),
    "a resource with arguments": (
        lambda s: s.add_resource(shout, "data://all"),
        r"resource 'data://all': shout\(\), parameter 'text': the URI has no such variable",
    ),
    "a variable without a parameter": (
        lambda s: s.add_resource(everything, "data://{text}"),
        r"resource 'data://{text}': everything\(\): needs a parameter for the variable 'text'",
    ),
    "a parameter without a variable": (
        lambda s: s.add_resource(add, "data://{a}"),
        r"add\(\), parameter 'b': the URI has no such variable",
    ),
    "a variable that may be missing": (
        lambda s: s.add_resource(shout, "data://all{?text}"),
        r"shout\(\), parameter 'text': needs a default",
    ),
    "a template with one brace": (lambda s: s.add_resource(shout, "data://{text"), "unbalanced braces"),
    "a template with a variable twice": (
        lambda s: s.add_resource(shout, "data://{text}/{text}"),
        "a variable occurs twice",
    ),
    "a resource of a type without JSON": (
        lambda s: s.add_resource(imaginary, "data://{x}"),
        r"imaginary\(\), parameter 'x': complex has no JSON form",
    ),
    "a header of a float": (
        lambda s: s.add_tool(header_of_float),
        "tool 'header_of_float': x-mcp-header of x: only strings, integers and booleans",
    ),
    "a header within a list": (
        lambda s: s.add_tool(header_in_list),
        "tool 'header_in_list': x-mcp-header: no chain of properties leads to it",
    ),
    "a header within a record": (
        lambda s: s.add_tool(header_in_record),
        "tool 'header_in_record': x-mcp-header: no chain of properties leads to it",
    ),
    "a header twice": (lambda s: s.add_tool(header_twice), r"x-mcp-header of y: x has the same header \(region\)"),
    "a header in a given schema": (
        lambda s: s.add_tool(everything, input_schema=schema_with_header("bad name")),
        "tool 'everything': x-mcp-header of x: 'bad name' is not a valid header name",
    ),
    "a completion of an unknown function": (lambda s: s.completion(add, "a")(shout), "neither a prompt nor a resource"),
    "a server in itself": (lambda s: s.mount(s), "cannot be mounted in itself"),
    "a number for middleware": (lambda s: s.middleware(cast(Any, 5)), "middleware must be an async function .*, not 5"),
    "pages without items": (lambda _: Server(page=0), "page must be at least 1, not 0"),
    "lists from the past": (lambda _: Server(ttl=-1), "ttl must be at least 0 seconds, not -1"),
    "lists for ever": (lambda _: Server(ttl=float("inf")), "ttl must be at least 0 seconds, not inf"),
    "a ttl in words": (lambda _: Server(ttl=cast(Any, "9")), "ttl must be a number of seconds, not '9'"),
    "a page in words": (lambda _: Server(page=cast(Any, "9")), "page must be an integer, not '9'"),
    "a number for a version": (
        lambda _: Server("x", version=cast(Any, 1.0)),
        "server 'x': version must be a string, not 1.0",
    ),
}


@each("name", USES)
def test_a_server_rejects_registrations_that_it_cannot_serve(name: str) -> None:
    use, why = USES[name]
    with pytest.raises(UsageError, match=why):
        use(Server("mine"))


def test_bound_methods_and_functions_with_a_parameter_self_are_accepted() -> None:
    server = Server()

    @server.tool
    def function(self, x: int) -> None: ...  # type: ignore[no-untyped-def]

    server.add_tool(Methods().plain)
    server.add_tool(Methods.of_class)
    assert server.capabilities.tools is not None


def test_a_method_is_rejected_in_the_body_of_its_class() -> None:
    server = Server()
    with pytest.raises(UsageError, match=r"server\.add_tool\(object\.method\)"):

        class _Tools:  # pyright: ignore[reportUnusedClass]
            @server.tool
            def add(self, a: int) -> int:
                return a


def with_an_invalid_return_type(x: str) -> Any:
    return [UserMessage(x)]


with_an_invalid_return_type.__annotations__["return"] = "list[str | UserMessage]"  # `UserMessage` is a function


def test_the_return_annotation_of_a_prompt_or_a_resource_need_not_be_a_type() -> None:
    server = Server()
    server.add_prompt(with_an_invalid_return_type)
    server.add_resource(with_an_invalid_return_type, "data://{x}")
    with pytest.raises(UsageError, match=r"with_an_invalid_return_type\(\), return type: unsupported operand"):
        server.add_tool(with_an_invalid_return_type)


def test_a_rejected_tool_is_not_registered() -> None:
    server = Server()
    with pytest.raises(UsageError):
        server.add_tool(with_positional_rest)
    assert server.capabilities.tools is None


@each(
    "add, options, text",
    [
        ("tool", {"tag": {"a"}}, r"unknown option 'tag' of a tool; known: annotations, "),
        ("resource", {"mime": "text/plain"}, r"unknown option 'mime' of a resource; known: "),
        ("prompt", {"timeout": 1}, r"unknown option 'timeout' of a prompt; known: descr"),
    ],
)
def test_an_unknown_option_is_an_error_that_names_the_known_ones(add: str, options: dict[str, Any], text: str) -> None:
    called = ("a://b",) if add == "resource" else ()
    with pytest.raises(UsageError, match=text):
        getattr(Server(), add)(*called, **options)(lambda: None)


INVALID_OPTIONS: dict[str, tuple[Callable[[Server], Any], str]] = {
    "an unknown hint": (
        lambda s: s.add_tool(add, annotations={"readOnlyhint": True}),
        "tool 'add': annotations: unknown member 'readOnlyhint'; known: title, readOnlyHint, ",
    ),
    "an unknown annotation": (
        lambda s: s.resource("a://b", annotations={"prio": 1})(nothing),
        "resource 'a://b': annotations: unknown member 'prio'; known: ",
    ),
    "a hint of a wrong type": (
        lambda s: s.add_tool(add, annotations={"read_only_hint": "yes"}),
        "tool 'add': annotations: readOnlyHint: expected boolean",
    ),
    "an icon without an address": (lambda s: s.add_prompt(nothing, icons=[{}]), "prompt 'nothing': icons: "),
    "meta without a JSON form": (lambda s: s.add_tool(add, meta={"a": object()}), "tool 'add': meta: "),
    "errors that are not a tuple": (
        lambda s: s.add_tool(add, errors=LookupError),  # type: ignore[arg-type]
        "tool 'add': errors must be a tuple of exception classes, not <class 'LookupError'>",
    ),
    "errors that are strings": (lambda _: Server("s", errors=("a",)), "server 's': errors must be a tuple of"),  # type: ignore[arg-type]
    "a timeout that is a string": (lambda s: s.add_tool(add, timeout="a"), "tool 'add': timeout must be"),  # type: ignore[arg-type]
    "a description that is a number": (
        lambda s: s.add_tool(add, description=3),  # type: ignore[arg-type]
        "the option description of a tool must be a text, not 3",
    ),
    "a title that is a number": (
        lambda s: s.add_prompt(nothing, title=3),  # type: ignore[arg-type]
        "the option title of a prompt must be a text, not 3",
    ),
    "a size that is a string": (
        lambda s: s.resource("a://b", size="3")(nothing),  # type: ignore[arg-type]
        "the option size of a resource must be an integer, not '3'",
    ),
    "a text for a boolean": (
        lambda s: s.add_tool(add, thread="no"),  # type: ignore[arg-type]
        "the option thread of a tool must be True or False, not 'no'",
    ),
    "annotations that are a number": (lambda s: s.add_tool(add, annotations=3), "tool 'add': annotations: "),  # type: ignore[arg-type]
    "a return type without a JSON form": (
        lambda s: s.add_tool(opaque),
        "tool 'opaque': return type: Opaque has no JSON form; use a dataclass, TypedDict, Struct or model",
    ),
    "a list of such a type": (lambda s: s.add_tool(opaques), "tool 'opaques': return type: Opaque has no JSON form"),
    "a timeout of 0": (lambda s: s.add_tool(add, timeout=0), "tool 'add': timeout must be a positive number"),
    "a lifespan that is a number": (lambda _: Server(lifespan=3), "lifespan must be a function that returns an async"),  # type: ignore[arg-type]
    "a string to mount": (lambda s: s.mount("x", "x"), "only a Server can be mounted, not 'x'"),  # type: ignore[arg-type]
    "middleware without parameters": (lambda s: s.middleware(nothing), "middleware must be an async function of"),  # type: ignore[arg-type]
    "a schema that is no mapping": (lambda s: s.add_tool(add, input_schema=True), "input_schema: a schema is"),  # type: ignore[arg-type]
    "the schema of an array": (
        lambda s: s.add_tool(add, input_schema={"type": "array"}),
        "tool 'add': input_schema must be the schema of an object",
    ),
}


class Opaque:
    """A class without a JSON form."""


class Shape:
    """A class whose subclass has one."""


@dataclass
class Circle(Shape):
    radius: int = 1


def opaque() -> Opaque:
    return Opaque()


def opaques() -> list[Opaque | None]:
    return [Opaque()]


def shape() -> Shape:
    return Circle()


def test_a_return_type_whose_values_may_have_a_json_form_is_accepted() -> None:
    server = Server()
    server.add_tool(shape)
    server.add_tool(opaque, structured=False)

    async def main() -> str:
        async with typedmcp.connect(server) as client:
            return typedmcp.text_of(await client.call_tool("shape"))

    assert asyncio.run(main()) == '{"radius":1}'


def nothing() -> str:
    return ""


@each("name", INVALID_OPTIONS)
def test_an_invalid_option_is_an_error_at_once_that_names_it(name: str) -> None:
    make, text = INVALID_OPTIONS[name]
    with pytest.raises(UsageError) as caught:
        make(Server())
    assert text in str(caught.value)


def test_annotations_may_have_their_python_or_their_json_names() -> None:
    server = Server()
    server.add_tool(add, annotations={"read_only_hint": True, "openWorldHint": False, "title": "Add"})

    async def main() -> Any:
        async with typedmcp.connect(server) as client:
            return (await client.list_tools()).tools[0].annotations

    assert to_builtins(asyncio.run(main())) == {"title": "Add", "readOnlyHint": True, "openWorldHint": False}


def test_legal_headers_are_accepted() -> None:
    server = Server()

    @server.tool
    def query(region: Annotated[str, header("Region")], pages: Annotated[int, header("Pages")] = 1) -> str:
        return region * pages

    server.add_tool(everything, input_schema=schema_with_header("Region"))
    assert server.capabilities.tools is not None


@each("name", ["with space", "a,b", "grün", "x" * 129, "a/b"])
def test_a_name_that_clients_may_reject_is_a_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=r"tool '.*': some clients reject a name that is not 1 to 128"):
        Server().add_tool(add, name=name)


@each("name", ["a", "A-Z_a.z-9", "x" * 128])
def test_other_names_are_no_warning(name: str) -> None:
    Server().add_tool(add, name=name)


DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": True,
    "https://json-schema.org/draft/2019-09/schema": True,
    "http://json-schema.org/draft-07/schema#": True,
    "http://json-schema.org/draft-06/schema#": True,
    "http://json-schema.org/draft-04/schema#": True,
    "http://json-schema.org/draft-03/schema#": False,
    "https://example.com/schema": False,
}


@each("page", ["servers.md", "clients.md"])
def test_the_documentation_names_every_dialect(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (said,) = re.findall(r"JSON Schema (2020-12), unless its `\$schema` says ([^.]+)\.", text)
    named = re.findall(r"2020-12|2019-09|draft-\d\d", " ".join(said))
    known = [dialect for dialect, is_known in DIALECTS.items() if is_known]
    assert [name for name, dialect in zip(named, known, strict=True) if name not in dialect] == []


@each("option", ["input_schema", "output_schema"])
@each("dialect", DIALECTS)
def test_a_given_schema_is_of_one_of_the_documented_dialects(dialect: str, option: str) -> None:
    options: Any = {option: {"$schema": dialect, "type": "object"}}
    if DIALECTS[dialect]:
        Server().add_tool(everything, **options)
        return
    with pytest.raises(UsageError, match=rf"tool 'everything': {option}: \$schema: .* is not a supported dialect"):
        Server().add_tool(everything, **options)
