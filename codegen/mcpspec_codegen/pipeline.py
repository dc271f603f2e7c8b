"""Compile the folder `schema/` to the files of `mcpspec`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypedDict, TypeVar

from mcpspec_codegen import errata, render
from mcpspec_codegen.diff import InterfaceTables, read_interface
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.features import check_log_levels, check_name_params, features
from mcpspec_codegen.interface import Interface
from mcpspec_codegen.methods import MethodDefinition, check_constants, read_error_codes, read_methods
from mcpspec_codegen.models import MODELS, STRUCTS, find_undocumented
from mcpspec_codegen.nodes import Schema, pointer_text
from mcpspec_codegen.normalise import normalise
from mcpspec_codegen.output import format_files
from mcpspec_codegen.prose import OfficialProse
from mcpspec_codegen.source import Source, load, load_descriptions, load_pinned, read_json
from mcpspec_codegen.wording import find_contradictions, list_terms

__all__ = ["compile_all", "load_interface"]

_T = TypeVar("_T")

_SUPPORT = Path(__file__).parent / "support"


def compile_all(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Compile the files of `mcpspec`; also list the names that have no right description in `docs.toml` yet."""
    compiler = _Compiler(folder)
    files = {f"mcpspec/support/{path.name}": path.read_text(encoding="utf-8") for path in sorted(_SUPPORT.glob("*.py"))}
    files |= render.distribution(compiler.sources)
    files["mcpspec/py.typed"] = ""
    files["mcpspec/__init__.py"] = render.root(compiler.sources)
    if any(source.is_extension for source in compiler.sources):
        files["mcpspec/ext/__init__.py"] = render.extensions(compiler.sources)
    missing: list[str] = []
    terms: set[str] = set()  # an extension also uses those of the newest revision
    revisions: dict[str, tuple[dict[str, bool], dict[str, int]]] = {}
    for source in compiler.sources:
        flat = compiler.document(source)
        files |= compiler.package(source, flat)
        if not source.is_extension:
            revisions[source.version] = compiler.features(source, flat)
        descriptions = compiler.descriptions.of_version(source.version)
        terms = list_terms(flat) | (terms if source.is_extension else descriptions.examples)
        missing += [f"{source.version}: {fault}" for fault in find_contradictions(flat, descriptions, terms)]
        missing += [f"{source.version}: {name}" for name in find_undocumented(flat["$defs"], descriptions)]
    supplement = compiler.supplement
    files["mcpspec/features.py"] = render.features_module(
        revisions, supplement["name_params"], supplement["log_levels"]
    )
    return format_files(files), missing


def load_interface(folder: Path, version: str) -> InterfaceTables:
    """Load the interface of a version, to compare it with another. Raises `SchemaError` if it is not pinned."""
    compiler = _Compiler(folder)
    for source in compiler.sources:
        if source.version == version:
            flat = compiler.document(source)
            return read_interface(flat, *compiler.methods(source, flat))
    raise SchemaError(str(folder / "PINNED.json"), pointer_text((version,)), "no such version is pinned")


class _Supplement(TypedDict):
    """The content of `supplement.json`, by version: facts that no schema states."""

    alternative_results: dict[str, dict[str, list[str]]]
    error_codes: dict[str, dict[str, int]]
    extension_ids: dict[str, str]
    features: dict[str, dict[str, bool]]
    log_levels: list[str]
    name_params: dict[str, str]
    senders: dict[str, dict[str, list[str]]]


class _Compiler:
    """The steps for one source, with the errata, supplement and descriptions."""

    def __init__(self, folder: Path) -> None:
        self.sources = load(folder)
        self.descriptions = load_descriptions(folder)
        self.pinned = load_pinned(folder)
        self.errata = errata.load(folder)
        errata.check_versions(self.errata, set(self.pinned), str(folder / "errata.json"))
        self.supplement_file = str(folder / "supplement.json")
        self.supplement = read_json(folder / "supplement.json", _Supplement)

    def document(self, source: Source) -> Schema:
        """Apply the errata of a source, and normalise it."""
        patched = errata.apply(source.schema, self.errata, source.version, source.file)
        return normalise(patched, source.file, self.supplement["alternative_results"].get(source.version, {}))

    def methods(self, source: Source, flat: Schema) -> tuple[list[MethodDefinition], dict[str, int]]:
        """Read the methods and the error codes of a source."""
        senders = self.supplement["senders"].get(source.version, {})
        known_codes = {} if source.is_extension else _stated(self.supplement["error_codes"], source.version)
        methods, codes = read_methods(flat, senders, source.file), read_error_codes(flat, known_codes)
        check_constants(methods, codes, source.file)
        descriptions = self.descriptions.of_version(source.version)
        described = [replace(method, doc=descriptions.of_definition(method.message)) for method in methods]
        return described, codes

    def features(self, source: Source, flat: Schema) -> tuple[dict[str, bool], dict[str, int]]:
        """Compute features and error codes of a revision. Without an entry in the supplement, it is like the newest."""
        methods, codes = self.methods(source, flat)
        check_name_params(flat, methods, self.supplement["name_params"], self.supplement_file)
        check_log_levels(flat, self.supplement["log_levels"], self.supplement_file)
        return features(flat, methods, _stated(self.supplement["features"], source.version)), codes

    def package(self, source: Source, flat: Schema) -> dict[str, str]:
        """Render the files of a revision or extension."""
        modules = render.modules(self.interface(source, flat), (STRUCTS, MODELS))
        return {f"mcpspec/{source.package}/{name}.py": text for name, text in modules.items()}

    def interface(self, source: Source, flat: Schema) -> Interface:
        """Collect what the package of a revision or extension is rendered from."""
        methods, codes = self.methods(source, flat)
        value = self.supplement["extension_ids"].get(source.version, source.version)
        return Interface(
            title=source.title,
            document=flat,
            methods=methods,
            codes=codes,
            prose=OfficialProse(self.descriptions.of_version(source.version), self.pinned[source.version]["reference"]),
            identity={"EXTENSION_ID" if source.is_extension else "PROTOCOL_VERSION": value},
        )


def _stated(entries: dict[str, _T], version: str) -> _T:
    """Return the entry of a revision, or the newest entry if it has none."""
    return entries[version] if version in entries else [*entries.values()][-1]
