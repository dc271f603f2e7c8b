"""What cannot be a tool, a resource or a prompt, and what is said of it."""

from __future__ import annotations

import asyncio
import collections
import enum
import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Never, TypedDict, TypeVar, Unpack, cast

import annotated_types as at
import pytest
from msgspec import UNSET, to_builtins
from pydantic import BaseModel, Field

import typedmcp
from tests.server.shapes import Address, Colour, Point, User
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
class Lost:
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
    "nothing at all": (Never, "Never has no JSON form"),
    "a defaultdict": (collections.defaultdict[str, int], "defaultdict.* has no JSON form"),
    "a list of its own": (Names, "Names is a class of its own: nothing says how to make one of JSON"),
    "an enum of objects": (Odd, "Odd: object has no JSON form"),
    "a model of a function": (Model, "Cannot generate a JsonSchema"),
    "a value": (5, "5 has no JSON form"),
    "a set of lists": (set[list[int]], r"set\[list\[int\]\]: a set has no place for list\[int\]"),
    "a set of dataclasses": (frozenset[Point], "a set has no place for Point"),
    "a set of Structs": (set[User], "a set has no place for User"),
    "a set of models": (set[Address], "a set has no place for Address"),
    "a set of tuples of lists": (set[tuple[int, list[int]]], r"a set has no place for tuple\[int, list\[int\]\]"),
    "flags with gaps": (Sparse, "Sparse has no JSON form: its flags are not 1, 2, 4 and so on"),
    "keys that are booleans": (dict[bool, str], r"dict\[bool, str\]: bool cannot be a key of a JSON object"),
    "keys that are nothing": (dict[None, str], "None cannot be a key of a JSON object"),
    "keys that are no texts": (dict[tuple[int, int], int], "cannot be a key of a JSON object"),
    "a name that there is not": ("Missing", "name 'Missing' is not defined"),
    "a name within that there is not": ("list[Missing]", "name 'Missing' is not defined"),
    "a dataclass with such a name": (Lost, "Lost: name 'Missing' is not defined"),
    "no expression": ("int[", "must be an expression"),
    "a bound of a bool": (Annotated[bool, at.Ge(1)], "ge does not apply to bool"),
    "a bound of a text": (Annotated[str, Field(ge=1)], "ge does not apply to str"),
    "a length of a number": (Annotated[int, Field(max_length=1)], "max_length does not apply to int"),
    "a pattern of a number": (Annotated[int | None, Field(pattern="a")], r"pattern does not apply to int \| None"),
    "a length of an enum": (Annotated[Colour, Field(min_length=1)], "min_length does not apply to Colour"),
    "a length of anything": (Annotated[Any, Field(min_length=1)], "min_length does not apply to Any"),
    "a pattern that is none": (Annotated[str, Field(pattern="(")], "unterminated subpattern"),
    "a bound that is no number": (Annotated[int, at.Ge("a")], "`ge` must be an int or float"),
    "a list of contexts": (list[Context], "Context: "),
}
"""Types that no parameter can have, and why."""


@pytest.mark.parametrize("name", TYPES)
def test_a_parameter_of_a_type_without_json_is_refused(name: str) -> None:
    def function(fine: int, x: Any) -> None: ...

    hint, why = TYPES[name]
    function.__annotations__["x"] = hint
    with pytest.raises(UsageError, match=rf"^tool 'it': function\(\), parameter 'x': .*{why}"):
        Server().add_tool(function, name="it")


# Functions


def of_any_number(*args: int) -> None: ...


def of_words(**words: Unpack[Words]) -> None: ...


def of_contexts(**contexts: Context) -> None: ...


def with_two_contexts(x: int, ctx: Context, again: Context) -> None: ...


def with_a_name_twice(x: Annotated[int, Field(alias="y")], y: int) -> None: ...


def with_an_alias_twice(x: int, y: Annotated[int, Field(alias="x")]) -> None: ...


def with_a_dependent_default(x: Annotated[int, Field(default_factory=lambda data: data["y"])]) -> None: ...


def returning_what_there_is_not(x: int) -> Missing: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]


class Methods:
    def plain(self, x: int) -> None: ...

    @classmethod
    def of_class(cls, x: int) -> None: ...

    async def slow(self) -> None: ...


