"""Generate the model classes of both backends.

Every type has its final name, and datamodel-code-generator writes the hints (`hints.py`). The templates
(`templates/structs`, `templates/models`) read everything else from the definition's `x`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from mcpspec_codegen import names
from mcpspec_codegen.cycles import find_recursive
from mcpspec_codegen.definition_order import order_definitions
from mcpspec_codegen.hints import write_hints
from mcpspec_codegen.interface import Interface
from mcpspec_codegen.names import is_renamed
from mcpspec_codegen.nodes import CHECKS, Schema, is_schema, map_children, references, type_names
from mcpspec_codegen.source import Descriptions
from mcpspec_codegen.spelling import join_checks

__all__ = [
    "COMPAT",
    "EXACT_MODELS",
    "EXACT_STRUCTS",
    "MODELS",
    "STRUCTS",
    "Backend",
    "Classes",
    "find_undocumented",
    "generate_classes",
    "list_owners",
]

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701  # the output is Python, not HTML
)


Face: TypeAlias = Literal["everyday", "exact", "compat"]
"""Way in which types show what may be absent: as None and defaults, exactly as the schema says, or as the official
package does."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A model library, msgspec or Pydantic, and the face of the types."""

    module: str
    """The module of a revision that contains its types: `structs` or `models`."""
    library: str
    is_msgspec: bool
    """True if the types are msgspec Structs."""
    annotation: str
    """The function that takes the constraints in `Annotated`."""
    imports: tuple[str, ...]
    absent: str
    """The value of an optional member that is absent, as code."""
    face: Face = "exact"

    @property
    def has_none(self) -> bool:
        """True if absence is None, or a default."""
        return self.face != "exact"

    @property
    def exports(self) -> tuple[str, ...]:
        """The names for absent values that its modules export."""
        named = {"UNSET": ("UNSET", "UnsetType"), "MISSING": ("MISSING",), "None": ("NULL",)}[self.absent]
        return () if self.face == "compat" else named

    @property
    def prefix(self) -> str:
        """Prefix of the names of the modules that use these types."""
        return "" if self.is_msgspec else self.module + "_"


COMPAT_SUPPORT = (
    "ContentAsList", "DecodeError", "KeepsNull", "NeedsInput", "Notification", "NotificationParams", "PaginatedRequest",
    "PaginatedRequestParams", "Request", "RequestParams", "RequestParamsMeta", "Uri", "decode", "encode",
    "from_builtins", "to_builtins",
)  # fmt: skip
"""Names of the support code that the types free of revisions use."""

_COMMON_IMPORTS = (
    "DecodeError",
    "TypingAnnotated",
    "constant",
    "decode",
    "encode",
    "from_builtins",
    "to_builtins",
    "validate",
)

_MODEL_IMPORTS = ("ClosedModel", "Model", "regex", "union", "untagged")

EXACT_STRUCTS = Backend(
    module="structs",
    library="msgspec Structs",
    is_msgspec=True,
    annotation="Meta",
    imports=(
        *("typing." + name for name in ("TYPE_CHECKING", "Any", "ClassVar", "Literal", "TypeAlias")),
        *("msgspec." + name for name in ("UNSET", "Meta", "UnsetType", "field")),
        *(
            "mcpspec.support.structs." + name
            for name in (*_COMMON_IMPORTS, "ConstantStruct", "OpenObject", "Struct", "member")
        ),
        *("mcpspec.support.postponed." + name for name in ("find_postponed", "postpone")),
    ),
    absent="UNSET",
)
EXACT_MODELS = Backend(
    module="models",
    library="Pydantic models",
    is_msgspec=False,
    annotation="Field",
    imports=(
        *("typing." + name for name in ("TYPE_CHECKING", "Any", "Literal", "TypeAlias")),
        "pydantic.Field",
        "pydantic_core.MISSING",
        "typing_extensions.TypeAliasType",
        "mcpspec.support.definitions.lazy_definitions",
        *("mcpspec.support.models." + name for name in (*_COMMON_IMPORTS, *_MODEL_IMPORTS)),
        *("mcpspec.support.checked_models." + name for name in ("Checked", "checked")),
    ),
    absent="MISSING",
)
"""Ruff removes the imports that a module does not use."""


def _everyday(backend: Backend) -> Backend:
    """Return the everyday face of a library, whose bases are in a module of their own."""
    exact, own = f"mcpspec.support.{backend.module}.", f"mcpspec.support.everyday_{backend.module}."
    imports = (*(name.replace(exact, own) for name in backend.imports), "mcpspec.support.null.NULL")
    if not backend.is_msgspec:
        imports += ("mcpspec.support.everyday_models.Nullable", "mcpspec.support.everyday_models.null_means")
    return replace(backend, imports=imports, absent="None", face="everyday")


