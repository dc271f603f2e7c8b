"""Compile the folder `schema/` to the files of `mcpspec`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from mcpspec_codegen import errata, render
from mcpspec_codegen.comparison.interfaces import InterfaceShape
from mcpspec_codegen.conversions.gaps import find_conversion_gaps
from mcpspec_codegen.conversions.modules import conversion_modules
from mcpspec_codegen.conversions.revision import ConversionFacts, Revision
from mcpspec_codegen.defaults import Defaults, add_defaults, check_defaults
from mcpspec_codegen.dialects import is_draft_07, modernise
from mcpspec_codegen.diff import read_interface
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.everyday import ProtocolDefaults, check_protocol_defaults
from mcpspec_codegen.features import check_facts, features, find_log_level_gaps, find_name_param_gaps
from mcpspec_codegen.identifiers import name_definitions, rename_definitions
from mcpspec_codegen.interface import Inherited, Interface, find_inherited, restore_origins, select_reachable
from mcpspec_codegen.messages import inherit_envelope
from mcpspec_codegen.methods import (
    EMPTY_RESULT,
    MethodDefinition,
    check_constants,
    find_assumed_results,
    read_error_codes,
    read_methods,
)
from mcpspec_codegen.models import find_undocumented
from mcpspec_codegen.nodes import Schema, definitions_key, pointer_text
from mcpspec_codegen.normalise import canonicalise, normalise
from mcpspec_codegen.order import find_order, load_orders
from mcpspec_codegen.output import format_files
from mcpspec_codegen.prose import CombinedProse, OfficialProse
from mcpspec_codegen.restore import GeneratedFacts, drop_format_patterns, hoist_definitions, restore
from mcpspec_codegen.reuse import reuse
from mcpspec_codegen.source import DRAFT, Source, load, load_descriptions, load_pinned, read_json
from mcpspec_codegen.superset import CompatFacts, add_renamed, find_renamed, merge_revisions
from mcpspec_codegen.wording import find_contradictions, list_terms

__all__ = [
    "Base",
    "Gap",
    "compile_all",
    "correct_copies",
    "correct_schemas",
    "find_gaps",
    "load_base",
    "load_interface",
    "load_revisions",
    "plain_definitions",
    "plain_schema",
]

_COPIED = ("support", "compat")
"""The folders of hand-written modules of `mcpspec`."""


def compile_all(folder: Path, only: Sequence[str] = (), *, is_formatted: bool = True) -> dict[str, str]:
    """Compile the files of `mcpspec`, of all versions or `only` some.

    Versions that were compiled before in this process, with the same facts and words, cost little. Formatting takes the
    same time for each call; what is only to be imported does without.
    """
    compiler = _Compiler(folder, only)
    if all(source.is_extension for source in compiler.sources):
        raise SchemaError("--only", "", "names no revision; mcpspec needs at least one")
    documents = [(source, compiler.document(source)) for source in compiler.sources]
    revisions = [(source, flat) for source, flat in documents if not source.is_extension]
    supplement = compiler.supplement
    facts = {source.version: compiler.features(source, flat) for source, flat in revisions}
    if not only:  # a fact may be one of another version
        compiler.check_facts(revisions)
        known = [flat for _, flat in documents]
        check_defaults(known, supplement["constructor_defaults"], compiler.supplement_file)
        check_protocol_defaults(known, supplement["protocol_defaults"], compiler.supplement_file)
    files = _copy_modules()
    files |= render.distribution(compiler.sources)
    files["mcpspec/py.typed"] = ""
    files["mcpspec/__init__.py"] = render.root(compiler.sources)
    if any(source.is_extension for source in compiler.sources):
        files["mcpspec/ext/__init__.py"] = render.extensions(compiler.sources)
    for source, flat in documents:
        files |= compiler.package(source, flat)
    files["mcpspec/schemas.json"] = merge_schemas(
        {source.version: compiler.definitions(source) for source, _ in revisions}
    )
    files |= conversion_modules(compiler.revisions(revisions), supplement["conversions"])
    if compiler.compat_file.exists():  # not in folders with schemas of others
        files |= compiler.compat(revisions)
    files["mcpspec/features.py"] = render.features_module(facts, supplement["name_params"], supplement["log_levels"])
    return format_files(files) if is_formatted else files


def _copy_modules() -> dict[str, str]:
    """Read the modules that are written by hand."""
    paths = (path for folder in _COPIED for path in sorted((Path(__file__).parent / folder).glob("*.py")))
    return {f"mcpspec/{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in paths}


class Gap(NamedTuple):
    """A word or fact of a version that a person still has to write or to confirm."""

    version: str
    text: str


def find_gaps(folder: Path) -> list[Gap]:
    """List the gaps of all versions: words, facts of the supplement, and errata that nobody has looked at."""
    compiler = _Compiler(folder)
    gaps: list[Gap] = []
    terms: set[str] = set()  # an extension also uses those of the newest revision
    for source in compiler.sources:
        flat, descriptions = compiler.document(source), compiler.descriptions.of_version(source.version)
        terms = list_terms(flat) | (terms if source.is_extension else descriptions.examples)
        texts = [f"docs.toml: no description of {name}" for name in find_undocumented(flat["$defs"], descriptions)]
        texts += [f"docs.toml: no description of {fault}" for fault in find_contradictions(flat, descriptions, terms)]
        texts += errata.list_unreviewed(compiler.errata, source.version)
        texts += [] if source.is_extension else compiler.find_inherited_facts(source, flat)
        texts += compiler.find_assumed_results(source, flat)
        gaps += [Gap(source.version, text) for text in texts]
    return [*gaps, *compiler.find_renamed(), *_conversion_gaps(*load_revisions(folder))]


def _conversion_gaps(revisions: list[Revision], facts: ConversionFacts) -> list[Gap]:
    return [
        Gap(modern.version, f"conversion: {text}")
        for modern in revisions
        if modern.is_modern
        for text in find_conversion_gaps(modern, revisions, facts)
    ]


def load_revisions(folder: Path) -> tuple[list[Revision], ConversionFacts]:
    """Load all revisions as conversions need them, oldest first, and the facts about them."""
    compiler = _Compiler(folder)
    documents = [(source, compiler.document(source)) for source in compiler.sources if not source.is_extension]
    return compiler.revisions(documents), compiler.supplement["conversions"]


def load_interface(folder: Path, version: str) -> InterfaceShape:
    """Load the interface of a version, to compare it with another. Raises `SchemaError` if it is not pinned."""
    compiler = _Compiler(folder)
    source = compiler.source(version)
    flat = compiler.document(source)
    return read_interface(flat, *compiler.methods(source, flat))


@dataclass(frozen=True, slots=True)
class Base:
    """A revision that schemas of one's own extend."""

    version: str
    package: str
    """The package of its types, such as `mcpspec.v2026_07_28`."""
    interface: Interface
    spelled: dict[str, Schema]
    """The corrected definitions as the schema spells them."""
    defaults: Defaults
    protocol_defaults: ProtocolDefaults

    @property
    def names(self) -> frozenset[str]:
        """The names of the definitions, including those of inline types."""
        return frozenset(self.interface.document["$defs"])


