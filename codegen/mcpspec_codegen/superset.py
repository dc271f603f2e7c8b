"""Merge the interfaces of all revisions into one, whose types hold the messages of any revision.

A definition has the members that it has in any revision. A member is required if all revisions that have the definition
require it, and its type has the values that it has in any of them. Requests and notifications lack the envelope, as in
the official Python package, which writes it apart. `schema/compat.json` has the names of that package, and what it has
beside the schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, TypedDict, TypeVar

from mcpspec_codegen.everyday import simplify
from mcpspec_codegen.nodes import BOUNDS, CHECKS, Schema, is_schema, map_children, ref_name, type_names
from mcpspec_codegen.unions import find_common_tag

T = TypeVar("T")

__all__ = ["CompatFacts", "add_renamed", "find_renamed", "merge_revisions"]


class CompatFacts(TypedDict):
    """The content of `compat.json`."""

    renamed: dict[str, str]
    """Definition → its name in the official package. Definitions with one name are merged."""
    dropped: dict[str, str]
    """Definition → why there is no class for it."""
    records: list[str]
    """Names that are objects in some revisions and unions in others, of which the objects count."""
    empty_objects: dict[str, str]
    """Member that may be any object → name of its class."""
    replaced_types: dict[str, Schema]
    """Member → its type, in place of that of the schemas."""
    member_types: dict[str, str]
    """Name → member whose type it is."""
    unions: dict[str, list[str]]
    bases: list[str]
    """Definitions that those with all their members derive from, if their names end alike; most derived first."""
    extends: dict[str, str]
    """Definition → another base of it."""
    defaults: dict[str, dict[str, bool | list[Any] | None]]
    """Definition → member → value if it is absent."""
    mixins: dict[str, list[str]]
    """Definition → classes of the support code that it also derives from."""
    aliases: dict[str, str]
    adapters: dict[str, str]
    """Name of a Pydantic `TypeAdapter` → its type."""
    constants: dict[str, str | int | list[str]]
    """Name → value; a list is a set."""
    missing: dict[str, str]
    """Name in the official package without an equal → why."""


_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": {}}
_ENVELOPE = ("jsonrpc", "id")
_SUPPORT = "mcpspec.support.compat."
_IMPORTED = (
    "Notification", "NotificationParams", "PaginatedRequest", "PaginatedRequestParams", "Request", "RequestParams",
    "RequestParamsMeta",
)  # fmt: skip
"""Definitions that are classes of the support code, since the official package has more in them than the schemas."""
_URI = "uri"
"""Members of this name are URIs."""


def merge_revisions(documents: Sequence[Schema], facts: CompatFacts) -> Schema:
    """Merge normalised documents, oldest first. Facts about definitions that none of them has are left out."""
    renamed = [_rename(simplify(document, {}), facts) for document in documents]
    names = dict.fromkeys(name for document in reversed(renamed) for name in document)
    merged = {name: _merge([found[name] for found in renamed if name in found], name, facts) for name in names}
    merged = {name: {**_simplify(node, merged), "x": node["x"]} for name, node in merged.items()}
    for step in (_without_dropped, _add_meta, _add_named_types, _relax, _add_bases):
        merged = step(merged, facts)
    kept = {name: _mark_union(node, merged) for name, node in _in_order(merged).items() if name not in _IMPORTED}
    return {"$defs": {name: {**node, "x": _known_origin(node["x"], kept)} for name, node in kept.items()}}


def add_renamed(documents: Sequence[Schema], facts: CompatFacts) -> CompatFacts:
    """Return the facts with the definitions that `find_renamed` finds. Their new names are aliases."""
    found = find_renamed(documents, facts)
    return {**facts, "renamed": facts["renamed"] | found, "aliases": facts["aliases"] | found}


def find_renamed(documents: Sequence[Schema], facts: CompatFacts) -> dict[str, str]:
    """Find the definitions that a later document has under another name: new name → name of the class for both.

    They have the same tag, and most members in common. With a class for each, a union would have two for one value.
    """
    found: dict[str, str] = {}
    for older, newer in pairwise(document["$defs"] for document in documents):
        gone = {name: node for name, node in older.items() if name not in newer}
        for name, node in newer.items():
            if name in older or name in facts["renamed"]:
                continue
            alike = [other for other, known in gone.items() if _is_alike(node, known)]
            classes = [known[other] if other in (known := {**facts["renamed"], **found}) else other for other in alike]
            if len(classes) == 1 and classes[0] != name:
                found[name] = classes[0]
    return found


def _is_alike(node: Schema, other: Schema) -> bool:
    """Return whether two definitions are told apart from others by the same tag, and are mostly the same."""
    if "tag" not in node["x"] or node["x"]["tag"] != other["x"].get("tag"):
        return False
    mine, theirs = node["properties"].keys(), other["properties"].keys()
    return 2 * len(mine & theirs) > max(len(mine), len(theirs))


def _mark_union(node: Schema, defs: dict[str, Schema]) -> Schema:
    """Return a union with its tag, or marked as one without."""
    if "anyOf" not in node:
        return node
    tag = find_common_tag(node, defs)
    marked = {**node, "x": {**node["x"], "kind": "alias" if tag else "union"}}
    return {**marked, "discriminator": {"propertyName": tag}} if tag else marked


def _known_origin(extra: Schema, defs: Mapping[str, Schema]) -> Schema:
    """Return what is known of a definition, without its place if that is in no definition that is left."""
    is_known = extra.get("origin", [""])[0] in defs
    return {key: value for key, value in extra.items() if key != "origin" or is_known}


def _rename(document: Schema, facts: CompatFacts) -> dict[str, Schema]:
    """Return the definitions under the names of the official package. Several may get the same name."""
    renamed = facts["renamed"]
    found: dict[str, Schema] = {}
    for name, node in document["$defs"].items():
        new = renamed[name] if name in renamed else name  # noqa: SIM401  # `Any` of a document has no default
        origin = node["x"].get("origin")
        extra = {**node["x"], "origin": [renamed.get(origin[0], origin[0]), origin[1]]} if origin else {**node["x"]}
        if extra["kind"] == "checked" and not extra.get("recursive"):
            extra["kind"] = "alias"
        changed = {**_rename_references(_without_checks(node), renamed), "x": extra}
        found[new] = _merge([found[new], changed], new, facts) if new in found else changed
    return found


def _without_checks(node: Schema) -> Schema:
    """Leave out the checks, which a message of another revision might not pass."""
    return {key: value for key, value in node.items() if key != CHECKS}


def _rename_references(node: Any, renamed: Mapping[str, str]) -> Any:
    if not is_schema(node):
        return node
    copy = map_children(node, lambda child: _rename_references(child, renamed))
    if "$ref" in copy:
        name = ref_name(copy["$ref"])
        copy["$ref"] = f"#/$defs/{renamed.get(name, name)}"
    return copy


def _merge(nodes: Sequence[Schema], name: str, facts: CompatFacts) -> Schema:
    """Merge the forms of a definition, oldest first. The types of members are merged later."""
    records = [_without_closure(node) for node in nodes if "properties" in node]
    others = [node for node in nodes if "properties" not in node]
    if records and (not others or name in facts["records"]):
        return reduce(_merge_records, records)
    return others[0] if len(others) == 1 else {"anyOf": list(reversed(others)), "x": others[-1]["x"]}


def _without_closure(node: Schema) -> Schema:
    """Return an object that may have undeclared members, which may be those of another revision."""
    if not node["x"].get("closed"):
        return node
    extra = {key: value for key, value in node["x"].items() if key != "closed"}
    return {**{key: value for key, value in node.items() if key != "additionalProperties"}, "x": extra}


def _merge_records(older: Schema, newer: Schema) -> Schema:
    properties = {
        key: {"anyOf": [found[key] for found in (newer["properties"], older["properties"]) if key in found]}
        for key in {**newer["properties"], **older["properties"]}
    }
    return {
        "type": "object",
        "properties": properties,
        "required": sorted({*older.get("required", [])} & {*newer.get("required", [])}),
        "x": {
            **older["x"],
            **newer["x"],
            "kind": "record",
            **{
                key: {**after, **before, **after}  # the newer one's order and values
                for key in ("names", "constants", "defaults")
                for before, after in [(older["x"].get(key, {}), newer["x"].get(key, {}))]
            },
        },
    }


def _simplify(node: Any, defs: Mapping[str, Schema]) -> Any:
    """Leave out the members of unions that others contain, and the bounds of those that are left."""
    if not is_schema(node):
        return node
    node = map_children(node, lambda child: _simplify(child, defs))
    if "anyOf" not in node:
        return node
    options: list[Schema] = []
    for option in _flatten(node["anyOf"]):
        if not any(_covers(other, option, defs) for other in options):
            options = [other for other in options if not _covers(option, other, defs)] + [option]
    if len(options) == 1:
        return options[0]
    return {**node, "anyOf": [{key: value for key, value in each.items() if key not in BOUNDS} for each in options]}


def _flatten(options: Sequence[Schema]) -> list[Schema]:
    return [
        leaf
        for option in options
        for leaf in (_flatten(option["anyOf"]) if "anyOf" in option else [_without_notes(option)])
    ]


def _covers(wide: Schema, narrow: Schema, defs: Mapping[str, Schema], depth: int = 0) -> bool:
    """Return whether a type certainly has all values of another one. A class has those of a bare object."""
    wide, narrow, depth = _without_notes(wide), _without_notes(narrow), depth + 1
    if depth > _MAX_DEPTH:
        return False
    if wide in ({}, narrow):
        return True
    if "$ref" in wide:
        target = defs.get(ref_name(wide["$ref"]), {})
        if "properties" in target:
            return narrow == _ANY_OBJECT or _names_any_object(narrow, defs)
        return _covers(target, narrow, defs, depth)
    if "anyOf" in narrow:
        return all(_covers(wide, option, defs, depth) for option in narrow["anyOf"])
    if "anyOf" in wide and any(_covers(option, narrow, defs, depth) for option in wide["anyOf"]):
        return True
    if "$ref" in narrow:
        target = defs.get(ref_name(narrow["$ref"]), {})
        return "properties" not in target and _covers(wide, target, defs, depth)
    return _covers_plainly(wide, narrow, defs, depth)


_BELOW = ("items", "additionalProperties")
_MAX_DEPTH = 12
"""Depth to which types are compared, which may refer to themselves."""


def _covers_plainly(wide: Schema, narrow: Schema, defs: Mapping[str, Schema], depth: int) -> bool:
    known = {"type", "enum", "const", *_BELOW}
    if not (wide.keys() <= known and {*type_names(narrow)} <= {*type_names(wide)}):
        return False
    if "enum" in wide or "const" in wide:
        return {*_values(narrow)} <= {*_values(wide)} and bool(_values(narrow))
    return all(key in narrow and _covers(wide[key], narrow[key], defs, depth) for key in _BELOW if key in wide)


def _values(node: Schema) -> list[Any]:
    values: list[Any] = node.get("enum", [])
    return [node["const"]] if "const" in node else values


def _names_any_object(node: Schema, defs: Mapping[str, Schema]) -> bool:
    return "$ref" in node and _without_notes(defs.get(ref_name(node["$ref"]), {})) == _ANY_OBJECT


def _without_notes(node: Schema) -> Schema:
    return {key: value for key, value in node.items() if key not in ("x", "discriminator")}


def _without_dropped(defs: dict[str, Schema], facts: CompatFacts) -> dict[str, Schema]:
    """Leave out definitions, the members of unions that are made of them, and the envelope of messages."""
    dropped = facts["dropped"]
    return {name: _without_envelope(name, _drop(node, dropped)) for name, node in defs.items() if name not in dropped}


def _drop(node: Any, dropped: Mapping[str, str]) -> Any:
    if not is_schema(node):
        return node
    if ref_name(node.get("$ref", "")) in dropped:
        return _ANY_OBJECT
    if "anyOf" in node:
        kept = [option for option in node["anyOf"] if ref_name(option.get("items", {}).get("$ref", "")) not in dropped]
        node = {**node, "anyOf": kept}
    return {**map_children(node, lambda child: _drop(child, dropped)), **({"x": node["x"]} if "x" in node else {})}


def _without_envelope(name: str, node: Schema) -> Schema:
    is_message = "method" in node.get("properties", {}) and not name.startswith("JSONRPC")
    return _without_members(node, _ENVELOPE) if is_message else node


def _without_members(node: Schema, members: Sequence[str]) -> Schema:
    extra = node["x"]
    kept = {key: {k: v for k, v in extra[key].items() if k not in members} for key in ("names", "constants")}
    return {
        **node,
        "properties": {key: child for key, child in node["properties"].items() if key not in members},
        "required": [key for key in node.get("required", []) if key not in members],
        "x": {**extra, **kept},
    }


def _add_meta(defs: dict[str, Schema], _facts: CompatFacts) -> dict[str, Schema]:
    """Let all parameters have `_meta`, which some schemas leave to the base types."""
    params = {ref_name(node.get("properties", {}).get("params", {}).get("$ref", "")) for node in defs.values()}
    meta = {"_meta": {"$ref": "#/$defs/RequestParamsMeta"}}
    return {
        name: {
            **node,
            "properties": {**meta, **node["properties"]},
            "x": {**node["x"], "names": {"_meta": "meta", **node["x"]["names"]}},
        }
        if name in params and "_meta" not in node.get("properties", {"_meta": None})
        else node
        for name, node in defs.items()
    }


def _add_named_types(defs: dict[str, Schema], facts: CompatFacts) -> dict[str, Schema]:
    """Add the types that the official package has names for, and the schemas have not."""
    defs = {name: {**node, "x": {**node["x"]}} for name, node in defs.items()}
    for place, name in _known_members(facts["empty_objects"], defs):
        defs[place[0]] = _replace_type(defs[place[0]], place[1], {"$ref": f"#/$defs/{name}"})
        extra: Schema = {"kind": "record", "origin": [*place], "names": {}, "constants": {}}
        defs[name] = {"type": "object", "properties": {}, "x": extra}
    for place, node in _known_members(facts["replaced_types"], defs):
        defs[place[0]] = _replace_type(defs[place[0]], place[1], node)
    for place, name in _known_members({place: name for name, place in facts["member_types"].items()}, defs):
        defs[name] = {**defs[place[0]]["properties"][place[1]], "x": {"kind": "alias", "origin": [*place]}}
    for name, members in facts["unions"].items():
        members = [member for member in members if member in defs]
        defs[name] = {"anyOf": [{"$ref": f"#/$defs/{member}"} for member in members], "x": {"kind": "alias"}}
    empty = {"Result": "EmptyResult"}
    defs = {name: _rename_references(node, empty) if "anyOf" in node else node for name, node in defs.items()}
    return defs | {"EmptyResult": defs["Result"], "Result": _without_members(defs["Result"], ["resultType"])}


def _known_members(facts: Mapping[str, T], defs: Mapping[str, Schema]) -> Iterator[tuple[tuple[str, str], T]]:
    """Yield the facts about members that the definitions have, each with definition and member."""
    for place, fact in facts.items():
        owner, _, member = place.partition(".")
        if member in defs.get(owner, {}).get("properties", {}):
            yield (owner, member), fact


def _replace_type(node: Schema, member: str, kind: Schema) -> Schema:
    return {**node, "properties": {**node["properties"], member: kind}}


def _relax(defs: dict[str, Schema], facts: CompatFacts) -> dict[str, Schema]:
    """Give constants and results their defaults, and require parameters only if they require more than `_meta`."""
    relaxed = {name: _with_defaults(node, facts["defaults"].get(name, {})) for name, node in defs.items()}
    needed = {name for name, node in relaxed.items() if node.get("required") or "anyOf" in node}
    return {name: _with_support_types(_with_optional_params(node, needed)) for name, node in relaxed.items()}


def _with_defaults(node: Schema, defaults: Mapping[str, Any]) -> Schema:
    if "properties" not in node:
        return node
    extra = node["x"]
    stated = {**extra.get("constants", {}), **extra.get("defaults", {}), **defaults}
    absent = {key: value for key, value in stated.items() if value is not None and key in node["properties"]}
    required = [key for key in node.get("required", []) if key not in absent and key != "_meta"]
    return {**node, "required": required, "x": {**extra, "constants": {}, "defaults": {}, "absent": absent}}


def _with_optional_params(node: Schema, needed: set[str]) -> Schema:
    target = ref_name(node.get("properties", {}).get("params", {}).get("$ref", ""))
    if not target or target in needed:
        return node
    return {**node, "required": [key for key in node["required"] if key != "params"]}


def _with_support_types(node: Schema) -> Schema:
    """Let members have types of the support code: URIs, and `_meta` of requests."""
    properties = {
        key: {"customTypePath": _SUPPORT + "Uri"} if key == _URI and child.get("type") == "string" else _import(child)
        for key, child in node.get("properties", {}).items()
    }
    return {**node, "properties": properties} if properties else node


def _import(node: Any) -> Any:
    if not is_schema(node):
        return node
    name = ref_name(node.get("$ref", ""))
    return {"customTypePath": _SUPPORT + name} if name in _IMPORTED else map_children(node, _import)


def _add_bases(defs: dict[str, Schema], facts: CompatFacts) -> dict[str, Schema]:
    def bases(name: str, node: Schema) -> Schema:
        found = _find_bases(name, defs, facts)
        keeps_null = _requires_nullable(node) and not any(_requires_nullable(defs[base]) for base in found)
        return {"bases": found, "mixins": [*facts["mixins"].get(name, []), *(["KeepsNull"] if keeps_null else [])]}

    return {
        name: _with_types_of_bases({**node, "x": {**node["x"], **bases(name, node)}}, defs)
        if "properties" in node
        else node
        for name, node in defs.items()
    }


def _with_types_of_bases(node: Schema, defs: Mapping[str, Schema]) -> Schema:
    """Let members that are any object have the class that a base has for them."""
    classes = {
        key: child
        for base in node["x"]["bases"]
        for key, child in defs[base]["properties"].items()
        if "$ref" in child and node["properties"][key] == _ANY_OBJECT
    }
    return {**node, "properties": {**node["properties"], **classes}} if classes else node


def _requires_nullable(node: Schema) -> bool:
    """Return whether a required member may be null."""
    required = (node["properties"][key] for key in node.get("required", []))
    return any(child == {} or "null" in type_names(child) for child in required)


def _find_bases(name: str, defs: Mapping[str, Schema], facts: CompatFacts) -> list[str]:
    """List the classes that a class derives from, none of which derives from another."""
    bases = [base for base in facts["bases"] if base in defs]
    further = bases[bases.index(name) + 1 :] if name in bases else bases
    stated = [facts["extends"][name]] if name in facts["extends"] else []
    found = [base for base in stated if base in defs and _has_members(defs[name], defs[base], defs)]
    found += [
        base
        for base in further
        if name.endswith(_suffix(base)) and _has_members(defs[name], defs[base], defs) and base not in found
    ]
    above = {other for base in found for other in _find_bases(base, defs, facts)}
    return [base for base in found if base not in above]


def _has_members(node: Schema, base: Schema, defs: Mapping[str, Schema]) -> bool:
    """Return whether a definition has all members of a base, with types that the base allows."""
    members = node["properties"]
    return (
        "properties" in base
        and _keeps_required(node, base)
        and all(key in members and _covers(child, members[key], defs) for key, child in base["properties"].items())
    )


def _keeps_required(node: Schema, base: Schema) -> bool:
    """Return whether a definition requires what a base requires, or has a default: a class cannot allow less there."""
    return {*base.get("required", [])} <= {*node.get("required", []), *node["x"].get("absent", {})}


_SUFFIXES = ("RequestParams", "NotificationParams", "Result", "Request", "Notification")


def _suffix(base: str) -> str:
    return next(suffix for suffix in _SUFFIXES if base.endswith(suffix))


def _in_order(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Return the definitions with bases before those that derive from them."""
    ordered: dict[str, Schema] = {}

    def add(name: str) -> None:
        for base in defs[name]["x"].get("bases", []):
            add(base)
        ordered.setdefault(name, defs[name])

    for name in sorted(defs, key=lambda name: not any(name in node["x"].get("bases", []) for node in defs.values())):
        add(name)
    return ordered
