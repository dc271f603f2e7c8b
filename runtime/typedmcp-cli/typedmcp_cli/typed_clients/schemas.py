"""Python types for the JSON Schemas of a server. datamodel-code-generator writes their hints.

The schemas are those of a stranger, and the result is code. So datamodel-code-generator gets no text of the server:
names and strings are replaced by tokens before, references are resolved here, and of its output only expressions of
known names are taken.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from typedmcp.building import is_array, is_object
from typedmcp.errors import UsageError, missing_extra
from typedmcp_cli.typed_clients.names import Names, to_class_name, to_identifier

__all__ = ["SchemaTypes", "TypedClass", "TypedMember"]

_MAX_DEPTH: Final = 24
_MAX_LITERALS: Final = 200
"""Values of an `enum` that become a `Literal`. Type checkers are slow with longer ones."""
_MAX_OPTIONS: Final = 50
_MAX_PARTS: Final = 100_000
"""Parts of all schemas of a server that are looked at. References can repeat a part any number of times."""
_MAX_MEMBER: Final = 20_000
"""Characters of the schema of a member, without the objects in it. Hints of longer ones would be of no use."""
_UNFIT: Final = re.compile(r'[\\"\x00-\x1f\ud800-\udfff]')
"""Characters that msgspec does not take in names of members."""
_NOT_MEMBERS: Final = ("arguments", "self")
"""Names that the methods of a client use themselves."""
_TITLE: Final = re.compile(r"[A-Z][A-Za-z0-9_]{0,79}")
"""A title that names a type. Others are words for people."""
_NAME: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+""")
"""A name, or a string, in a hint."""
_WRAPPED: Final = re.compile(r"(str|int|float|bool|(list|dict)\[.+\])")
"""A hint of a value, which is a class for type checkers: no union, and no `Literal`."""
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_KNOWN_NAMES: Final = frozenset({"str", "int", "float", "bool", "Any", "list", "dict", "Literal", "None"})


@dataclass
class TypedMember:
    """A member of a class."""

    name: str
    json_name: str
    schema: str
    """The schema as given to datamodel-code-generator, as text."""
    is_required: bool
    description: str = ""
    hint: str = "Any"


@dataclass
class TypedClass:
    """A class for the objects of a schema."""

    name: str
    """The name to have, to which `SchemaTypes.finish` adds a number if another class has it."""
    purpose: str
    token: str
    """The name that datamodel-code-generator gets."""
    title: str = ""
    """The title of the schema, if it names a class. Classes with equal titles and members become one."""
    members: list[TypedMember] = field(default_factory=list[TypedMember])