def load_base(folder: Path, version: str) -> Base:
    """Load a revision to extend. Raises `SchemaError` for one that is not pinned."""
    compiler = _Compiler(folder)
    source = compiler.source(version)
    interface = compiler.interface(source, compiler.document(source))
    package = "mcpspec." + source.package.replace("/", ".")
    supplement = compiler.supplement
    return Base(
        version, package, interface, compiler.definitions(source),
        supplement["constructor_defaults"], supplement["protocol_defaults"],
    )  # fmt: skip


def plain_definitions(document: Schema) -> dict[str, Schema]:
    """Return the definitions of a normalised schema as plain JSON Schema."""
    return {
        name: {key: value for key, value in node.items() if key not in ("x", "discriminator")}
        for name, node in document["$defs"].items()
    }


def correct_copies(folder: Path, definitions: dict[str, Schema]) -> tuple[dict[str, Schema], list[str]]:
    """Apply the errata to definitions of others that are copies of MCP's, with their defects. Also describe them."""
    schema: Schema = {"$defs": definitions}
    entries, _ = errata.update(errata.load(folder), schema, _COPY, None)
    reasons = [f"corrected, as in MCP: {entry.name}: {entry.reason}" for entry in entries if _COPY in entry.affected]
    return errata.apply(schema, entries, _COPY, "")["$defs"], reasons


