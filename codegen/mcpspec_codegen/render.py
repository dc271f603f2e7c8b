"""Render all modules but the model classes with Jinja2: type modules, methods, handlers, packages."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mcpspec_codegen import names
from mcpspec_codegen.methods import TABLES, MethodDefinition
from mcpspec_codegen.models import Backend
from mcpspec_codegen.nodes import Schema, ref_name
from mcpspec_codegen.source import Source

__all__ = [
    "distribution",
    "extensions",
    "features_module",
    "handlers_module",
    "methods_module",
    "package",
    "root",
    "types_module",
]

_TEMPLATES = Path(__file__).parent / "templates"

_environment = Environment(
    loader=FileSystemLoader(_TEMPLATES),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701  # the output is Python, not HTML
)

_environment.filters["pascal"] = names.to_pascal


def _render(template: str, **context: Any) -> str:
    return _environment.get_template(template).render(**context)


def types_module(classes: str, document: Schema, backend: Backend) -> str:
    """Render `structs.py` or `models.py`: the model classes and `__all__`."""
    return _render("types.py.jinja2", classes=classes, names=list(document["$defs"]), backend=backend)


def methods_module(
    source: Source,
    identity: str,
    methods: list[MethodDefinition],
    codes: dict[str, int],
    document: Schema,
    backend: Backend,
) -> str:
    """Render `methods.py`: a record per method, lookup tables, and constants."""
    return _render(
        "methods.py.jinja2",
        title=source.title,
        identity={"name": "EXTENSION_ID" if source.is_extension else "PROTOCOL_VERSION", "value": identity},
        methods=methods,
        codes=codes,
        backend=backend,
        params=partial(_params_hint, backend=backend),
        result=partial(_result_hint, document=document, backend=backend),
        tables={
            name: (table.doc, [m for m in methods if m.is_sent_by(table.sender) and m.kind == table.kind])
            for name, table in TABLES.items()
        },
    )


def handlers_module(source: Source, methods: list[MethodDefinition], document: Schema, backend: Backend) -> str:
    """Render `handlers.py`: Protocols by capability for each side, and stubs."""
    sides = {
        side: _groups([method for method in methods if method.is_sent_by(sender)])
        for sender, side in (("client", "Server"), ("server", "Client"))
    }
    return _render(
        "handlers.py.jinja2",
        title=source.title,
        sides=sides,
        backend=backend,
        params=partial(_params_hint, backend=backend),
        result=partial(_result_hint, document=document, backend=backend),
    )


def package(source: Source, modules: list[str]) -> str:
    """Render the `__init__.py` of a revision or extension."""
    return _render("package.py.jinja2", title=source.title, modules=modules)


def root(sources: list[Source]) -> str:
    """Render the `__init__.py` of `mcpspec`: the revisions, and the packages in it."""
    modules = dict.fromkeys(source.package.partition("/")[0] for source in sources)
    return _render("root.py.jinja2", versions=_revisions(sources), modules=list(modules))


def distribution(sources: list[Source]) -> dict[str, str]:
    """Render the files beside the package, from which the distribution `mcpspec` is built."""
    context = {"version": version("mcpspec-codegen"), "versions": _revisions(sources)}
    names = (path.name for path in (_TEMPLATES / "distribution").iterdir())
    return {name.removesuffix(".jinja2"): _render(f"distribution/{name}", **context) for name in sorted(names)}


def _revisions(sources: list[Source]) -> list[str]:
    return [source.version for source in sources if not source.is_extension]


def features_module(
    revisions: dict[str, tuple[dict[str, bool], dict[str, int]]], name_params: dict[str, str], log_levels: list[str]
) -> str:
    """Render `features.py`: a record per revision, given its boolean members and error codes, and two tables."""
    return _render("features.py.jinja2", revisions=revisions, name_params=name_params, log_levels=log_levels)


def extensions(sources: list[Source]) -> str:
    """Render the `__init__.py` of `mcpspec.ext`: the packages of the extensions."""
    modules = [source.package.rpartition("/")[2] for source in sources if source.is_extension]
    return _render("package.py.jinja2", title="Official extensions of the protocol", modules=modules)


def _params_hint(method: MethodDefinition, backend: Backend) -> str:
    """Return the type of the parameters, which may be None, or a plain `dict` if no definition describes them."""
    if method.params is None:
        return "None"
    return f"{backend.module}.{method.params}" if method.params.isidentifier() else method.params


def _result_hint(method: MethodDefinition, document: Schema, backend: Backend) -> str:
    """Return the result type; an inline union is written as its members."""
    if method.result is None:
        return "None"
    node = document["$defs"][method.result]
    in_place = "origin" in node["x"] and "anyOf" in node
    parts = [ref_name(member["$ref"]) for member in node["anyOf"]] if in_place else [method.result]
    return " | ".join(f"{backend.module}.{part}" for part in parts)


def _groups(methods: list[MethodDefinition]) -> dict[str, list[MethodDefinition]]:
    groups: dict[str, list[MethodDefinition]] = {}
    for method in methods:
        groups.setdefault(method.group, []).append(method)
    return dict(sorted(groups.items()))
