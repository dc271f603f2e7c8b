"""The methods that convert values of one revision to another, as source text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from mcpspec_codegen.conversions.revision import (
    ConversionFacts,
    RecordMember,
    Revision,
    adds_checks,
    describe,
    fits,
    members_of_record,
    without_facts,
)
from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import Schema, type_names

__all__ = ["Pair", "quote"]


class Pair:
    """The methods of one direction between two revisions."""

    def __init__(
        self,
        source: Revision,
        target: Revision,
        facts: ConversionFacts,
        newer: Pair | None = None,
        *,
        is_upgrade: bool,
        params: frozenset[str] = frozenset(),
        roots: Iterable[str] = (),
    ) -> None:
        self.roots = ("Implementation", "ServerCapabilities", *roots)
        """Types to convert beside those of methods."""
        self.copied: set[str] = set()
        """Types of which the newer revision's own upgrade makes copies, when values are downgraded."""
        self.params = params
        """The types of parameters in any revision. Their methods take a `_meta` in place of their own."""
        self.newer = newer
        """The pair of the next newer revision, whose methods are inherited."""
        self.source = source
        self.target = target
        self.facts = facts
        self.is_upgrade = is_upgrade
        self.partial: set[str] = set()
        """The types whose converted values may be invalid, or contain values of the source's types."""
        self.gaps: dict[str, str] = {}
        """What has no rule, with the reason."""
        self._texts: dict[str, str] = {}
        self._uses: dict[str, set[str]] = {}
        self._pending: list[tuple[str, str, str]] = []
        self._same: dict[tuple[str, str], bool] = {}
        self._current = ""
        """The type whose method is being written."""
        self._place = ""
        """The member whose code is being written."""

    @cached_property
    def methods(self) -> dict[str, str]:
        """The source text of each method, by the name of the type that it takes."""
        for source, target, name in self._roots():
            self._need(source, target, name)
        for name in self._inherited():
            self._need(name, self._target_name(name) or name, name)
        for name in self.source.definitions:
            if self._record_rule(name) is not None:
                self._need_rule(name)
        while self._pending:
            source, target, name = self._pending.pop(0)
            self._current = name
            self._texts[name] = self._method(source, target, name)
        self._spread_partial()
        for name in self._inherited():
            if name not in self._texts and name in self.source.definitions:
                self._texts[name] = self._leave(name)
        inherited = {} if self.newer is None else self.newer.methods
        return dict(sorted({**inherited, **self._texts}.items()))

    def _inherited(self) -> list[str]:
        """List the inherited methods that are called like a type."""
        return [] if self.newer is None else [name for name in self.newer.methods if "_" not in name]

    def _leave(self, name: str) -> str:
        """Return a method that takes the place of an inherited one: its type is equal, or missing."""
        if not self.is_upgrade and self.target.is_kind(name, "record"):
            self.copied.add(name)
            copied = f"self.copies.{name}(value, {self._lost(name)})"
            return self._function(name, f"return {copied} if self.is_complete else value")
        if name in self.target.definitions:
            self.partial.add(name)
            return self._function(name, "return value")
        return self._drop(name)

    def _spread_partial(self) -> None:
        while more := {name for name, used in self._uses.items() if not self.partial.isdisjoint(used)} - self.partial:
            self.partial |= more

    # What to convert

    def _roots(self) -> Iterator[tuple[str, str, str]]:
        older, newer = (self.source, self.target) if self.is_upgrade else (self.target, self.source)
        for name, method in older.methods.items():
            known = newer.methods.get(name)
            if known is None:
                continue
            if method.params in older.definitions and known.params in newer.definitions:
                yield from self._params(method, known)
            for result in self._results(older, method):
                if result in self._results(newer, known) or older is newer:
                    yield *self._sides(result, result), result
        for name in self.roots:
            yield name, name, name

    def _params(self, older: MethodDefinition, newer: MethodDefinition) -> Iterator[tuple[str, str, str]]:
        mine, theirs = self.options_of(older.params, newer.params)
        if len(mine) == len(theirs) == 1:
            known = self.source if not self.is_upgrade else self.target
            is_own = mine == theirs or mine[0] not in known.definitions
            name = mine[0] if is_own else f"{mine[0]}_{theirs[0]}"
            yield *self._sides(mine[0], theirs[0]), name
            return
        for name in mine:
            if name in theirs:
                yield name, name, name

    def _sides(self, older: str, newer: str) -> tuple[str, str]:
        return (older, newer) if self.is_upgrade else (newer, older)

    def options_of(self, older: str | None, newer: str | None) -> tuple[list[str], list[str]]:
        """Return the object types of two definitions, of the older revision and of the newer one."""
        revisions = (self.source, self.target) if self.is_upgrade else (self.target, self.source)
        sides = zip(revisions, (older, newer), strict=True)
        found = [
            [name for option in revision.options({"$ref": f"#/$defs/{side}"}) if (name := revision.object_name(option))]
            for revision, side in sides
        ]
        return found[0], found[1]

    def _results(self, revision: Revision, method: MethodDefinition) -> list[str]:
        if method.result is None:
            return []
        names = [revision.object_name(option) for option in revision.options({"$ref": f"#/$defs/{method.result}"})]
        return [name for name in names if name is not None]

    def _takes_meta(self, name: str) -> bool:
        return name in self.params or "_" in name

    def _need(self, source: str, target: str, name: str) -> None:
        """Ask for the method that converts a record."""
        if name in self._texts:
            return
        if self._record_rule(name) is not None:
            self._need_rule(name)
            return
        if not self._is_object(source, target):
            return
        if not self.is_upgrade and not self._takes_meta(name) and self._is_same_record(source, target):
            return
        self._texts[name] = ""
        self._pending.append((source, target, name))

    def _is_object(self, source: str, target: str) -> bool:
        """Return whether two types are objects with members to convert one by one: open ones are copied as a whole."""
        pair = (self.source.is_kind(source, "record"), self.target.is_kind(target, "record"))
        kinds = ("record", "open")
        return any(pair) and self.source.is_kind(source, *kinds) and self.target.is_kind(target, *kinds)

    def _target_name(self, name: str) -> str | None:
        """Return the type of the target that a type becomes."""
        renamed = self.facts["renamed_types"]
        names = [name, renamed.get(name), *(newer for newer, older in renamed.items() if older == name)]
        return next((each for each in names if each is not None and each in self.target.definitions), None)

    # Equal types, which are left as they are when a value is downgraded

    def _is_same_record(self, source: str, target: str) -> bool:
        if source != target or any(key.startswith(f"{source}.") for key in self.facts["renamed_members"]):
            return False
        if (source, target) not in self._same:
            self._same[source, target] = True  # of a type that contains itself
            mine, theirs = self.source.definitions[source], self.target.definitions[target]
            mine_required, their_required = set(mine.get("required", ())), set(theirs.get("required", ()))
            self._same[source, target] = (
                mine["x"]["kind"] == theirs["x"]["kind"]
                and mine["x"].get("tag") == theirs["x"].get("tag")
                and mine["properties"].keys() == theirs["properties"].keys()
                and their_required <= mine_required
                and all(self._is_same(node, theirs["properties"][wire]) for wire, node in mine["properties"].items())
            )
        return self._same[source, target]

    def _is_same(self, source: Schema, target: Schema) -> bool:
        name, other = self.source.recursive_name(source), self.target.recursive_name(target)
        if name is None or other is None:
            return self._has_same_options(source, target)
        if (name, other) not in self._same:
            self._same[name, other] = True  # as above
            self._same[name, other] = self._has_same_options(source, target)
        return self._same[name, other]

    def _has_same_options(self, source: Schema, target: Schema) -> bool:
        mine, theirs = self.source.options(source), self.target.options(target)
        if len(mine) != len(theirs):
            return False
        return all(self._is_same_option(*pair) for pair in zip(mine, theirs, strict=True))

    def _is_same_option(self, source: Schema, target: Schema) -> bool:
        mine, theirs = self.source.object_name(source), self.target.object_name(target)
        if mine is not None and theirs is not None:
            if self.source.is_kind(mine, "record") and self.target.is_kind(theirs, "record"):
                return self._is_same_record(mine, theirs)
            return False
        if mine is not None or theirs is not None:
            return False
        for key in ("items", "additionalProperties"):
            if isinstance(source.get(key), dict) and isinstance(target.get(key), dict):
                rest = [{k: v for k, v in node.items() if k not in (key, "x")} for node in (source, target)]
                return rest[0] == rest[1] and self._is_same(source[key], target[key])
        return without_facts(source) == without_facts(target)

    def _differs_within(self, source: str, target: str) -> bool:
        """Return whether a member of two open objects, which are copied as a whole, is of another type in one."""
        theirs = self.target.definitions[target].get("properties", {})
        mine = self.source.definitions[source].get("properties", {})
        return any(not self._is_same(node, theirs[wire]) for wire, node in mine.items() if wire in theirs)

    # Code

    def _method(self, source: str, target: str, name: str) -> str:
        takes_meta = self._takes_meta(name)
        mine, theirs = members_of_record(self.source, source), members_of_record(self.target, target)
        lines: list[str] = []
        if adds_checks(self.source.definitions[source], self.target.definitions[target]):
            self._place = source
            self._mismatch(f"{self.target.version} has a check of its members, {self.source.version} does not")
        for n, member in mine.items():
            if not any(n == self._source_name(source, other) for other in theirs):
                lines += self._lose(source, member)
        values: list[str] = []
        for n, member in theirs.items():
            own = mine.get(self._source_name(source, n))
            code = self._value(source, target, own, member)
            if n == "meta" and takes_meta:
                code = f"meta if meta is not OWN else {code or 'self.absent'}"
            if code is not None:
                values.append(f"{n}={code},")
        if self.source.is_kind(source, "open"):
            lines.append("converters.lose_undeclared(value, lost)")
        made = f"return self.types.{target}({' '.join(values)})".replace(",)", ")")
        lines.append(made)
        if len(_ABSENT.findall("".join(lines))) > 1:  # a local variable is read faster
            lines = ["absent = self.absent", *(line.replace("self.absent", "absent") for line in lines)]
        return self._function(name, *lines)

    def _source_name(self, source: str, name: str) -> str:
        """Return the name in the source of a member of the target."""
        renamed = self.facts["renamed_members"]
        if self.is_upgrade:
            other = renamed.get(f"{source}.{name}", name)
        else:
            older = {older: key.partition(".")[2] for key, older in renamed.items() if key.startswith(f"{source}.")}
            other = older.get(name, name)
        return other if other in self.source.definitions[source]["x"]["names"].values() else name

    def _lose(self, source: str, member: RecordMember) -> list[str]:
        """Return the statement that reports a member without a place in the target."""
        if member.constant is not None or (not self.is_upgrade and member.is_required and member.default is not None):
            return []  # what clients of older revisions assume
        name = f"{source}.{member.name}"
        if self.is_upgrade and member.name != "meta":
            self._add_gap(name, f"{self.target.version} has no such member")
        if name in self.facts["decided"]:
            self.partial.add(self._current)
            return textwrap.wrap(f"# {name}: {self.facts['decided'][name]}", 100, subsequent_indent="# ")
        report = f'lost.append("{name}")'
        if member.is_required:
            return [report]
        test = "is not UNSET" if self.is_upgrade else "is not self.absent"
        implied = members_of_record(self.source, source, everyday=True)[member.name].default
        if not self.is_upgrade and implied is not None:
            test = f"not in (self.absent, {implied!r})"
        return [f"if value.{member.name} {test}:", f"    {report}"]

    def _add_gap(self, name: str, reason: str) -> None:
        self.gaps.setdefault(name, reason)

    def _value(self, source: str, target: str, mine: RecordMember | None, theirs: RecordMember) -> str | None:
        """Return the code for a member of the target; None to leave it out."""
        self._place = f"{source}.{theirs.name}"
        if (rule := self._member_rule(source, theirs.name)) is not None:
            return rule
        if mine is None:
            return self._missing(source, theirs)
        value = f"value.{mine.name}"
        made = self._expression(value, mine.node, theirs.node)
        if mine.is_required:
            return made
        filled = theirs.default if theirs.constant is None else theirs.constant
        if theirs.is_required and filled is None:
            self._mismatch(f"optional in {self.source.version}, required in {self.target.version}")
        if not self.is_upgrade and theirs.is_required and filled is not None:
            return f"{filled!r} if {value} is self.absent else {made}"
        if not self.is_upgrade:
            if made.startswith("self.as_object("):  # an empty object is converted, too
                return f"{value} if {value} is self.absent else {made}"
            return made if made == value else f"{value} and {made}"
        return self._optional(value, made, target, mine, theirs)

    def _tag_of(self, name: str) -> Any:
        """Return the value that identifies a type of the source in unions; None if nothing does."""
        return self.source.definitions[name]["x"].get("tag", (None, None))[1]

    def _missing(self, source: str, theirs: RecordMember) -> str | None:
        """Return the code for a member that the source lacks; None to leave it out."""
        if theirs.constant is not None and theirs.constant == self._tag_of(source):
            return repr(theirs.constant)  # of a type that may leave out what identifies it
        if not theirs.is_required:
            if not self.is_upgrade and theirs.name != "meta":
                self._add_gap(self._place, f"{self.source.version} has no such member")
            return None
        if theirs.constant is not None or theirs.default is not None:
            return repr(theirs.default if theirs.constant is None else theirs.constant)
        if theirs.name != "meta":
            self._add_gap(self._place, "required, but without a source")
        self.partial.add(self._current)
        return "self.absent"

    def _optional(self, value: str, made: str, target: str, mine: RecordMember, theirs: RecordMember) -> str:
        """Return the code for an upgraded member that may be absent, for everyday and for exact types."""
        default = theirs.constant or members_of_record(self.target, target, everyday=True)[theirs.name].default
        if default is not None:
            if not theirs.is_required:
                return f"{made} if {value} is not UNSET or self.absent is UNSET else {default!r}"
            return f"{default!r} if {value} is UNSET else {made}"
        if without_facts(mine.node) == {}:
            made = f"self.null if {value} is None else {value}"
        return f"self.absent if {value} is UNSET else {made}"

    def _expression(self, value: str, source: Schema, target: Schema) -> str:
        """Return the code that converts a value; the value itself if it is left as it is."""
        if (name := self.source.recursive_name(source)) is not None:
            return self._recursive(value, name, target)
        return self._resolved(value, source, target)

    def _recursive(self, value: str, name: str, target: Schema) -> str:
        """Return the code that converts a value of an alias that refers to itself, which has a method of its own."""
        node, method = self.source.definitions[name], f"alias_{name}"
        if not self._contains_objects(node):
            if (other := self.target.recursive_name(target)) is None or not fits(node, self.target.definitions[other]):
                self._mismatch(f"{name} in {self.source.version}")
            return value
        if method not in self._texts:
            self._texts[method] = ""
            self._texts[method] = self._function(method, f"return {self._resolved('value', node, target)}")
        return f"self.{method}({value}, lost)"

    def _resolved(self, value: str, source: Schema, target: Schema) -> str:
        """Return the code that converts a value of a type that does not refer to itself, or of one part of it."""
        source, target = self.source.resolve(source), self.target.resolve(target)
        if adds_checks(source, target):
            self._mismatch(f"not checked in {self.source.version}, checked in {self.target.version}")
        if not self.is_upgrade and self._is_same(source, target):
            return (
                f"({self._copy(value, source)} if self.is_complete else {value})"
                if self._contains_objects(source)
                else value
            )
        mine, theirs = self.source.options(source), self.target.options(target)
        if len(mine) > 1 or len(theirs) > 1:
            return self._choice(value, mine, theirs)
        source, target = mine[0], theirs[0]  # of a reference with a check beside it
        name, found = self.source.object_name(source), self.target.object_name(target)
        is_by_member = name is not None and found is not None and self._is_object(name, found)
        if not is_by_member and (self.source.is_kind(name, "open") or self.target.is_kind(found, "open")):
            if name is not None and found is not None and self._differs_within(name, found):
                self.partial.add(self._current)
            kind = "schema" if found is not None and self._is_schema(found) else "object"
            return f"self.as_{kind}({found and quote(found)}, {value}, lost)"
        if name is not None and found is not None:
            self._need(name, found, name)
            self._uses.setdefault(self._current, set()).add(name)
            return f"self.{name}({value}, {self._lost(name)})"
        for key, kind in (("items", "array"), ("additionalProperties", "object")):
            if kind in type_names(source) and isinstance(source.get(key), dict) and isinstance(target.get(key), dict):
                self._compare(source, target, but=key)
                return self._items(value, source[key], target[key], is_list=kind == "array")
        self._compare(source, target)
        return value

    def _compare(self, source: Schema, target: Schema, *, but: str | None = None) -> None:
        """Note it if a value may be none of the target. `but` is a keyword that is converted by itself."""
        mine, theirs = ({key: value for key, value in node.items() if key != but} for node in (source, target))
        if not fits(mine, theirs):
            sides = (f"{describe(source)} in {self.source.version}", f"{describe(target)} in {self.target.version}")
            self._mismatch(", ".join(sides))

    def _copy(self, value: str, node: Schema) -> str:
        """Return the code that copies a value of equal types: the methods of the newer revision's own upgrade do it."""
        if (alias := self.source.recursive_name(node)) is not None:
            return f"self.copies.alias_{alias}({value}, lost)"
        options = self.source.options(node)
        node = options[0]
        if len(options) > 1:
            self.copied |= {name for option in options if (name := self.source.object_name(option)) is not None}
            made = f"self.copies.of_class[{value}.__class__]({value}, lost)"
            arrays = [option for option in options if "items" in option]
            return f"({self._copy(value, arrays[0])} if {value}.__class__ is list else {made})" if arrays else made
        if (name := self.source.object_name(node)) is not None:
            self.copied.add(name)
            return f"self.copies.{name}({value}, {self._lost(name)})"
        below, kind = (node["items"], "items") if "items" in node else (node["additionalProperties"], "values")
        name = self.source.object_name(below)
        if (alias := self.source.recursive_name(below)) is not None:
            return f"{kind}(self.copies.alias_{alias}, {value}, lost)"
        if name is None:
            self.copied |= {each for option in self.source.options(below) if (each := self.source.object_name(option))}
            return f"{kind}_by_class(self.copies.of_class, {value}, lost)"
        self.copied.add(name)
        return f"{kind}(self.copies.{name}, {value}, lost)"

    def _mismatch(self, reason: str) -> None:
        """Note that a value may be invalid."""
        self.partial.add(self._current)
        if not self._place.endswith(".meta"):
            self._add_gap(self._place, reason)

    def _items(self, value: str, source: Schema, target: Schema, *, is_list: bool) -> str:
        """Return the code that converts the items of a list, or the values of an object.

        A comprehension in the method would make cells of its arguments, which costs each call 500 instructions.
        """
        made = self._expression("each", source, target)
        if made == "each":
            return value
        if (found := _BY_CLASS.fullmatch(made)) is not None:
            return f"{'items_by_class' if is_list else 'values_by_class'}({found[1]}, {value}, lost)"
        if (call := _CALL.fullmatch(made)) is not None:
            return f"{'items' if is_list else 'values'}(self.{call[1]}, {value}, lost)"
        return f"[{made} for each in {value}]" if is_list else f"{{key: {made} for key, each in {value}.items()}}"

    def _choice(self, value: str, mine: list[Schema], theirs: list[Schema]) -> str:
        """Return the code that converts a value of a union, by its class."""
        names = [name for option in mine if (name := self.source.object_name(option)) is not None]
        for option in mine:
            if self.source.object_name(option) is None and not any(fits(option, other) for other in theirs):
                self._mismatch(f"{describe(option)} in {self.source.version}, but not in {self.target.version}")
        if not names:
            return value
        known = {self.target.object_name(option) for option in theirs}
        for name in names:
            target = self._target_name(name)
            if target in known and target is not None:
                if self.source.is_kind(name, "open") and self.target.is_kind(target, "open"):
                    self._texts.setdefault(name, self._copy_open(name, target))
                self._need(name, target, name)
                self._uses.setdefault(self._current, set()).add(name)
            elif self.target.is_kind(name, "record"):  # which the union there lacks
                self._mismatch(f"{name} in {self.source.version}, but not in {self.target.version}")
                self._need(name, name, name)
            else:
                self._need_rule(name)
        methods = "of_class" if self.is_upgrade else f'one_of["{" or ".join(names)}"]'
        made = f"self.{methods}[{value}.__class__]({value}, {self._lost(*names)})"
        if any(self.source.object_name(option) is None and "items" not in option for option in mine):
            made = f"({made} if converters.is_object({value}) else {value})"
        arrays = [option for option in mine if "items" in option]
        if not arrays:
            return made
        counterpart = next((option["items"] for option in theirs if "items" in option), None)
        items = value if counterpart is None else self._items(value, arrays[0]["items"], counterpart, is_list=True)
        return f"({items} if {value}.__class__ is list else {made})"

    def _need_rule(self, name: str) -> None:
        """Ask for the method of a type that the target lacks: it replaces or reports the value."""
        if name in self._texts:
            return
        rule = self._record_rule(name)
        if rule is None:
            self._add_gap(name, f"no such type in {self.target.version}, for {self._place}")
        self._texts[name] = self._drop(name) if rule is None else self._function(name, f"return {rule}")

    def _drop(self, name: str) -> str:
        """Return the method of a type that the target lacks, which reports the value."""
        return self._function(name, f'lost.append("{name}")', "return value")

    def _copy_open(self, name: str, target: str) -> str:
        """Return the method of a member of a union that is an open object in both revisions."""
        return self._function(name, f'return self.as_object("{target}", value, lost)')

    def _function(self, name: str, *lines: str) -> str:
        arguments = "meta: Any = OWN, lost: list[str] = UNREPORTED" if self._takes_meta(name) else "lost: list[str]"
        body = "".join(f"        {line}\n" for line in lines)
        return f"    def {name}(self, value: Any, {arguments}) -> Any:\n{body}"

    def _lost(self, *names: str) -> str:
        """Return the argument for the list of lost members, which comes second unless there is a `_meta`."""
        return "lost=lost" if any(map(self._takes_meta, names)) else "lost"

    # Rules

    def _record_rule(self, name: str) -> str | None:
        """Return the code that replaces a value of a type, if there is a rule for it."""
        if self.is_upgrade or self.target.definitions.get(name) is not None:
            return None
        if name in self.facts["replaced_content"]:
            text = self.facts["replaced_content"][name]
            return f"rules.replace_by_text(self.types.TextContent, {text!r}, value, lost)"
        if name == "ElicitRequestFormParams" and "ElicitRequestParams" in self.target.definitions:
            return "rules.convert_form(value, self.module, lost)"
        return None

    def _member_rule(self, name: str, member: str) -> str | None:
        """Return the code for a member of the target, if there is a rule for it."""
        if self.is_upgrade:
            return None
        target = self.target.definitions
        has_lists = "ToolUseContent" in target
        if name == "Tool" and member in ("input_schema", "output_schema"):
            if "properties" not in target.get("ToolInputSchema", {}).get("properties", {}):
                return None
            kind = "ToolInputSchema" if member == "input_schema" else "ToolOutputSchema"
            return f'self.as_schema("{kind}", rules.downgrade_{member}(value.{member}, lost), lost)'
        if name in ("CallToolResult", "ToolResultContent") and member == "structured_content":
            is_any = without_facts(target[name]["properties"]["structuredContent"]) == {}
            arguments = f'value.{member}, self.absent, "{name}", lost'
            return None if is_any else f"rules.downgrade_structured_content({arguments})"
        if name == "CreateMessageRequestParams" and member == "messages" and not has_lists:
            return "rules.split_messages(value, self.module, lost)"
        if name == "CreateMessageResult" and member == "content" and not has_lists:
            return "rules.take_first_content(value, self.module, lost)"
        return None

    def _is_schema(self, name: str) -> bool:
        return name in ("ToolInputSchema", "ToolOutputSchema")

    def _contains_objects(self, node: Schema, seen: frozenset[str] = frozenset()) -> bool:
        """Return whether values of a node are, or contain, objects with a class."""
        if (name := self.source.recursive_name(node)) is not None:
            if name in seen:
                return False
            seen |= {name}
        return any(
            self.source.object_name(option) is not None
            or any(isinstance(option.get(key), dict) and self._contains_objects(option[key], seen)
                   for key in ("items", "additionalProperties"))
            for option in self.source.options(node)
        )  # fmt: skip


_ABSENT = re.compile(r"self\.absent\b")
_BY_CLASS = re.compile(r"(self\.(?:of_class|one_of\[[^]]+\]))\[each\.__class__\]\(each, lost\)")
_CALL = re.compile(r"self\.(\w+)\(each, lost\)")


def quote(text: str) -> str:
    return f'"{text}"'
