"""The compiler as one function: from the folder `schema/` to the files of `mcpspec`."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from codegen import errata, render
from codegen.diff import Interface, read_interface
from codegen.errors import SchemaError
from codegen.methods import Method, check_constants, error_codes, read_methods
from codegen.models import MODELS, STRUCTS, class_source, unnamed
from codegen.nodes import Schema, pointer_text
from codegen.normalise import normalise
from codegen.output import formatted
from codegen.source import Source, load, load_pinned, load_words, read_json

__all__ = ["compile_all", "interface"]

_SUPPORT = Path(__file__).parent / "support"


def compile_all(folder: Path) -> tuple[dict[str, str], list[str]]:
    """The files of `mcpspec`, and the names that have no words in `docs.toml` yet."""
    compiler = _Compiler(folder)
    files = {
        f"mcpspec/_support/{path.name}": path.read_text(encoding="utf-8") for path in sorted(_SUPPORT.glob("*.py"))
    }
    files["mcpspec/py.typed"] = ""
    files["mcpspec/__init__.py"] = render.root(compiler.sources)
    if any(source.is_extension for source in compiler.sources):
        files["mcpspec/ext/__init__.py"] = render.extensions(compiler.sources)
    missing: list[str] = []
    for source in compiler.sources:
        flat = compiler.document(source)
        files |= compiler.package(source, flat)
        missing += [f"{source.version}: {name}" for name in unnamed(flat["$defs"], compiler.words)]
    return formatted(files), missing


def interface(folder: Path, version: str) -> Interface:
    """What a version consists of, to be compared with another. Raises `SchemaError` for one that is not pinned."""
    compiler = _Compiler(folder)
    for source in compiler.sources:
        if source.version == version:
            flat = compiler.document(source)
            return read_interface(flat, *compiler.methods(source, flat))
    raise SchemaError(str(folder / "PINNED.json"), pointer_text((version,)), "no such version")


class _Supplement(TypedDict):
    """`supplement.json`: what no schema says, by version."""

    alternative_results: dict[str, dict[str, list[str]]]
    directions: dict[str, dict[str, list[str]]]
    error_codes: dict[str, dict[str, int]]
    extension_ids: dict[str, str]


class _Compiler:
    """The steps for one source, with all that the schema folder says beside the schemas."""

    def __init__(self, folder: Path) -> None:
        self.sources = load(folder)
        self.words = load_words(folder)
        self.pinned = load_pinned(folder)
        self.errata = errata.load(folder)
        errata.check_versions(self.errata, set(self.pinned), str(folder / "errata.json"))
        self.supplement = read_json(folder / "supplement.json", _Supplement)

    def document(self, source: Source) -> Schema:
        """A source with its errata applied, normalised."""
        patched = errata.apply(source.schema, self.errata, source.version, source.file)
        return normalise(patched, source.file, self.supplement["alternative_results"].get(source.version, {}))

    def methods(self, source: Source, flat: Schema) -> tuple[list[Method], dict[str, int]]:
        directions = self.supplement["directions"].get(source.version, {})
        known_codes = self.supplement["error_codes"].get(source.version, {})
        methods, codes = read_methods(flat, directions, source.file), error_codes(flat, known_codes)
        check_constants(methods, codes, source.file)
        return methods, codes

    def package(self, source: Source, flat: Schema) -> dict[str, str]:
        """The files of one revision or extension."""
        methods, codes = self.methods(source, flat)
        reference = self.pinned[source.version]["reference"]
        identity = self.supplement["extension_ids"].get(source.version, source.version)
        package = f"mcpspec/{source.package}"
        modules: dict[str, str] = {}
        for backend in (STRUCTS, MODELS):
            classes = class_source(flat, backend, self.words, reference, source.title)
            modules |= {
                backend.module: render.types_module(classes, flat, backend),
                backend.prefix + "methods": render.methods_module(source, identity, methods, codes, flat, backend),
                backend.prefix + "handlers": render.handlers_module(source, methods, flat, backend),
            }
        face = render.face(source, list(modules))
        return {f"{package}/__init__.py": face, **{f"{package}/{name}.py": text for name, text in modules.items()}}