class SchemaTypes:
    """The classes for all schemas of a server."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.classes: dict[str, TypedClass] = {}
        """The classes by token, in the order of the schemas."""
        self.problems: list[str] = []
        """The parts that have no type, with the reason."""
        self._parts = 0
        self._replaced: dict[str, str] = {}
        """The hints in place of classes that gave way to others, by token."""
        self._tokens: dict[str, str] = {}
        """The tokens in place of strings, by string."""

    def add_object(
        self, schema: Mapping[str, Any], name: str, purpose: str, *, is_titled: bool = False
    ) -> TypedClass | None:
        """Add the class for a schema of objects, which is named by its title if it `is_titled`.

        Return None if it has no known members.
        """
        walk = _SchemaWalk(self, schema, purpose)
        found = walk.resolve(schema, 0)
        merged = walk.merge(found, 0)
        title = _title_of(merged) if is_titled else ""
        reference: Any = schema.get("$ref", "#")
        return walk.add_class(merged, name, 0, str(reference), title) if walk.has_class(merged) else None

    def finish(self, wrappers: Iterable[TypedClass]) -> None:
        """Give members their hints, and classes their names. Classes of `wrappers` give way to what they wrap.

        Raises `UsageError` if datamodel-code-generator is not installed.
        """
        self._write_hints()
        while merged := dict(self._find_equal()):
            self._replace(merged)
        self._replace(dict(self._find_wrapped({made.token for made in wrappers})))
        names = {made.token: self._names.add(made.title or made.name) for made in self.classes.values()}
        for made in self.classes.values():
            made.name = names[made.token]
        self._rename(names)
        self._replaced = {token: _renamed(hint, names) for token, hint in self._replaced.items()}

    def hint_of(self, made: TypedClass) -> str:
        """Return the type of the values of a class that was added: its name, or what it gave way to."""
        return self._replaced.get(made.token, made.name)

    def _find_equal(self) -> Iterator[tuple[str, str]]:
        """Yield each class whose title and members are those of an earlier one, and that one."""
        known: dict[Any, str] = {}
        for made in self.classes.values():
            own = {made.token: "Self"}
            members = [(each.name, each.json_name, each.is_required, _renamed(each.hint, own)) for each in made.members]
            if made.title and (first := known.setdefault((made.title, *members), made.token)) != made.token:
                yield made.token, first

    def _find_wrapped(self, wrappers: set[str]) -> Iterator[tuple[str, str]]:
        """Yield each of these classes that has a member `result` alone, and the type of its values."""
        for made in self.classes.values():
            (member, *others) = made.members
            is_wrapper = made.token in wrappers and not others and member.json_name == "result" and member.is_required
            is_class = member.hint in self.classes or _WRAPPED.fullmatch(member.hint)
            if is_wrapper and is_class and made.token not in _NAME.findall(member.hint):
                yield made.token, member.hint

    def _replace(self, hints: Mapping[str, str]) -> None:
        for token in hints:
            del self.classes[token]
        self._replaced = {token: _renamed(hint, hints) for token, hint in self._replaced.items()} | dict(hints)
        self._rename(hints)

    def _rename(self, names: Mapping[str, str]) -> None:
        for member in (member for each in self.classes.values() for member in each.members):
            member.hint = _renamed(member.hint, names)

    def new_class(self, wanted: str, purpose: str, title: str) -> TypedClass:
        """Add a class without members."""
        made = TypedClass(wanted, purpose, f"C{len(self.classes)}", title)
        self.classes[made.token] = made
        return made

    def may_look(self, parts: int = 1) -> bool:
        """Count parts of a schema. Return False beyond the limit."""
        was_allowed = self._parts < _MAX_PARTS
        self._parts += parts
        is_allowed = self._parts < _MAX_PARTS
        if was_allowed and not is_allowed:
            self.problems.append(f"schemas of more than {_MAX_PARTS} parts: the others are any value")
        return is_allowed

    def token_of(self, text: str) -> str:
        """Return the token in place of a string."""
        return self._tokens.setdefault(text, f"v{len(self._tokens)}")

    def _write_hints(self) -> None:
        members = [member for each in self.classes.values() for member in each.members]
        strings = {token: text for text, token in self._tokens.items()}
        schemas = [*dict.fromkeys(member.schema for member in members)]
        hints = _generate(schemas, [*self.classes], strings)
        for each in self.classes.values():
            for member in each.members:
                hint = hints[member.schema]
                if hint is None:
                    self.problems.append(f"{each.purpose}: {member.json_name}: its schema cannot be typed")
                member.hint = hint or "Any"


class _SchemaWalk:
    """Turns one schema into classes, and its parts into schemas without any text of the server."""

    def __init__(self, types: SchemaTypes, root: Mapping[str, Any], purpose: str) -> None:
        self._types = types
        self._root = root
        self._purpose = purpose
        self._by_reference: dict[str, TypedClass] = {}
        """The classes of referenced objects, by reference: they may refer to themselves."""

    def has_class(self, schema: Mapping[str, Any]) -> bool:
        """Return whether a schema is one of objects with known members, which a class can have."""
        properties: Any = schema.get("properties")
        if not is_object(properties) or not properties:
            return False
        if odd := [name for name in properties if _UNFIT.search(name)]:
            text = f"{self._purpose}: a member is called {odd[0][:40]!a}, which no Struct can have: any value"
            self._types.problems.append(text)
        return not odd

    def add_class(self, schema: Mapping[str, Any], wanted: str, depth: int, reference: str, title: str) -> TypedClass:
        """Add the class of an object with its members."""
        made = self._types.new_class(wanted, self._purpose, title)
        if reference:
            self._by_reference[reference] = made
        properties: Any = schema["properties"]
        required: Any = schema.get("required")
        needed = {name for name in required if isinstance(name, str)} if is_array(required) else set[str]()
        names = Names(_NOT_MEMBERS)
        for json_name, part in properties.items():
            name = names.add(to_identifier(json_name))
            plain = self._plain(part, f"{wanted}{to_class_name(json_name)}", depth + 1)
            described = part.get("description") if is_object(part) else None
            text = json.dumps(plain, sort_keys=True)
            if len(text) > _MAX_MEMBER:
                self._types.problems.append(f"{self._purpose}: {json_name}: too many alternatives: any value")
                text = "{}"
            member = TypedMember(name, json_name, text, json_name in needed)
            member.description = described if isinstance(described, str) else ""
            made.members.append(member)
        return made

    def _plain(self, schema: Any, wanted: str, depth: int) -> Any:
        """Return what datamodel-code-generator gets for a schema: its shape, without any text."""
        if depth > _MAX_DEPTH:
            self._types.problems.append(f"{self._purpose}: deeper than {_MAX_DEPTH} levels: any value")
            return {}
        if not is_object(schema) or not self._types.may_look():
            return {}
        reference: Any = schema.get("$ref")
        if isinstance(reference, str) and (known := self._by_reference.get(reference)) is not None:
            return {"$ref": f"#/$defs/{known.token}"}
        found = self.merge(self.resolve(schema, depth), depth)
        if self.has_class(found):
            key = reference if isinstance(reference, str) else ""
            return {"$ref": f"#/$defs/{self.add_class(found, wanted, depth, key, _title_of(found)).token}"}
        for word in ("anyOf", "oneOf"):
            options: Any = found.get(word)
            if is_array(options) and options:
                if len(options) > _MAX_OPTIONS:
                    return {}
                names = (f"{wanted}Option{number}" for number in range(1, len(options) + 1))
                return {"anyOf": [self._plain(*each, depth + 1) for each in zip(options, names, strict=True)]}
        values: Any = [found["const"]] if "const" in found else found.get("enum")
        if is_array(values) and (literals := self._literals(values)) is not None:
            return literals
        return self._plain_type(found, wanted, depth)

    def _literals(self, values: Sequence[Any]) -> dict[str, Any] | None:
        """Return the schema of an `enum`, or None if its values make no `Literal`."""
        if not values or len(values) > _MAX_LITERALS:
            return None
        if all(isinstance(value, bool) for value in values):
            return {"type": "boolean"}
        is_plain = all(
            value is None or (isinstance(value, str | int) and not isinstance(value, bool)) for value in values
        )
        if not is_plain:
            return None
        texts = [self._types.token_of(value) for value in values if isinstance(value, str)]
        numbers = [value for value in values if isinstance(value, int)]
        options: list[Any] = [{"enum": each} for each in (texts, numbers) if each]
        if None in values:
            options.append({"type": "null"})
        return options[0] if len(options) == 1 else {"anyOf": options}

    def _plain_type(self, schema: Mapping[str, Any], wanted: str, depth: int) -> dict[str, Any]:
        found: Any = schema.get("type")
        kinds = [kind for kind in (found if is_array(found) else [found]) if isinstance(kind, str) and kind in _TYPES]
        if not kinds:
            kinds = ["array"] if "items" in schema else []
        if len(kinds) > 1:
            return {"anyOf": [self._plain_type({**schema, "type": kind}, wanted, depth) for kind in kinds]}
        made: dict[str, Any] = {"type": kinds[0]} if kinds else {}
        if kinds == ["array"]:
            made["items"] = self._plain(schema.get("items", {}), f"{wanted}Item", depth + 1)
        if kinds == ["object"]:
            more: Any = schema.get("additionalProperties")
            made["additionalProperties"] = self._plain(more, f"{wanted}Value", depth + 1) if is_object(more) else True
        return made

    def resolve(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return a schema with its `$ref` replaced by the definition in the same document; any value for others."""
        seen: set[str] = set()
        made = dict(schema)
        while isinstance(reference := made.pop("$ref", None), str):
            target = self._find(reference)
            if target is None or reference in seen or depth > _MAX_DEPTH:
                self._types.problems.append(f"{self._purpose}: $ref to another document, or to itself: any value")
                return {}
            if not self._types.may_look():
                return {}
            seen.add(reference)
            made = {**target, **made}
        return made

    def _find(self, reference: str) -> Mapping[str, Any] | None:
        """Return the part of the document that a reference points to."""
        if not reference.startswith("#"):
            return None
        place: Any = self._root
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if is_object(place) else None
        return place if is_object(place) else None

    def merge(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return a schema without `allOf`: the members of all parts."""
        parts: Any = schema.pop("allOf", None)
        if not is_array(parts) or depth > _MAX_DEPTH:
            return schema
        made: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        required: dict[str, None] = {}
        for found in self._merged_parts(schema, parts, depth + 1):
            for key, value in found.items():
                made.setdefault(key, value)
            known, needed = found.get("properties"), found.get("required")
            if is_object(known):
                properties.update(known)
            if is_array(needed):
                required.update(dict.fromkeys(name for name in needed if isinstance(name, str)))
        return {**made, "properties": properties, "required": [*required]}

    def _merged_parts(self, schema: dict[str, Any], parts: list[Any], depth: int) -> Iterator[dict[str, Any]]:
        """Yield a schema, and the parts of its `allOf`, whose members count: they may be repeated."""
        yield schema
        for part in filter(is_object, parts):
            if self._types.may_look():
                found = self.merge(self.resolve(part, depth), depth)
                members = [found.get("properties"), found.get("required")]
                self._types.may_look(
                    len(found) + sum(len(each) for each in members if is_object(each) or is_array(each))
                )
                yield found


def _title_of(schema: Mapping[str, Any]) -> str:
    """Return the title of a schema if it can name a class, else an empty text."""
    title: Any = schema.get("title")
    return to_class_name(title) if isinstance(title, str) and _TITLE.fullmatch(title) else ""


def _renamed(hint: str, names: Mapping[str, str]) -> str:
    """Return a hint with other names of classes."""
    return _NAME.sub(lambda found: names.get(found[0], found[0]), hint)


# What datamodel-code-generator writes


def _generate(schemas: Sequence[str], classes: Sequence[str], strings: Mapping[str, str]) -> dict[str, str | None]:
    """Return the hint of each schema; None for one that cannot be typed. `classes` are their tokens."""
    if not schemas:
        return {}
    try:
        text = _run_generator(schemas, classes)
        return dict(zip(schemas, _read_hints(text, len(schemas), {*classes}, strings), strict=True))
    except UsageError:
        raise
    except Exception:  # it raises exceptions of many kinds for schemas that it does not understand
        if len(schemas) == 1:
            return {schemas[0]: None}
        middle = len(schemas) // 2
        return {**_generate(schemas[:middle], classes, strings), **_generate(schemas[middle:], classes, strings)}


def _run_generator(schemas: Sequence[str], classes: Sequence[str]) -> str:
    try:
        from datamodel_code_generator import InputFileType, LiteralType, PythonVersion, generate
        from datamodel_code_generator.config import GenerateConfig
        from datamodel_code_generator.enums import DataModelType
    except ImportError as error:
        raise UsageError(f"{missing_extra('codegen', 'codegen')} ({error})") from error
    properties = {f"h{number}": json.loads(schema) for number, schema in enumerate(schemas)}
    used = [name for name in classes if any(f'"#/$defs/{name}"' in schema for schema in schemas)]
    stub = {"type": "object", "properties": {"stub": {"type": "string"}}}
    hints = {"type": "object", "properties": properties, "required": [*properties]}
    config = GenerateConfig(
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.MsgspecStruct,
        target_python_version=PythonVersion.PY_311,
        use_standard_collections=True,
        use_union_operator=True,
        enum_field_as_literal=LiteralType.All,
        disable_timestamp=True,
        formatters=[],
    )
    document = {"title": "Hints", **hints, "$defs": dict.fromkeys(used, stub)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about options of its own
        return str(generate(json.dumps(document), config=config))


def _read_hints(text: str, count: int, classes: set[str], strings: Mapping[str, str]) -> list[str]:
    """Return the hints of the members in their order. Raises `ValueError` for anything but types."""
    (found,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == "Hints")
    hints = {
        node.target.id: ast.unparse(_HintCheck(classes, strings).visit(node.annotation))
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return [hints[f"h{number}"] for number in range(count)]


class _HintCheck(ast.NodeTransformer):
    """Accepts expressions of known types only, and puts the strings of the server in place of their tokens."""

    def __init__(self, classes: set[str], strings: Mapping[str, str]) -> None:
        self._names = classes | _KNOWN_NAMES
        self._strings = strings

    def visit(self, node: ast.AST) -> Any:
        """Visit a part of a hint."""
        if isinstance(node, ast.Name):
            if node.id not in self._names:
                raise ValueError(node.id)
            return node
        if isinstance(node, ast.Constant):
            return ast.Constant(self._strings[node.value] if isinstance(node.value, str) else node.value)
        if isinstance(node, ast.Subscript | ast.BinOp | ast.Tuple | ast.UnaryOp | ast.Load | ast.BitOr | ast.USub):
            return self.generic_visit(node)
        raise ValueError(type(node).__name__)