STRUCTS = _everyday(EXACT_STRUCTS)
MODELS = _everyday(EXACT_MODELS)
COMPAT = replace(
    EXACT_MODELS,
    module="models",
    imports=(
        *("typing." + name for name in ("TYPE_CHECKING", "Any", "Final", "Literal", "TypeAlias")),
        *("pydantic." + name for name in ("Field", "TypeAdapter")),
        "typing_extensions.TypeAliasType",
        "mcpspec.support.definitions.lazy_definitions",
        *("mcpspec.support.models." + name for name in ("regex", "untagged")),
        *("mcpspec.support.compat." + name for name in (*COMPAT_SUPPORT, "Model", "union")),
    ),
    absent="None",
    face="compat",
)


class Classes(NamedTuple):
    """The source of a package's classes and aliases, in parts. Ruff removes the imports that are not used."""

    head: str
    """The docstring and the imports."""
    inherited: str
    """The import of types from another package; empty without any."""
    definitions: str


def generate_classes(interface: Interface, backend: Backend) -> Classes:
    """Generate the source of a package's classes and aliases."""
    own = interface.own_definitions
    bases = {name: own.keys() & node["x"].get("bases", []) for name, node in own.items()}
    later = _find_cycles(own)
    needed = {name: bases[name] | own.keys() & _needed(own[name], backend, later.get(name, set())) for name in own}
    hints = _write_hints(own, backend)
    context = {name: _template_data(name, interface, backend, hints[name], later.get(name, set())) for name in own}
    rendered = [_template(own[name], backend).render(context[name]) for name in order_definitions(needed, bases)]
    return Classes(_head(interface, backend), _inherited(interface, backend), "\n\n".join(rendered).lstrip())


def _find_cycles(defs: Mapping[str, Schema]) -> dict[str, set[str]]:
    """Return the definitions that refer to themselves, with what they refer to on the way."""
    graph = {name: _references(node) & defs.keys() for name, node in defs.items()}
    recursive = find_recursive(graph)
    return {name: graph[name] & recursive for name in recursive}


def _is_class(node: Schema) -> bool:
    return node["x"]["kind"] in ("record", "open")


def _template(node: Schema, backend: Backend) -> Template:
    folder = "structs" if backend.is_msgspec else "models"
    return _environment.get_template(f"{folder}/{'class' if _is_class(node) else 'alias'}.jinja2")


def _needed(node: Schema, backend: Backend, later: set[str]) -> set[str]:
    """Return the definitions that stand before one: those to which code refers that is no text, and is run at once."""
    if node["x"].get("recursive") or (backend.is_msgspec and _is_class(node)):
        return set()
    if not _is_class(node):
        return _references(node)
    members = [references(member) for member in node["properties"].values()]
    return set[str]().union(*(found for found in members if later.isdisjoint(found)))


def _head(interface: Interface, backend: Backend) -> str:
    """Return the docstring and the imports of a module."""
    note = " The everyday types of the same names describe them." if backend.face == "exact" else ""
    lines = [
        f'"""The types of {interface.title}, as {backend.library}.{note}\n',
        f'Generated by `{interface.command}`; do not edit.\n"""\n',
        # Pydantic reads annotations when it makes a class, msgspec only when it first decodes.
        *(["from __future__ import annotations\n"] if backend.is_msgspec else []),
        *_import_lines(backend.imports),
        *([] if "Annotated" in interface.document["$defs"] else ["from typing import Annotated"]),
    ]
    return "\n".join(lines) + "\n"


def _import_lines(paths: Iterable[str]) -> list[str]:
    """Return imports, one for each module."""
    names: dict[str, list[str]] = {}
    for path in paths:
        module, _, name = path.rpartition(".")
        names.setdefault(module, []).append(name)
    return [f"from {module} import {', '.join(found)}" for module, found in names.items()]


def _inherited(interface: Interface, backend: Backend) -> str:
    """Return the import of the types of another package."""
    package = f"{interface.inherited.package}.{backend.module}"
    return "".join(_import_lines(f"{package}.{name}" for name in sorted(interface.inherited.definitions)))


