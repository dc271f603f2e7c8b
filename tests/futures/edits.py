"""Changes that upstream may make in a next revision. Each function makes one of them, and says in one line which."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from mcpspec_codegen.nodes import is_schema, ref_name
from tests.codegen.helpers import Schema
from tests.futures.parts import ODD_MEMBERS, message, new_member, new_name, new_object, new_type
from tests.futures.plan import Edit, NoPlaceError, Plan, is_message, member_of, nodes, objects

__all__ = ["ADDITIONS", "EDITS"]


# Members


def add_optional_member(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    name, kind = new_member(plan, plan.defs[owner]), new_type(plan)
    plan.defs[owner]["properties"][name] = kind
    return f"{owner} has a new optional member {name}: {_shown(kind)}"


def add_required_member(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    name, kind = new_member(plan, plan.defs[owner]), new_type(plan)
    plan.defs[owner]["properties"][name] = kind
    _require(plan.defs[owner], name)
    return f"{owner} requires a new member {name}: {_shown(kind)}"


def remove_member(plan: Plan) -> str:
    owner, name = plan.pick(plan.members())
    del plan.defs[owner]["properties"][name]
    _relax(plan.defs[owner], name)
    return f"{owner} no longer has {name}"


def rename_member(plan: Plan) -> str:
    owner, name = plan.pick(plan.members())
    new = new_member(plan, plan.defs[owner])
    _rename_member(plan.defs[owner], name, new)
    return f"{owner}.{name} is called {new}"


def rename_member_everywhere(plan: Plan) -> str:
    _, name = plan.pick(plan.members())
    new = plan.pick([f"{name}Value", f"the{name[:1].upper()}{name[1:]}"])
    for owner in plan.records():
        if name in plan.defs[owner]["properties"]:
            _rename_member(plan.defs[owner], name, new)
    return f"each member {name} is called {new}"


def require_member(plan: Plan) -> str:
    owner, name = plan.pick(plan.members(required=False))
    _require(plan.defs[owner], name)
    return f"{owner} requires {name}"


def relax_member(plan: Plan) -> str:
    owner, name = plan.pick(plan.members(required=True))
    _relax(plan.defs[owner], name)
    return f"{owner}.{name} is optional"


def relax_member_everywhere(plan: Plan) -> str:
    _, name = plan.pick(plan.members(required=True))
    for owner in plan.records():
        _relax(plan.defs[owner], name)
    return f"each member {name} is optional"


def move_member(plan: Plan) -> str:
    owner, name = plan.pick(plan.members())
    other = plan.pick([each for each in plan.records() if name not in plan.defs[each]["properties"]])
    plan.defs[other]["properties"][name] = plan.defs[owner]["properties"].pop(name)
    if name in plan.defs[owner].get("required", []) and plan.random.random() < 0.5:
        _require(plan.defs[other], name)
    _relax(plan.defs[owner], name)
    return f"{name} moves from {owner} to {other}"


def gather_members(plan: Plan) -> str:
    owner = plan.pick([name for name in plan.records() if len(plan.defs[name]["properties"]) > 2])
    node = plan.defs[owner]
    moved = [name for known, name in plan.members() if known == owner][:2]
    if not moved:
        raise NoPlaceError
    name = new_member(plan, node)
    node["properties"][name] = {"type": "object", "properties": {each: node["properties"].pop(each) for each in moved}}
    for each in moved:
        _relax(node, each)
    return f"{', '.join(moved)} of {owner} move into its new member {name}"


def change_type(plan: Plan) -> str:
    owner, name = plan.pick(plan.members())
    kind = new_type(plan)
    plan.defs[owner]["properties"][name] = kind
    return f"{owner}.{name} is {_shown(kind)}"


def widen_type(plan: Plan) -> str:
    owner, name = plan.pick(plan.members())
    node = member_of(plan, owner, name)
    kind = plan.pick([new_type(plan, 0), {"type": "null"}, {"type": "array", "items": copy.deepcopy(node)}])
    plan.defs[owner]["properties"][name] = {"anyOf": [node, kind]}
    return f"{owner}.{name} may also be {_shown(kind)}"


def name_a_constant_otherwise(plan: Plan) -> str:
    places = [
        (owner, name)
        for owner, node in plan.defs.items()
        for name, child in node.get("properties", {}).items()
        if isinstance(child.get("const"), str) and name != "jsonrpc"
    ]
    owner, name = plan.pick(places)
    child = plan.defs[owner]["properties"][name]
    child["const"] = f"{child['const']}/v2"
    return f"{owner}.{name} is {child['const']}"


def add_odd_member(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    node = plan.defs[owner]
    name = plan.pick([each for each in ODD_MEMBERS if each not in node["properties"]])
    node["properties"][name] = plan.pick([{"type": "string"}, {"type": "boolean"}, new_type(plan)])
    if plan.random.random() < 0.3:
        _require(node, name)
    return f"{owner} has a new member {name}"


def add_member_with_the_attribute_of_another(plan: Plan) -> str:
    owner, name = plan.pick([place for place in plan.members() if re.search("[a-z][A-Z]", place[1])])
    other = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    plan.defs[owner]["properties"][other] = {"type": "string"}
    return f"{owner} has {other} beside {name}"


# Objects


_CLOSED: list[Any] = [False, {"not": {}}]
_OPEN: list[Any] = [True, {}]


def close_object(plan: Plan) -> str:
    name = plan.pick(plan.records())
    plan.defs[name]["additionalProperties"] = plan.pick(_CLOSED)
    return f"{name} is closed"


def open_object(plan: Plan) -> str:
    name = plan.pick(plan.records())
    plan.defs[name]["additionalProperties"] = plan.pick(_OPEN)
    return f"{name} is open"


def open_result(plan: Plan) -> str:
    name = plan.pick([name for name in plan.records() if name.endswith("Result")])
    plan.defs[name]["additionalProperties"] = {}
    return f"{name} is open"


def type_other_members(plan: Plan) -> str:
    name = plan.pick(plan.records())
    kind = plan.pick([{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}])
    plan.defs[name]["additionalProperties"] = kind
    return f"other members of {name} are {_shown(kind)}"


def replace_object_by_any(plan: Plan) -> str:
    name = plan.pick([each for each in plan.records() if not each.endswith(("Params", "Result", "Request"))])
    plan.defs[name] = {"type": "object", "additionalProperties": {}}
    return f"{name} is any object"


def type_any_object(plan: Plan) -> str:
    places = [node for node in nodes(plan.defs) if _is_any_object(node)]
    node = plan.pick(places)
    made = new_object(plan)
    node.clear()
    node.update(made)
    return f"an object that was free has members: {_shown(made)}"


def inherit(plan: Plan) -> str:
    name = plan.pick([each for each in plan.records() if "allOf" not in plan.defs[each]])
    base = plan.pick([each for each in plan.records() if "allOf" not in plan.defs[each] and each != name])
    shared = plan.defs[name]["properties"].keys() & plan.defs[base]["properties"].keys() - {"_meta"}
    if shared:
        raise NoPlaceError
    plan.defs[name] = {"allOf": [plan.ref(base), plan.defs[name]]}
    return f"{name} derives from {base}"


def split_off_a_base(plan: Plan) -> str:
    owner = plan.pick([name for name in plan.records() if len(plan.defs[name]["properties"]) > 2])
    node, base = plan.defs[owner], plan.fresh(f"{owner}Base")
    moved = [name for known, name in plan.members() if known == owner][:2]
    if not moved:
        raise NoPlaceError
    made: Schema = {"type": "object", "properties": {name: node["properties"].pop(name) for name in moved}}
    made["required"] = [name for name in moved if name in node.get("required", [])]
    node["required"] = [name for name in node.get("required", []) if name not in moved]
    plan.defs[base] = made
    plan.defs[owner] = {"allOf": [plan.ref(base), node]}
    return f"{base} has {', '.join(moved)} of {owner}, which derives from it"


# Definitions


def add_definition(plan: Plan) -> str:
    name, owner = new_name(plan), plan.pick(plan.records())
    member = new_member(plan, plan.defs[owner])
    plan.defs[name] = new_object(plan)
    plan.defs[owner]["properties"][member] = plan.ref(name)
    return f"{owner} has a new member {member}: the new {name}"


def add_closed_definition(plan: Plan) -> str:
    line = add_definition(plan)
    next(reversed(plan.defs.values()))["additionalProperties"] = False
    return f"{line}, which is closed"


def remove_definition(plan: Plan) -> str:
    name = plan.pick([each for each in plan.records() if not each.endswith(("Params", "Result"))])
    plan.remove(name)
    return f"{name} is no more"


def rename_definition(plan: Plan) -> str:
    name = plan.pick([each for each, node in plan.defs.items() if not is_message(node) and each not in _FIXED])
    new = plan.fresh(plan.pick([f"{name}V2", f"New{name}", f"Mcp{name}"]))
    plan.rename(name, new)
    return f"{name} is called {new}"


def rename_definition_by_its_words(plan: Plan) -> str:
    words = {"Tool": "Function", "Prompt": "Template", "Content": "Part", "Resource": "Asset", "Icon": "Image"}
    old = plan.pick([*words])
    new = words[old]
    found = [name for name, node in plan.defs.items() if old in name and not is_message(node)]
    for name in found:
        plan.rename(name, plan.fresh(name.replace(old, new)))
    return f"{len(found)} definitions with {old} in their name have {new} there"


def name_an_inline_type(plan: Plan) -> str:
    places = [
        (owner, name)
        for owner in plan.records()
        for name, child in plan.defs[owner]["properties"].items()
        if child.get("properties") or "enum" in child
    ]
    owner, name = plan.pick(places)
    made = plan.fresh(plan.pick([f"{owner}{name[:1].upper()}{name[1:]}", new_name(plan)]))
    plan.defs[made] = plan.defs[owner]["properties"][name]
    plan.defs[owner]["properties"][name] = plan.ref(made)
    return f"the type of {owner}.{name} is called {made}"


def write_a_definition_inline(plan: Plan) -> str:
    places = [
        (owner, name)
        for owner, name in plan.members()
        if "$ref" in member_of(plan, owner, name) and plan.target(member_of(plan, owner, name)).get("properties")
    ]
    owner, name = plan.pick(places)
    node = member_of(plan, owner, name)
    target = ref_name(node["$ref"])
    plan.defs[owner]["properties"][name] = copy.deepcopy(plan.defs[target])
    return f"{target} is written inline in {owner}.{name}"


def add_definition_with_the_name_of_an_inline_type(plan: Plan) -> str:
    places = [
        (owner, name)
        for owner in plan.records()
        for name, child in plan.defs[owner]["properties"].items()
        if child.get("properties")
    ]
    owner, name = plan.pick(places)
    made = f"{owner}{name[:1].upper()}{name[1:]}"
    if made in plan.defs:
        raise NoPlaceError
    plan.defs[made] = new_object(plan)
    return f"the new {made} is called like the inline type of {owner}.{name}"


def add_odd_definition(plan: Plan) -> str:
    names = [
        "Any", "Literal", "Field", "Struct", "Model", "Meta", "Final", "TypeAdapter", "Union", "Optional", "Exception",
        "DecodeError", "ClassVar", "Record<string,string>", "foo_bar", "lowerCase", "Acme.Thing", "Thing-Two",
        "3DModel", "Handler", "ServerStub", "Methods", "NULL", "Uri", "None", "True", "Enum", "List", "Dict",
        "Object", "Message",
    ]  # fmt: skip
    name, owner = plan.pick([name for name in names if name not in plan.defs]), plan.pick(plan.records())
    member = new_member(plan, plan.defs[owner])
    plan.defs[name] = new_object(plan)
    plan.defs[owner]["properties"][member] = plan.ref(name)
    return f"{owner}.{member} has a new definition called {name}"


# Unions and enumerations


def add_union_member(plan: Plan) -> str:
    union = plan.pick([name for name in plan.unions() if _tag_of(plan, name) is not None])
    tag = _tag_of(plan, union)
    assert tag is not None
    name = new_name(plan)
    plan.defs[name] = new_object(plan, constants={tag: name.lower()})
    _options(plan.defs[union]).append(plan.ref(name))
    return f"{union} has a new member {name}"


def add_member_without_tag(plan: Plan) -> str:
    union = plan.pick([name for name in plan.unions() if not name.startswith(("Client", "Server", "JSONRPC"))])
    name = new_name(plan)
    plan.defs[name] = new_object(plan)
    _options(plan.defs[union]).append(plan.ref(name))
    return f"{union} has a new member {name} without a tag"


def remove_union_member(plan: Plan) -> str:
    union = plan.pick([each for each in plan.unions() if not each.startswith(("Client", "Server", "JSONRPC"))])
    options = _options(plan.defs[union])
    gone = options.pop(plan.random.randrange(len(options)))
    return f"{union} no longer has {_shown(gone)}"


def add_tagged_union(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    member, tag = new_member(plan, plan.defs[owner]), plan.pick(["kind", "type", "variant"])
    names = [plan.fresh("CircleShape"), plan.fresh("SquareShape")]
    for name in names:
        plan.defs[name] = new_object(plan, constants={tag: name.lower()})
    keyword = plan.pick(["anyOf", "oneOf"])
    shape = plan.fresh("Shape")
    plan.defs[shape] = {keyword: [plan.ref(name) for name in names]}
    plan.defs[owner]["properties"][member] = plan.ref(shape)
    return f"{owner}.{member} is a new union of {' and '.join(names)}, told apart by {tag}"


def add_narrowing_union(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    member, base = new_member(plan, plan.defs[owner]), plan.fresh("Notice")
    plan.defs[base] = {**new_object(plan), "required": []}
    plan.defs[base]["properties"]["level"] = {"type": "string"}
    names = [plan.fresh("MildNotice"), plan.fresh("GraveNotice")]
    for name in names:
        own: Schema = {"properties": {"level": {"const": name.lower()}, name.lower(): {"type": "string"}}}
        plan.defs[name] = {"allOf": [plan.ref(base), {"type": "object", **own, "required": ["level"]}]}
    plan.defs[owner]["properties"][member] = {"oneOf": [plan.ref(name) for name in names]}
    return f"{owner}.{member} is one of two definitions that narrow the level of {base}"


def join_unions(plan: Plan) -> str:
    names = [each for each in plan.unions() if not each.startswith(("Client", "Server", "JSONRPC", "Input"))]
    wide, narrow = plan.pick(names), plan.pick(names)
    if wide == narrow or _reaches(plan, narrow, wide):
        raise NoPlaceError
    known = _options(plan.defs[wide])
    known += [option for option in _options(plan.defs[narrow]) if option not in known]
    return f"{wide} has the members of {narrow}"


def nest_unions(plan: Plan) -> str:
    names = [each for each in plan.unions() if not each.startswith(("Client", "Server", "JSONRPC", "Input"))]
    wide, narrow = plan.pick(names), plan.pick(names)
    if wide == narrow or _reaches(plan, narrow, wide):
        raise NoPlaceError
    options = _options(plan.defs[wide])
    if plan.ref(narrow) in options:
        raise NoPlaceError
    options.append(plan.ref(narrow))
    return f"{wide} has a member {narrow}, a union"


def split_union(plan: Plan) -> str:
    union = plan.pick([name for name in plan.unions() if len(_options(plan.defs[name])) > 2])
    options = _options(plan.defs[union])
    made = plan.fresh(f"Basic{union}")
    plan.defs[made] = {"anyOf": options[:2]}
    options[:2] = [plan.ref(made)]
    return f"two members of {union} are in a union {made}"


def add_enum_value(plan: Plan) -> str:
    node = plan.pick([node for node in nodes(plan.defs) if _is_enum(node)])
    node["enum"].append("unheard-of")
    return f"{_shown(node)} has a new value"


def remove_enum_value(plan: Plan) -> str:
    node = plan.pick([node for node in nodes(plan.defs) if _is_enum(node) and len(node["enum"]) > 1])
    return f"{_shown(node)} no longer has {node['enum'].pop()}"


def open_enum(plan: Plan) -> str:
    node = plan.pick([node for node in nodes(plan.defs) if _is_enum(node)])
    shown = _shown(node)
    del node["enum"]
    return f"{shown} is any text"


# Keywords


def add_bounds(plan: Plan) -> str:
    bounds: dict[str, Schema] = {
        "string": {"minLength": 1, "maxLength": 1000}, "integer": {"minimum": 0}, "number": {"exclusiveMinimum": 0},
        "array": {"minItems": 1, "maxItems": 50},
    }  # fmt: skip
    owner, name = plan.pick([place for place in plan.members() if str(member_of(plan, *place).get("type")) in bounds])
    node = member_of(plan, owner, name)
    if "enum" in node:
        raise NoPlaceError
    node.update(bounds[node["type"]])
    return f"{owner}.{name} has bounds"


KEYWORDS: dict[str, list[Schema]] = {
    "string": [{"pattern": "^[a-z]+$"}, {"pattern": "^\\d{4}-\\d{2}$"}, {"contentEncoding": "base64"},
               {"contentMediaType": "text/html"}, {"format": "hostname"}, {"x-hint": "secret"}],
    "integer": [{"multipleOf": 2}, {"multipleOf": 5, "minimum": 0}, {"format": "int64"}],
    "number": [{"multipleOf": 0.5}, {"enum": [0.5, 1.5]}, {"enum": [1, 2.5]}],
    "boolean": [{"const": True}, {"default": False}, {"enum": [True]}],
    "array": [{"uniqueItems": True}, {"contains": {"type": "string"}}, {"minContains": 1},
              {"unevaluatedItems": False}],
    "object": [{"minProperties": 1}, {"maxProperties": 8}, {"unevaluatedProperties": False},
               {"dependentRequired": {}}, {"propertyNames": {"pattern": "^[a-z]"}}, {"patternProperties": {"^x-": {}}},
               {"$anchor": "here"}, {"if": {}, "then": {}}],
}  # fmt: skip
"""Keywords that a schema of the protocol has not had, by the type that they are about."""


def add_keyword(plan: Plan) -> str:
    places = [
        (owner, name)
        for owner, name in plan.members()
        if str((node := member_of(plan, owner, name)).get("type")) in KEYWORDS and "enum" not in node
    ]
    owner, name = plan.pick(places)
    node = member_of(plan, owner, name)
    added = plan.pick(KEYWORDS[node["type"]])
    node.update(copy.deepcopy(added))
    return f"{owner}.{name} has {_shown(added)}"


def limit_an_object(plan: Plan) -> str:
    name = plan.pick(plan.records())
    added = plan.pick(KEYWORDS["object"])
    plan.defs[name].update(copy.deepcopy(added))
    return f"{name} has {_shown(added)}"


def add_tuple(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    name = new_member(plan, plan.defs[owner])
    items = [{"type": "string"}, {"type": "integer"}]
    is_old = plan.key == "definitions"
    kind: Schema = {"type": "array", **({"items": items} if is_old else {"prefixItems": items, "items": False})}
    plan.defs[owner]["properties"][name] = {**kind, "minItems": 2}
    return f"{owner}.{name} is a pair"


def refer_with_more(plan: Plan) -> str:
    places = [place for place in plan.members() if "$ref" in member_of(plan, *place)]
    owner, name = plan.pick(places)
    notes: list[Schema] = [{"description": "More."}, {"default": {}}, {"deprecated": True}, {"required": ["name"]}]
    added = plan.pick(notes)
    member_of(plan, owner, name).update(added)
    return f"{owner}.{name} has {_shown(added)} beside its reference"


def add_recursion(plan: Plan) -> str:
    owner = plan.pick(plan.records())
    member = plan.pick(
        [name for name in ("children", "parent", "nested") if name not in plan.defs[owner]["properties"]]
    )
    own = plan.ref(owner)
    kind = plan.pick([{"type": "array", "items": own}, {"type": "object", "additionalProperties": own}, own])
    plan.defs[owner]["properties"][member] = kind
    return f"{owner} has {member}: {_shown(kind)}"


def add_recursion_of_two(plan: Plan) -> str:
    owner, leaf, branch = plan.pick(plan.records()), plan.fresh("Leaf"), plan.fresh("Branch")
    tree = plan.fresh("Tree")
    plan.defs[leaf] = new_object(plan, 0, constants={"kind": "leaf"})
    plan.defs[branch] = new_object(plan, 0, constants={"kind": "branch"})
    plan.defs[branch]["properties"]["children"] = {"type": "array", "items": plan.ref(tree)}
    plan.defs[tree] = {"anyOf": [plan.ref(leaf), plan.ref(branch)]}
    plan.defs[owner]["properties"]["tree"] = plan.ref(tree)
    return f"{owner}.tree is a tree"


def annotate(plan: Plan) -> str:
    notes: list[Schema] = [
        {"description": "It is new. It says `what` \"it\" does, with a \\ in it."}, {"title": "Title"},
        {"deprecated": True}, {"$comment": "why"}, {"examples": [1, "a", {}]}, {"default": None}, {"readOnly": True},
        {"x-internal": True}, {"description": ""},
    ]  # fmt: skip
    note = plan.pick(notes)
    places = [*plan.defs.values(), *(member_of(plan, *place) for place in plan.members())]
    plan.pick(places).update(note)
    return f"something has the note {_shown(note)}"


# Methods and features


def add_request(plan: Plan) -> str:
    name, group = new_name(plan), plan.pick(["tools", "resources", "events", "agents", "acme/deep"])
    method = f"{group}/{name.lower()}"
    params, result = plan.fresh(f"{name}RequestParams"), plan.fresh(f"{name}Result")
    plan.defs[params] = new_object(plan)
    if "RequestMetaObject" in plan.defs:
        plan.defs[params]["properties"]["_meta"] = plan.ref("RequestMetaObject")
        _require(plan.defs[params], "_meta")
    plan.defs[f"{name}Request"] = message(plan, method, params, is_request=True)
    plan.defs[result] = new_object(plan)
    if "ResultType" in plan.defs:
        plan.defs[result]["properties"]["resultType"] = plan.ref("ResultType")
        _require(plan.defs[result], "resultType")
    sender = "ClientRequest" if "ServerRequest" not in plan.defs or plan.random.random() < 0.7 else "ServerRequest"
    _options(plan.defs[sender]).append(plan.ref(f"{name}Request"))
    if "ListToolsResultResponse" in plan.defs:
        response = copy.deepcopy(plan.defs["ListToolsResultResponse"])
        response["properties"]["result"] = plan.ref(result)
        plan.defs[f"{name}ResultResponse"] = response
    return f"{sender} has the new {method}"


def add_notification(plan: Plan) -> str:
    name = new_name(plan)
    params = f"{name}NotificationParams"
    plan.defs[params] = new_object(plan)
    method = f"notifications/{plan.pick(['tools', 'events', 'agents'])}/{plan.pick(['list_changed', name.lower()])}"
    plan.defs[f"{name}Notification"] = message(plan, method, params, is_request=False)
    union = plan.defs["ServerNotification"]
    _options(union).append(plan.ref(f"{name}Notification"))
    return f"servers send the new {method}"


def remove_method(plan: Plan) -> str:
    names = [
        name for name, node in plan.defs.items()
        if name.endswith(("Request", "Notification")) and "const" in node.get("properties", {}).get("method", {})
    ]  # fmt: skip
    name = plan.pick([each for each in names if each != "ClientNotification"])
    stem = name.removesuffix("Request")
    plan.remove(name, *(each for each in (f"{stem}Result", f"{stem}ResultResponse") if each in plan.defs))
    return f"{name} is no more"


def remove_feature(plan: Plan) -> str:
    feature = plan.pick(["Root", "Sampling|CreateMessage", "Logging|SetLevel", "Complet", "Elicit", "Prompt", "Task"])
    found = [name for name in plan.defs if re.search(feature, name) and name not in _FIXED]
    if not found:
        raise NoPlaceError
    plan.remove(*found)
    for node in plan.defs.values():  # the capability is called like the feature
        for part in objects(node):
            for name in [each for each in part["properties"] if re.match(feature, each, re.IGNORECASE)]:
                if not part["properties"][name].keys() & {"const"}:
                    del part["properties"][name]
                    _relax(part, name)
    return f"{len(found)} definitions of {feature} are no more"


def add_feature(plan: Plan) -> str:
    lines = [add_request(plan), add_notification(plan)]
    plan.defs["ServerCapabilities"]["properties"]["events"] = {
        "type": "object", "properties": {"listChanged": {"type": "boolean"}},
    }  # fmt: skip
    return f"a new capability events; {'; '.join(lines)}"


def relax_params(plan: Plan) -> str:
    names = [name for name, node in plan.defs.items() if "params" in node.get("required", [])]
    name = plan.pick(names)
    _relax(plan.defs[name], "params")
    return f"{name} may have no params"


def replace_result(plan: Plan) -> str:
    name = plan.pick([each for each in plan.records() if each.endswith("Result") and each not in _FIXED])
    kept = {key: child for key, child in plan.defs[name]["properties"].items() if key in ("_meta", "resultType")}
    made = new_object(plan)
    made["properties"] = {**kept, **made["properties"]}
    for key in kept.keys() & {*plan.defs[name].get("required", [])}:
        _require(made, key)
    plan.defs[name] = made
    return f"{name} has other members"


def add_error(plan: Plan) -> str:
    like = plan.pick([name for name in plan.defs if name.endswith("Error") and name != "Error"])
    text = re.sub(r"-32\d{3}", "-32055", json.dumps(plan.defs[like]))
    name = plan.fresh("QuotaExceededError")
    plan.defs[name] = json.loads(text)
    return f"{name} is a new error, like {like}"


def spell_as_the_other_draft(plan: Plan) -> str:
    old = plan.key
    new = "definitions" if old == "$defs" else "$defs"
    text = json.dumps(plan.schema).replace(f'"#/{old}/', f'"#/{new}/')
    changed = json.loads(text)
    draft = (
        "https://json-schema.org/draft/2020-12/schema" if new == "$defs" else "http://json-schema.org/draft-07/schema#"
    )
    plan.schema.clear()
    plan.schema.update({"$schema": draft, new: changed[old]})
    return f"the definitions are in {new}"


_FIXED = frozenset({
    "Result", "EmptyResult", "RequestId", "ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification",
    "ClientResult", "ServerResult", "InputRequest", "InputResponse",
})  # fmt: skip
"""Definitions by whose names the compiler knows a schema of the protocol."""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 90 else f"{text[:87]}…"


def _require(node: Schema, name: str) -> None:
    if name not in node.get("required", []):
        node["required"] = sorted([*node.get("required", []), name])


def _relax(node: Schema, name: str) -> None:
    if name in node.get("required", []):
        node["required"] = [each for each in node["required"] if each != name]


def _rename_member(node: Schema, old: str, new: str) -> None:
    node["properties"] = {new if key == old else key: child for key, child in node["properties"].items()}
    if "required" in node:
        node["required"] = [new if key == old else key for key in node["required"]]


def _is_any_object(node: Schema) -> bool:
    return node.get("type") == "object" and node.get("additionalProperties") == {} and "properties" not in node


def _is_enum(node: Schema) -> bool:
    return isinstance(node.get("enum"), list) and all(isinstance(value, str) for value in node["enum"])


def _options(node: Schema) -> list[Schema]:
    if "anyOf" not in node and "oneOf" not in node:
        raise NoPlaceError
    found: list[Schema] = node["anyOf"] if "anyOf" in node else node["oneOf"]
    return found


def _tag_of(plan: Plan, union: str) -> str | None:
    """Return the constant that all members of a union have, if there is one."""
    members = [plan.target(option).get("properties", {}) for option in _options(plan.defs[union])]
    constants = [{name for name, node in each.items() if is_schema(node) and "const" in node} for each in members]
    found = set[str].intersection(*constants) - {"jsonrpc", "method"}
    return min(found, default=None)


def _reaches(plan: Plan, start: str, target: str) -> bool:
    options = [ref_name(option["$ref"]) for option in _options(plan.defs[start]) if "$ref" in option]
    return target in options or any(
        _reaches(plan, each, target) for each in options if plan.defs.get(each, {}).keys() & {"anyOf", "oneOf"}
    )


EDITS: tuple[Edit, ...] = (
    add_optional_member, add_required_member, remove_member, rename_member, rename_member_everywhere, require_member,
    relax_member, relax_member_everywhere, move_member, gather_members, change_type, widen_type,
    name_a_constant_otherwise, add_odd_member, add_member_with_the_attribute_of_another, close_object, open_object,
    open_result, type_other_members, replace_object_by_any, type_any_object, inherit, split_off_a_base, add_definition,
    add_closed_definition, remove_definition, rename_definition, rename_definition_by_its_words, name_an_inline_type,
    write_a_definition_inline, add_definition_with_the_name_of_an_inline_type, add_odd_definition, add_union_member,
    add_member_without_tag, remove_union_member, add_tagged_union, add_narrowing_union, join_unions, nest_unions,
    split_union, add_enum_value, remove_enum_value, open_enum, add_bounds, add_keyword, limit_an_object, add_tuple,
    refer_with_more, add_recursion, add_recursion_of_two, annotate, add_request, add_notification, remove_method,
    remove_feature, add_feature, relax_params, replace_result, add_error, spell_as_the_other_draft,
)  # fmt: skip

ADDITIONS: tuple[Edit, ...] = (
    add_optional_member, add_odd_member, add_member_with_the_attribute_of_another, open_result, open_object,
    add_definition, add_closed_definition, add_definition_with_the_name_of_an_inline_type, add_odd_definition,
    add_union_member, add_member_without_tag, add_tagged_union, add_narrowing_union, split_union, add_enum_value,
    add_tuple, add_recursion, add_recursion_of_two, annotate, add_request, add_notification, add_feature, add_error,
    name_an_inline_type, inherit, spell_as_the_other_draft,
)  # fmt: skip
"""The edits that take nothing away. Others may need a change to the runtime, which the type checkers name."""
