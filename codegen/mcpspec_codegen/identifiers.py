"""Give every definition a name that a class can have.

`foo-bar`, `tool` and `Record<string,string>` become `FooBar`, `Tool` and `RecordStringString`; `2fast` becomes
`Type2fast`, since no name of Python begins with a digit; and names that the modules need for themselves get a suffix:
`Any` becomes `AnyDefinition`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

from mcpspec_codegen import names
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema, is_schema, map_children, pointer_text, ref_name

__all__ = ["check_names", "decode_name", "name_class", "name_definitions", "rename_definitions"]

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_RESERVED = frozenset(
    {
        "Any", "Checked", "ClassVar", "ClosedModel", "ConstantStruct", "DecodeError", "Field", "Literal", "MISSING",
        "Meta", "Model", "NULL", "NoneType", "Nullable", "OpenObject", "Optional", "Struct", "TYPE_CHECKING",
        "TypeAlias", "TypeAliasType", "TypingAnnotated", "UNSET", "Union", "UnsetType",
    }
)  # fmt: skip
"""Names that the generated modules import. `Annotated` is imported, too, but may be a definition."""


_BUILTINS = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup",
        "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError",
        "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError",
        "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning", "EnvironmentError", "Exception",
        "ExceptionGroup", "FileExistsError", "FileNotFoundError", "FloatingPointError", "FutureWarning",
        "GeneratorExit", "IOError", "ImportError", "ImportWarning", "IndentationError", "IndexError",
        "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt", "LookupError", "MemoryError",
        "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplemented", "NotImplementedError",
        "OSError", "OverflowError", "PendingDeprecationWarning", "PermissionError", "ProcessLookupError",
        "RecursionError", "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning",
        "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError", "SystemExit",
        "TabError", "TimeoutError", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
        "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError", "UnicodeWarning", "UserWarning",
        "ValueError", "Warning", "ZeroDivisionError",
    }
)  # fmt: skip
"""Types that Python itself has. A model that refers to a later definition of such a name would find that of Python."""


def name_definitions(defs: Collection[str], file: str, key: str, taken: Collection[str] = ()) -> dict[str, str]:
    """Return the name of the class for each definition. `taken` are names that only definitions spelled so may have.

    Raises `SchemaError` for two definitions of one name, and for a name without a letter or digit of ASCII.
    """
    named: dict[str, str] = {}
    for name in sorted(defs, key=lambda name: name_class(name) != name):  # the others have to give way
        made = name_class(name)
        at = pointer_text((key, name))
        if not _NAME.fullmatch(made):
            raise SchemaError(file, at, "no class can have this name; expected letters of ASCII, such as `ToolResult`")
        if made != name and made in taken:
            raise SchemaError(file, at, f"would be named `{made}`, as a type of the protocol is; choose another name")
        if (other := next((other for other, found in named.items() if found == made), None)) is not None:
            raise SchemaError(file, at, f"`{other}` and `{name}` would both be named `{made}`; rename one of them")
        named[name] = made
    return named


def name_class(name: str) -> str:
    """Return the name of the class for a definition, or a name that no class can have if there is none."""
    if _NAME.fullmatch(name):
        return name + "Definition" if name in _RESERVED | _BUILTINS or keyword.iskeyword(name) else name
    made = names.to_pascal(name)
    return name_class("Type" + made if made[:1].isdigit() else made) if _NAME.fullmatch("T" + made) and made else made


def rename_definitions(defs: Mapping[str, Schema], named: Mapping[str, str]) -> dict[str, Schema]:
    """Return definitions under other names, with the references to them."""
    if all(name == made for name, made in named.items()):
        return {name: _decode_references(node, {}) for name, node in defs.items()}
    return {named[name]: _decode_references(node, named) for name, node in defs.items()}


def _decode_references(node: Any, named: Mapping[str, str]) -> Any:
    if not is_schema(node):
        return node
    node = map_children(node, lambda child: _decode_references(child, named), with_checks=True)
    if "$ref" not in node:
        return node
    name = decode_name(ref_name(node["$ref"]))
    return {**node, "$ref": f"#/$defs/{named.get(name, name)}"}


def decode_name(part: str) -> str:
    """Return the name in the last part of a reference, in which some characters are escaped."""
    return unquote(part).replace("~1", "/").replace("~0", "~")


def check_names(defs: Collection[str], file: str) -> None:
    """Raise `SchemaError` for the name of an inline type that no class can have."""
    for name in defs:
        if name_class(name) != name:
            reason = f"the inline type would be named `{name}`, which no class can be; give it a definition of its own"
            raise SchemaError(file, pointer_text(("$defs", name)), reason)