def _write_hints(defs: Mapping[str, Schema], backend: Backend) -> dict[str, dict[str, str]]:
    """Write the hints of all members, and of the aliases themselves (``): definition → member → hint."""
    places = [(name, key) for name, node in defs.items() for key in (node["properties"] if _is_class(node) else [""])]
    nodes = [defs[name]["properties"][key] if key else defs[name] for name, key in places]
    written: dict[str, dict[str, str]] = {name: {} for name in defs}
    hints = write_hints([*map(_plain, nodes)], is_msgspec=backend.is_msgspec)
    for (name, key), hint in zip(places, hints, strict=True):
        written[name][key] = hint
    return written


def _plain(node: Schema) -> Schema:
    """Return the schema of a type without the parts that the templates write themselves."""
    node = _exact_numbers({key: value for key, value in node.items() if key not in _NO_HINTS})
    if "const" in node:
        node["enum"] = [node.pop("const")]
    return node


def _exact_numbers(node: Any) -> Any:
    """Make `number` mean `int | float`, so that a number keeps its form: `1` is not `1.0`."""
    if not is_schema(node):
        return node
    node = map_children(node, _exact_numbers)
    if "number" in (types := type_names(node)) and "integer" not in types:
        node["type"] = [*types, "integer"]
    return node


_ARGUMENTS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
    "minLength": "min_length", "maxLength": "max_length", "minItems": "min_length", "maxItems": "max_length",
    "minProperties": "min_length", "maxProperties": "max_length", "multipleOf": "multiple_of", "pattern": "pattern",
    "discriminator": "discriminator",
}  # fmt: skip
"""Keywords that the templates write as arguments of `Meta` or `Field`."""
_NO_HINTS = {*_ARGUMENTS, CHECKS, "x"}
"""Keywords that are no part of a type's hint."""


def _annotation(node: Schema, backend: Backend, annotated: str, alias: str | None = None) -> dict[str, str | None]:
    """Return the code around a type: `Annotated[` and the arguments for its keywords and its name on the wire.

    `hint` replaces the type if the library needs the bounds on each type of a scalar.
    """
    arguments = {name: node[key] for key, name in _ARGUMENTS.items() if key in node}
    if not backend.is_msgspec and arguments and _is_mixed(node):
        named = f", Field(alias={alias!r})]" if alias else ""
        hint = _bounded_scalar(node, annotated, backend)
        return {"before": f"{annotated}[" if alias else "", "after": named, "hint": hint}
    if not backend.is_msgspec:
        if "discriminator" in arguments:
            arguments["discriminator"] = names.name_attribute(arguments["discriminator"]["propertyName"])
        if "integer" in (types := type_names(node)) and "number" not in types:
            arguments |= _whole(arguments)
        arguments = ({"alias": alias} if alias else {}) | arguments
    else:
        arguments.pop("discriminator", None)
    listed = _list_arguments(arguments, backend)
    before, after = f"{annotated}[", f", {backend.annotation}({listed})]"
    if not listed:
        return {"before": "", "after": "", "hint": None}
    if backend.is_msgspec and set(type_names(node)) - {"array", "object"}:
        return {"before": "", "after": "", "hint": _bounded_scalar(node, annotated, backend)}
    return {"before": before, "after": after, "hint": None}


def _list_arguments(arguments: dict[str, Any], backend: Backend) -> str:
    def write(name: str, value: Any) -> str:
        is_compiled = name == "pattern" and not backend.is_msgspec
        return f"{name}=regex({value!r})" if is_compiled else f"{name}={value!r}"

    return ", ".join(write(name, value) for name, value in arguments.items())


_LENGTHS = ("minLength", "maxLength", "pattern")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def _is_mixed(node: Schema) -> bool:
    """Return whether a scalar is of several types, so that Pydantic needs the bounds on each. A number is of two."""
    kinds = {*type_names(node)} - {"null"}
    return (len(kinds) > 1 or "number" in kinds) and not kinds & {"array", "object"}


def _bounded_scalar(node: Schema, annotated: str, backend: Backend) -> str:
    """Write a scalar type with its bounds on each type, and integers as bounds of integers."""
    numbers = {_ARGUMENTS[key]: node[key] for key in _NUMBERS if key in node}
    lengths = {_ARGUMENTS[key]: node[key] for key in _LENGTHS if key in node}
    names = [name for name in ("string", "integer", "number", "boolean", "null") if name in type_names(node)]
    hints: list[str] = []
    for name in [*names, *(["integer"] if "number" in names and "integer" not in names else [])]:
        bounds = {"integer": _whole(numbers), "number": numbers, "string": lengths}.get(name, {})
        listed = _list_arguments(bounds, backend)
        python = _PYTHON[name]
        hints.append(f"{annotated}[{python}, {backend.annotation}({listed})]" if listed else python)
    return " | ".join(hints)