_COPY = "copy"
"""The version of errata for schemas of others."""


def plain_schema(definitions: Mapping[str, Any]) -> str:
    """Return definitions as the text of a JSON Schema 2020-12."""
    bundled: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": dict(definitions),
    }
    return json.dumps(bundled, indent=2, ensure_ascii=False) + "\n"


def merge_schemas(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the definitions of all revisions as JSON: name → its forms, each with the revisions that have it.

    Most definitions are the same in several revisions. Each name is one line, so that a change shows.
    """
    merged: dict[str, dict[str, list[str]]] = {}
    for version, definitions in schemas.items():
        for name, node in definitions.items():
            merged.setdefault(name, {}).setdefault(_compact(node), []).append(version)
    lines = (
        f"{_compact(name)}:[{','.join(f'[{_compact(versions)},{node}]' for node, versions in forms.items())}]"
        for name, forms in sorted(merged.items())
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def correct_schemas(folder: Path, only: Sequence[str] = ()) -> dict[str, dict[str, Schema]]:
    """Return the corrected definitions of each version, as its schema spells them."""
    compiler = _Compiler(folder, only)
    return {source.version: compiler.definitions(source) for source in compiler.sources}


class _Supplement(TypedDict):
    """The content of `supplement.json`, by version: facts that no schema states."""

    alternative_results: dict[str, dict[str, list[str]]]
    constructor_defaults: Defaults
    empty_results: dict[str, list[str]]
    error_codes: dict[str, dict[str, int]]
    extends: dict[str, str]
    """The revisions from which extensions have copied definitions, which their packages import."""
    extension_ids: dict[str, str]
    extension_versions: dict[str, str]
    """Versions that an extension has of its own, which its messages carry."""
    features: dict[str, dict[str, bool]]
    generated: dict[str, GeneratedFacts]
    log_levels: list[str]
    name_params: dict[str, str]
    conversions: ConversionFacts
    protocol_defaults: ProtocolDefaults
    senders: dict[str, dict[str, list[str]]]


_ByRevision: TypeAlias = Literal["error_codes", "features"]
_BY_REVISION: tuple[_ByRevision, ...] = ("error_codes", "features")
"""The tables of the supplement in which a revision without an entry has that of the newest earlier revision."""


class _Compiler:
    """The steps for one source, with the errata, supplement and descriptions."""

    def __init__(self, folder: Path, only: Sequence[str] = ()) -> None:
        self.folder = folder
        self.sources = load(folder)
        if only:
            self.sources = [source for source in self.sources if source in map(self.source, only)]
        self.descriptions = load_descriptions(folder)
        self.pinned = load_pinned(folder)
        self.errata = errata.load(folder)
        errata.check_versions(self.errata, set(self.pinned), str(folder / "errata.json"))
        self.orders = load_orders(folder)
        self.supplement_file = str(folder / "supplement.json")
        self.supplement = read_json(folder / "supplement.json", _Supplement)
        self.compat_file = folder / "compat.json"

    def source(self, version: str) -> Source:
        """Return the schema of a version. Raises `SchemaError` if it is not pinned."""
        for source in self.sources:
            if source.version == version:
                return source
        hint = f"; known: {', '.join(source.version for source in self.sources)}"
        if version == DRAFT:
            hint = "; `make bump` imports it, and a draft stays only while it differs from the newest revision"
        place = pointer_text((version,))
        raise SchemaError(str(self.folder / "PINNED.json"), place, f"no such version is pinned{hint}")

    def corrected(self, source: Source) -> Schema:
        """Apply the errata of a source, and move its definitions to the root."""
        schema = errata.apply(source.schema, self.errata, source.version, source.file)
        hoisted = hoist_definitions(schema, key := definitions_key(schema), source.file)
        old = is_draft_07(schema)
        modern = {name: modernise(node, old=old) for name, node in hoisted[key].items()}
        return {**hoisted, key: rename_definitions(modern, name_definitions(modern, source.file, key))}

    def definitions(self, source: Source) -> dict[str, Schema]:
        """Return the corrected definitions of a source, as the schema spells them, with the envelope of messages."""
        corrected = self.corrected(source)
        return inherit_envelope(corrected[definitions_key(corrected)])

    def document(self, source: Source) -> Schema:
        """Apply the errata of a source, and normalise it."""
        alternatives = self.supplement["alternative_results"].get(source.version, {})
        order = find_order(self.orders, source.version)
        facts = self.supplement["generated"].get(source.version)
        defaults = self.supplement["constructor_defaults"]
        try:
            corrected = self.corrected(source)
            if facts is not None:
                base = self.document(self.source(facts["extends"]))
                inputs = ("restored", corrected, base, facts, defaults)
                return reuse(inputs, lambda: _restore(corrected, base, facts, defaults, source.file))
            return reuse(
                ("document", corrected, alternatives, order, defaults),
                lambda: add_defaults(normalise(corrected, source.file, alternatives, order), defaults),
            )
        except RecursionError as error:
            raise SchemaError(source.file, "", "nested too deeply") from error

    def methods(self, source: Source, flat: Schema) -> tuple[list[MethodDefinition], dict[str, int]]:
        """Read the methods and the error codes of a source."""
        senders = self.supplement["senders"].get(source.version, {})
        stating = source.version if source.is_extension else self._stating("error_codes", source)
        known = {} if source.is_extension else self.supplement["error_codes"][stating]
        methods = read_methods(flat, senders, source.file)
        codes = read_error_codes(flat, known, source.file, is_carried_over=stating != source.version)
        if not source.is_extension and not any(
            method.is_sent_by("client") and method.kind == "request" for method in methods
        ):
            raise SchemaError(source.file, "", _NO_REVISION)
        check_constants(methods, codes, source.file)
        descriptions = self.descriptions.of_version(source.version)
        described = [replace(method, doc=descriptions.of_definition(method.message)) for method in methods]
        return described, codes

    def features(self, source: Source, flat: Schema) -> tuple[dict[str, bool], dict[str, int]]:
        """Compute features and error codes of a revision."""
        methods, codes = self.methods(source, flat)
        return features(flat, methods, self.supplement["features"][self._stating("features", source)]), codes

    def check_facts(self, revisions: list[tuple[Source, Schema]]) -> None:
        """Raise `SchemaError` for a fact in the supplement that no revision confirms."""
        documents = [(flat, self.methods(source, flat)[0]) for source, flat in revisions]
        check_facts(documents, self.supplement["name_params"], self.supplement["log_levels"], self.supplement_file)

    def revisions(self, documents: list[tuple[Source, Schema]]) -> list[Revision]:
        """Collect the revisions for conversions, oldest first."""
        return [
            Revision.of(
                source.version, source.package, flat, self.methods(source, flat)[0],
                self.supplement["protocol_defaults"], is_modern=not self.features(source, flat)[0]["has_handshake"],
            )
            for source, flat in documents
        ]  # fmt: skip

    def _stating(self, table: _ByRevision, source: Source) -> str:
        """Return the revision whose entry in the supplement holds for a revision: its own, or the newest before it."""
        if stating := [version for version in self.supplement[table] if version <= source.version]:
            return max(stating)
        reason = f"no entry for {source.version} or an earlier revision; add one"
        raise SchemaError(self.supplement_file, pointer_text((table,)), reason)

    def find_inherited_facts(self, source: Source, flat: Schema) -> list[str]:
        """List the facts of the supplement that no person has stated or corrected for a revision."""
        methods, _ = self.methods(source, flat)
        lines = [
            f"no entry in {table}, so that of {older} is used; add one to confirm it"
            for table in _BY_REVISION
            if (older := self._stating(table, source)) != source.version
        ]
        lines += [f"log_levels lacks {level!r}" for level in find_log_level_gaps(flat, self.supplement["log_levels"])]
        lines += find_name_param_gaps(flat, methods, self.supplement["name_params"]).values()
        return [f"supplement.json: {line}" for line in lines]

    def find_assumed_results(self, source: Source, flat: Schema) -> list[str]:
        """List the requests whose result nobody has stated, neither in the schema nor in the supplement."""
        earlier = [other for other in self.sources if other.version < source.version and not other.is_extension]
        if not earlier and not source.is_extension:
            return []  # the results of the oldest revision are known from upstream's TypeScript
        known: dict[str, str | None] = {}
        if not source.is_extension:
            known = {method.name: method.result for method in self.methods(earlier[-1], self.document(earlier[-1]))[0]}
        methods, _ = self.methods(source, flat)
        stated = self.supplement["empty_results"].get(source.version, [])
        found = find_assumed_results(flat, methods, known)
        return [
            f"{line}; if that is right, add it to empty_results" for name, line in found.items() if name not in stated
        ]

    def package(self, source: Source, flat: Schema) -> dict[str, str]:
        """Render the files of a revision or extension."""
        interface, defaults = self.interface(source, flat), self.supplement["protocol_defaults"]
        modules = reuse(
            ("modules", interface, defaults),
            lambda: render.modules(interface, render.BACKENDS, defaults, source.file),
        )
        return {f"mcpspec/{source.package}/{name}.py": text for name, text in modules.items()}

    def compat(self, revisions: list[tuple[Source, Schema]]) -> dict[str, str]:
        """Render the files of the types that are free of revisions, from those that have a date."""
        dated = [(source, flat) for source, flat in revisions if not source.is_draft]
        facts = add_renamed([flat for _, flat in dated], read_json(self.compat_file, CompatFacts))
        interfaces = [self.interface(source, flat) for source, flat in dated]
        former: dict[str, list[str]] = {}
        for old, new in facts["renamed"].items():
            former.setdefault(new, []).append(old)
        known = [(frozenset(found.document["$defs"]), found.prose) for found in reversed(interfaces)]
        merged = Interface(
            title="MCP, free of revisions",
            document=merge_revisions([flat for _, flat in dated], facts),
            methods=[],
            codes={name: code for found in interfaces for name, code in found.codes.items()},
            prose=CombinedProse(known, former),
            identity=_group_versions([source.version for source, _ in dated], interfaces),
        )
        return {f"mcpspec/compat/{name}.py": text for name, text in render.compat(merged, facts).items()}

    def find_renamed(self) -> list[Gap]:
        """List the types that a revision has under another name than an older one, without a person having said so."""
        if not self.compat_file.exists():
            return []
        facts, known = read_json(self.compat_file, CompatFacts), list[Schema]()
        gaps: list[Gap] = []
        for source in self.sources:
            if not source.is_extension and not source.is_draft:
                known.append(self.document(source))
                found = find_renamed(known[-2:], facts)
                gaps += [Gap(source.version, f"compat.json: {_RENAMED.format(*names)}") for names in found.items()]
        return gaps

    def interface(self, source: Source, flat: Schema) -> Interface:
        """Collect what the package of a revision or extension is rendered from."""
        methods, codes = self.methods(source, flat)
        return Interface(
            title=source.title,
            note=_DRAFT_NOTE if source.is_draft else "",
            document=flat,
            methods=methods,
            codes=codes,
            prose=OfficialProse(self.descriptions.of_version(source.version), self.pinned[source.version]["reference"]),
            identity=self._identity(source),
            inherited=self._inherited(source, flat, methods),
        )

    def _identity(self, source: Source) -> dict[str, str]:
        """Return the constants that name a revision or extension."""
        if not source.is_extension:
            return {"PROTOCOL_VERSION": source.version}
        ids, versions = self.supplement["extension_ids"], self.supplement["extension_versions"]
        own = {"EXTENSION_VERSION": versions[source.version]} if source.version in versions else {}
        return {"EXTENSION_ID": ids.get(source.version, source.version), **own}

    def _inherited(self, source: Source, flat: Schema, methods: list[MethodDefinition]) -> Inherited:
        """Find what the package of an extension imports from that of a revision."""
        facts = self.supplement["generated"].get(source.version)
        version = facts["extends"] if facts else self.supplement["extends"].get(source.version)
        if version is None or (facts is None and version not in {one.version for one in self.sources}):
            return Inherited()  # a schema that was not generated has all that it refers to
        revision = self.source(version)
        base = self.interface(revision, self.document(revision))
        return find_inherited(f"mcpspec.{revision.package}", base, flat, methods)


def _restore(corrected: Schema, base: Schema, facts: GeneratedFacts, defaults: Defaults, file: str) -> Schema:
    """Normalise a schema that a generator has written, with the definitions of a revision that it refers to."""
    key = definitions_key(corrected)
    given = {key: {name: drop_format_patterns(node) for name, node in corrected[key].items()}}
    own = restore(canonicalise(given), plain_definitions(base), facts["copies"], file)
    flat = normalise({"$defs": plain_definitions(base) | own}, file)
    restore_origins(flat, base)
    return select_reachable(add_defaults(flat, defaults), [*own, EMPTY_RESULT])


def _group_versions(versions: Sequence[str], interfaces: Sequence[Interface]) -> dict[str, str | tuple[str, ...]]:
    """Return the constants of the official package that name revisions, oldest revision first.

    There may be no revision with a handshake, or none without: then none is the latest.
    """
    is_old = [any(method.name == "initialize" for method in interface.methods) for interface in interfaces]
    handshake = tuple(version for version, old in zip(versions, is_old, strict=True) if old)
    modern = tuple(version for version, old in zip(versions, is_old, strict=True) if not old)
    latest = {"LATEST_HANDSHAKE_VERSION": handshake[-1:], "LATEST_MODERN_VERSION": modern[-1:]}
    return {
        **{name: version for name, found in latest.items() for version in found},
        "HANDSHAKE_PROTOCOL_VERSIONS": handshake,
        "KNOWN_PROTOCOL_VERSIONS": (*versions,),
        "LATEST_PROTOCOL_VERSION": versions[-1],
        "MODERN_PROTOCOL_VERSIONS": modern,
        "OLDEST_SUPPORTED_VERSION": versions[0],
        "SUPPORTED_PROTOCOL_VERSIONS": (*versions,),
    }


_RENAMED = "{0} has the tag and members of {1}, so they are one class; if that is right, add {0} to `renamed`"
_NO_REVISION = (
    "no request of the client: expected the schema of a revision, in which the union `ClientRequest` lists them; "
    "a schema that adds to the protocol is imported as `ext/<name>`"
)
_DRAFT_NOTE = """\
Upstream changes the draft without notice, so these types may change in every release. The draft is neither in
`mcpspec.VERSIONS` nor `mcpspec.LATEST`."""