class Caller:
    def __call__(self, *args: Any) -> None: ...


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "*args": (of_any_number, r"of_any_number\(\), parameter 'args': arguments have names"),
    "**kwargs with names": (of_words, r"of_words\(\), parameter 'words': .* has no JSON form"),
    "**kwargs of contexts": (of_contexts, r"of_contexts\(\), parameter 'contexts': Context: "),
    "two contexts": (with_two_contexts, r"with_two_contexts\(\), parameter 'again': 'ctx' is for the context already"),
    "two of a name": (with_a_name_twice, r"with_a_name_twice\(\), parameter 'y': another is called 'y' as well"),
    "two of an alias": (with_an_alias_twice, r"with_an_alias_twice\(\), parameter 'y': another is called 'x' as well"),
    "a default of others": (with_a_dependent_default, r"with_a_dependent_default\(\), parameter 'x': its default: "),
    "an unknown result": (returning_what_there_is_not, r"\(\), what it returns: name 'Missing' is not defined"),
    "a method without its object": (Methods.plain, r"plain\(\), parameter 'self': a method is added with its object"),
    "an async method without": (Methods.slow, r"slow\(\), parameter 'self': a method is added with its object"),
    "a class method without": (
        cast(Any, Methods.of_class).__func__,
        r"of_class\(\), parameter 'cls': a method is added with",
    ),
    "an object": (Caller(), r"Caller\(\), parameter 'args': arguments have names"),
    "a partial": (functools.partial(print), r"print\(\), parameter 'args': arguments have names"),
    "a builtin without signature": (math.hypot, "hypot says nothing of its parameters"),
    "a class without signature": (dict, "dict says nothing of its parameters"),
    "no function": (5, "int says nothing of its parameters"),
    "a class method that is bound to none": (classmethod(lambda _: 1), "says nothing of its parameters"),
}
"""What is no tool, and why."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_cannot_be_called_with_json_is_refused(name: str) -> None:
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
    "two names": (lambda s: s.tool("a", name="b"), "two names: 'a' and 'b'"),
    "a name that is none": (lambda s: s.tool(cast(Any, 5)), "a function or a name, not 5"),
    "a tool of the same name": (twice(lambda s: s.add_tool(add)), "'add' among its tools already"),
    "a tool under the same name": (
        twice(lambda s: s.add_tool(shout, name="x")),
        "'x' among its tools already",
    ),
    "a prompt of the same name": (twice(lambda s: s.add_prompt(shout)), "'shout' among its prompts already"),
    "a resource of the same URI": (
        twice(lambda s: s.add_resource(everything, "data://all")),
        "'data://all' among its resources already",
    ),
    "a result without JSON": (
        lambda s: s.add_tool(nothing_imaginary, structured=True),
        "tool 'nothing_imaginary': what it returns: complex has no JSON form",
    ),
    "an input schema that is none": (lambda s: s.add_tool(add, input_schema={"type": 5}), "tool 'add': input_schema"),
    "an output schema that is none": (
        lambda s: s.add_tool(add, output_schema={"type": "no"}),
        "tool 'add': output_schema",
    ),
    "a prompt with *args": (
        lambda s: s.add_prompt(of_any_number),
        r"prompt 'of_any_number': of_any_number\(\), parameter 'args'",
    ),
    "a resource without a URI": (lambda s: s.resource(cast(Any, everything)), "a resource needs a URI"),
    "a resource without a scheme": (lambda s: s.add_resource(everything, "all"), "'all': a URI begins with a scheme"),
    "a resource with arguments": (
        lambda s: s.add_resource(shout, "data://all"),
        r"resource 'data://all': shout\(\), parameter 'text': the URI has no such variable",
    ),
    "a variable without a parameter": (
        lambda s: s.add_resource(everything, "data://{text}"),
        r"resource 'data://{text}': everything\(\): takes no 'text'",
    ),
    "a parameter without a variable": (
        lambda s: s.add_resource(add, "data://{a}"),
        r"add\(\), parameter 'b': the URI has no such variable",
    ),
    "a variable that may be missing": (
        lambda s: s.add_resource(shout, "data://all{?text}"),
        r"shout\(\), parameter 'text': needs a default",
    ),
    "a template that is none": (lambda s: s.add_resource(shout, "data://{text"), "braces do not match"),
    "a template with a name twice": (lambda s: s.add_resource(shout, "data://{text}/{text}"), "a name is there twice"),
    "a resource of a type without JSON": (
        lambda s: s.add_resource(imaginary, "data://{x}"),
        r"imaginary\(\), parameter 'x': complex has no JSON form",
    ),
    "a completion of nothing": (lambda s: s.completion(add, "a")(shout), "neither a prompt nor a resource"),
    "a server in itself": (lambda s: s.mount(s), "cannot be mounted in itself"),
    "a middleware that is none": (lambda s: s.middleware(cast(Any, 5)), "5 is no middleware"),
    "pages of nothing": (lambda _: Server(page=0), "page must be positive, not 0"),
}


@pytest.mark.parametrize("name", USES)
def test_a_server_refuses_what_it_cannot_serve(name: str) -> None:
    use, why = USES[name]
    with pytest.raises(UsageError, match=why):
        use(Server("mine"))


def test_methods_of_objects_and_functions_that_call_something_self_are_fine() -> None:
    server = Server()

    @server.tool
    def told(self, x: int) -> None: ...  # type: ignore[no-untyped-def]

    server.add_tool(Methods().plain)
    server.add_tool(Methods.of_class)
    assert server.capabilities.tools is not UNSET


def test_a_method_is_refused_where_its_class_is_made() -> None:
    server = Server()
    with pytest.raises(UsageError, match=r"server\.add_tool\(object\.method\)"):

        class _Tools:  # pyright: ignore[reportUnusedClass]
            @server.tool
            def add(self, a: int) -> int:
                return a


def saying_what_is_no_type(x: str) -> Any:
    return [UserMessage(x)]


saying_what_is_no_type.__annotations__["return"] = "list[str | UserMessage]"  # which is a function


def test_what_a_prompt_or_a_resource_says_that_it_returns_need_not_be_a_type() -> None:
    server = Server()
    server.add_prompt(saying_what_is_no_type)
    server.add_resource(saying_what_is_no_type, "data://{x}")
    with pytest.raises(UsageError, match=r"saying_what_is_no_type\(\), what it returns: unsupported operand"):
        server.add_tool(saying_what_is_no_type)


def test_what_was_refused_is_not_there() -> None:
    server = Server()
    with pytest.raises(UsageError):
        server.add_tool(of_any_number)
    assert server.capabilities.tools is UNSET


@pytest.mark.parametrize(
    ("add", "options", "text"),
    [
        ("tool", {"tags": {"a"}}, r"a tool has no option 'tags'; there are annotations, "),
        ("resource", {"mime": "text/plain"}, r"a resource has no option 'mime'; there are "),
        ("prompt", {"timeout": 1}, r"a prompt has no option 'timeout'; there are descr"),
    ],
)
def test_an_option_that_there_is_not_is_named(add: str, options: dict[str, Any], text: str) -> None:
    called = ("a://b",) if add == "resource" else ()
    with pytest.raises(UsageError, match=text):
        getattr(Server(), add)(*called, **options)(lambda: None)


WRONG: dict[str, tuple[Callable[[Server], Any], str]] = {
    "a hint that there is not": (
        lambda s: s.add_tool(add, annotations={"readOnlyhint": True}),
        "tool 'add': annotations: there is no 'readOnlyhint'; there are destructiveHint, ",
    ),
    "an annotation that there is not": (
        lambda s: s.resource("a://b", annotations={"prio": 1})(nothing),
        "resource 'a://b': annotations: there is no 'prio'; there are ",
    ),
    "a hint of a wrong type": (
        lambda s: s.add_tool(add, annotations={"read_only_hint": "yes"}),
        "tool 'add': annotations: readOnlyHint: expected boolean",
    ),
    "icons that are none": (lambda s: s.add_prompt(nothing, icons=[{}]), "prompt 'nothing': icons: "),
    "meta that is no JSON": (lambda s: s.add_tool(add, meta={"a": object()}), "tool 'add': meta: "),
    "errors that are no tuple": (
        lambda s: s.add_tool(add, errors=LookupError),  # type: ignore[arg-type]
        "tool 'add': errors is a tuple of classes of exceptions, not <class 'LookupError'>",
    ),
    "errors that are texts": (lambda _: Server("s", errors=("a",)), "server 's': errors is a tuple of"),  # type: ignore[arg-type]
    "a timeout that is a text": (lambda s: s.add_tool(add, timeout="a"), "tool 'add': timeout is a positive number"),  # type: ignore[arg-type]
    "a timeout of nothing": (lambda s: s.add_tool(add, timeout=0), "tool 'add': timeout is a positive number"),
    "a lifespan that is none": (lambda _: Server(lifespan=3), "a lifespan is a function that gives an async"),  # type: ignore[arg-type]
    "a server that is none": (lambda s: s.mount("x", "x"), "'x' cannot be mounted: it is no Server"),  # type: ignore[arg-type]
    "middleware that takes nothing": (lambda s: s.middleware(nothing), "is no middleware: an async function of"),  # type: ignore[arg-type]
    "a schema that is none": (lambda s: s.add_tool(add, input_schema=True), "tool 'add': input_schema: a schema is"),  # type: ignore[arg-type]
    "a schema of an array": (
        lambda s: s.add_tool(add, input_schema={"type": "array"}),
        "tool 'add': input_schema: it is the schema of an object",
    ),
}


def nothing() -> str:
    return ""


@pytest.mark.parametrize("name", WRONG)
def test_what_is_said_wrongly_is_refused_at_once_and_named(name: str) -> None:
    make, text = WRONG[name]
    with pytest.raises(UsageError) as caught:
        make(Server())
    assert text in str(caught.value)


def test_hints_are_taken_as_python_and_as_the_wire_calls_them() -> None:
    server = Server()
    server.add_tool(add, annotations={"read_only_hint": True, "openWorldHint": False, "title": "Add"})

    async def main() -> Any:
        async with typedmcp.connect(server) as client:
            return (await client.list_tools()).tools[0].annotations

    assert to_builtins(asyncio.run(main())) == {"title": "Add", "readOnlyHint": True, "openWorldHint": False}