_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def _whole(bounds: dict[str, float]) -> dict[str, float]:
    """Convert bounds of numbers to bounds of integers."""
    return {name: _ROUNDED[name](value) if name in _ROUNDED else value for name, value in bounds.items()}


_ROUNDED = {"ge": math.ceil, "gt": math.floor, "le": math.floor, "lt": math.ceil}


def _template_data(
    name: str, interface: Interface, backend: Backend, hints: Mapping[str, str], later: set[str]
) -> dict[str, Any]:
    """Return what the templates write of a definition. `later` are definitions that refer to it, and it to them."""
    defs, prose = interface.document["$defs"], interface.prose
    node, extra = defs[name], defs[name]["x"]
    owners = list_owners(name, defs)
    doc = prose.of_definition(name) or (prose.of_property(owners, extra["origin"][1]) if "origin" in extra else None)
    tag, tags = _tag(extra), extra.get("tag", [])[:1]
    constants = {**extra.get("defaults", {}), **extra.get("constants", {})}
    absent: dict[str, Any] = {}
    if backend.has_none:  # an optional constant is what its absence means
        required = node.get("required", [])
        absent = {wire: value for wire, value in constants.items() if wire not in required} | extra.get("absent", {})
        constants = {wire: value for wire, value in constants.items() if wire not in absent}
    annotated = _CLASHING if "Annotated" in defs else "Annotated"
    quoted = _references(node) if later else set[str]()  # names that no code refers to
    return {
        "name": name,
        "kind": extra["kind"],
        "is_union": "anyOf" in node,
        "closed": extra.get("closed", False),
        "is_recursive": extra.get("recursive", False),
        "check": join_checks(node) if backend.face != "compat" else None,
        "tag": tag,
        "constants": [wire for wire in constants if tag is None or wire != tag["wire"]],
        "has_none": backend.has_none,
        "face": backend.face,
        "bases": [*extra.get("mixins", []), *map(_base_hint, extra.get("bases", []))],
        "annotated": annotated,
        "doc": doc,
        "references": sorted(_references(node)),
        "own_bases": sorted({base for base in extra.get("bases", []) if base in defs} | quoted),
        "reference": prose.reference(owners[-1]),
        "written": hints.get("", ""),
        **_annotation(node, backend, annotated),
        "members": {
            attribute: {
                "attribute": attribute,
                "wire": wire,
                "is_renamed": is_renamed(attribute, wire),
                "doc": prose.of_property(owners, wire),
                "required": wire in node.get("required", []),
                "constant": repr(constants[wire]) if wire in constants else None,
                "absent": repr(absent[wire]) if wire in absent else backend.absent,
                "has_default": wire in absent,
                "written": hints[wire],
                "is_quoted": not later.isdisjoint(references(node["properties"][wire])),
                **_annotation(
                    node["properties"][wire], backend, annotated, wire if is_renamed(attribute, wire) else None
                ),
            }
            # msgspec encodes the tag first, so both backends have it there.
            for wire, attribute in sorted(extra.get("names", {}).items(), key=lambda names: names[0] not in tags)
        },
    }


_PARAMETERS = {"Request": "[Any, Any]", "PaginatedRequest": "[Any]", "Notification": "[Any, Any]"}


def _base_hint(base: str) -> str:
    return base + _PARAMETERS.get(base, "")


def _references(node: Schema) -> set[str]:
    """Return the names of the definitions that the type of a definition refers to directly."""
    return references({key: value for key, value in node.items() if key != CHECKS})


_CLASHING = "TypingAnnotated"
"""The name of `typing.Annotated` in a module with a definition called `Annotated`."""


def _tag(extra: Schema) -> dict[str, Any] | None:
    if "tag" not in extra:
        return None
    wire, value = extra["tag"]
    return {"wire": wire, "attribute": extra["names"][wire], "value": value}


def list_owners(name: str, defs: Schema) -> list[str]:
    """List a definition and the definitions that it was hoisted out of, innermost first."""
    owners = [name]
    while "origin" in defs[owners[-1]]["x"]:
        owners.append(defs[owners[-1]]["x"]["origin"][0])
    return owners


def find_undocumented(defs: Schema, descriptions: Descriptions) -> list[str]:
    """List the definitions and properties that have no description yet."""
    missing: list[str] = []
    for name, node in defs.items():
        owners = list_owners(name, defs)
        if "origin" not in node["x"] and descriptions.of_definition(name) is None:
            missing.append(name)
        missing += [
            f"{name}.{key}" for key in node["x"].get("names", {}) if descriptions.of_property(owners, key) is None
        ]
    return missing
