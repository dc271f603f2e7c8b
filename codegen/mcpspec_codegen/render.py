"""Render all modules but the model classes with Jinja2: type modules, methods, handlers, packages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mcpspec_codegen import names
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.everyday import ProtocolDefaults, simplify
from mcpspec_codegen.interface import Interface
from mcpspec_codegen.methods import TABLES, MethodDefinition
from mcpspec_codegen.models import (
    COMPAT,
    COMPAT_SUPPORT,
    EXACT_MODELS,
    EXACT_STRUCTS,
    MODELS,
    STRUCTS,
    Backend,
    generate_classes,
)
from mcpspec_codegen.nodes import CHECKS, Schema, ref_name
from mcpspec_codegen.prose import ExactProse
from mcpspec_codegen.source import DRAFT, Source
from mcpspec_codegen.spelling import join_checks
from mcpspec_codegen.superset import CompatFacts

__all__ = [
    "BACKENDS",
    "compat",
    "distribution",
    "extensions",
    "features_module",
    "modules",
    "root",
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


def _quoted(listed: Iterable[str]) -> str:
    """Return names as the lines of a list of texts, as many in each line as fit."""
    return _listed(f'"{name}"' for name in listed)


def _listed(parts: Iterable[str]) -> str:
    return textwrap.indent(textwrap.fill(" ".join(f"{part}," for part in parts), 116), "    ")


_environment.filters |= {"quoted": _quoted, "listed": _listed}


def _render(template: str, **context: Any) -> str:
    return _environment.get_template(template).render(**context)


BACKENDS = (STRUCTS, MODELS)
"""The everyday types of both libraries, each of which also has an exact face."""
_EXACT = {STRUCTS: EXACT_STRUCTS, MODELS: EXACT_MODELS}


def modules(interface: Interface, backends: Sequence[Backend], defaults: ProtocolDefaults, file: str) -> dict[str, str]:
    """Render the modules of a package: path → text. The exact types are in its sub-package `exact`.

    Raises `SchemaError`, with the schema's file, if that fails.
    """
    everyday = replace(interface, document=simplify(interface.document, defaults))
    try:
        return _modules(everyday, backends) | _exact_modules(interface, everyday, backends)
    except RecursionError as error:
        raise SchemaError(file, "", "nested too deeply") from error
    except Exception as error:  # the generator of classes documents none of its errors
        raise SchemaError(file, "", f"no Python could be generated: {type(error).__name__}: {error}") from error


def _modules(interface: Interface, backends: Sequence[Backend]) -> dict[str, str]:
    found: dict[str, str] = {}
    for backend in backends:
        found |= {
            backend.module: _types_module(interface, backend),
            backend.prefix + "methods": _methods_module(interface, backend),
        }
        if interface.methods:
            found[backend.prefix + "handlers"] = _handlers_module(interface, backend)
    init = _package(interface.title, [*found, "exact"], interface.command, interface.note)
    return {"__init__": init, **found}


def _exact_modules(interface: Interface, everyday: Interface, backends: Sequence[Backend]) -> dict[str, str]:
    """Render the exact types. Methods name the everyday types, which are also where members are described."""
    defs = interface.document["$defs"].items()
    same = frozenset(name for name, node in defs if node["x"]["kind"] == everyday.document["$defs"][name]["x"]["kind"])
    exact = replace(
        interface,
        title=f"{interface.title}, exact",
        inherited=replace(interface.inherited, package=f"{interface.inherited.package}.exact"),
        prose=ExactProse(interface.prose, same),
    )
    found = {backend.module: _types_module(exact, _EXACT[backend]) for backend in backends}
    init = _package(exact.title, [*found], exact.command, exact.note)
    return {"exact/__init__": init, **{f"exact/{name}": text for name, text in found.items()}}


def _types_module(interface: Interface, backend: Backend) -> str:
    """Render `structs.py` or `models.py`: the model classes and `__all__`."""
    classes = generate_classes(interface, backend)
    custom = {name: n for name, n in interface.own_definitions.items() if n["x"]["kind"] in ("union", "checked")}
    is_lazy = bool(classes.definitions) and not backend.is_msgspec
    return _render(
        "types.py.jinja2",
        head=classes.head if is_lazy else classes.head + classes.inherited,
        inherited=classes.inherited,
        extends=f"{interface.inherited.package}.{backend.module}",
        definitions=classes.definitions,
        is_lazy=is_lazy,
        is_postponed=bool(classes.definitions) and backend.is_msgspec,
        unions=[name for name, node in custom.items() if CHECKS not in node],
        checks={name: join_checks(node) for name, node in custom.items() if CHECKS in node},
        names=list(interface.document["$defs"]),
        extra_names=list(backend.exports),
    )


def compat(interface: Interface, facts: CompatFacts) -> dict[str, str]:
    """Render the modules of `mcpspec.compat`: the types free of revisions, and what became of the official names."""
    classes = generate_classes(interface, COMPAT)
    values = {**interface.codes, **facts["constants"], **interface.identity}
    constants = {name: _code(values[name]) for name in sorted(values)}
    defs = interface.document["$defs"]
    known = {*defs, *COMPAT_SUPPORT}
    named, adapters = (
        {name: target for name, target in facts[table].items() if target in known} for table in _NAMED_TYPES
    )
    names = {*known, *constants, *named, *adapters}
    types = _render(
        "compat_types.py.jinja2",
        head=classes.head, definitions=classes.definitions, aliases=named, adapters=adapters, constants=constants,
        names=names - {"ContentAsList", "KeepsNull", "NeedsInput"},
    )  # fmt: skip
    renamed = {new: old for old, new in facts["renamed"].items() if new in defs}
    aliases = dict(sorted({**renamed, **named}.items()))
    return {
        "__init__": _render("compat_package.py.jinja2"),
        "types": types,
        "names": _render("compat_names.py.jinja2", aliases=aliases, missing=facts["missing"]),
    }


_NAMED_TYPES: Final = ("aliases", "adapters")


def _code(value: str | int | list[str] | tuple[str, ...]) -> str:
    return f"frozenset({value!r})" if isinstance(value, list) else repr(value)


def _methods_module(interface: Interface, backend: Backend) -> str:
    """Render `methods.py`: a record per method, lookup tables, and constants."""
    return _render(
        "methods.py.jinja2",
        methods=interface.methods,
        tables=TABLES,
        named=_name_type,
        **_context(interface, backend),
    )


def _handlers_module(interface: Interface, backend: Backend) -> str:
    """Render `handlers.py`: Protocols by capability for each side, and stubs."""
    sides = {
        side: _groups([method for method in interface.methods if method.is_sent_by(sender)])
        for sender, side in (("client", "Server"), ("server", "Client"))
        if any(method.is_sent_by(sender) for method in interface.methods)
    }
    inherited = interface.inherited.methods
    listed = [
        f"{side}{name}" for side, groups in sides.items() for name in (*map(names.to_pascal, groups), "Handler", "Stub")
    ]
    return _render(
        "handlers.py.jinja2",
        names=["MaybeAwaitable", "UnimplementedMethodError", *listed],
        sides=sides,
        own={
            side: {group: methods for group, methods in groups.items() if any(m.name not in inherited for m in methods)}
            for side, groups in sides.items()
        },
        **_context(interface, backend),
    )


def _context(interface: Interface, backend: Backend) -> dict[str, Any]:
    return {
        "interface": interface,
        "inherited": interface.inherited,
        "backend": backend,
        "params": partial(_params_hint, backend=backend),
        "result": partial(_result_hint, document=interface.document, backend=backend),
    }


def _package(title: str, modules: list[str], command: str = "make generate", note: str = "") -> str:
    """Render the `__init__.py` of a package."""
    return _render("package.py.jinja2", title=title, modules=modules, command=command, note=note)


def root(sources: list[Source]) -> str:
    """Render the `__init__.py` of `mcpspec`: the revisions, and the packages and modules in it."""
    modules = dict.fromkeys([*(source.package.partition("/")[0] for source in sources), "compat", "features"])
    has_draft = any(source.is_draft for source in sources)
    return _render("root.py.jinja2", versions=_revisions(sources), modules=list(modules), has_draft=has_draft)


def distribution(sources: list[Source]) -> dict[str, str]:
    """Render the files beside the package, from which the distribution `mcpspec` is built."""
    context = {"version": version("mcpspec-codegen"), "versions": _revisions(sources)}
    names = (path.name for path in (_TEMPLATES / "distribution").iterdir())
    return {name.removesuffix(".jinja2"): _render(f"distribution/{name}", **context) for name in sorted(names)}


def _revisions(sources: list[Source]) -> list[str]:
    """List the protocol revisions that have a date."""
    return [source.version for source in sources if not source.is_extension and not source.is_draft]


def features_module(
    revisions: dict[str, tuple[dict[str, bool], dict[str, int]]], name_params: dict[str, str], log_levels: list[str]
) -> str:
    """Render `features.py`: a record per revision, given its boolean members and error codes, and two tables."""
    dated = {version: facts for version, facts in revisions.items() if version != DRAFT}
    return _render(
        "features.py.jinja2",
        revisions=dated, draft=revisions.get(DRAFT), name_params=name_params, log_levels=log_levels,
    )  # fmt: skip


def extensions(sources: list[Source]) -> str:
    """Render the `__init__.py` of `mcpspec.ext`: the packages of the extensions."""
    modules = [source.package.rpartition("/")[2] for source in sources if source.is_extension]
    return _package("Official extensions of the protocol", modules)


def _params_hint(method: MethodDefinition, backend: Backend) -> str:
    """Return the type of the parameters, which may be None, or a plain `dict` if no definition describes them."""
    if method.params is None:
        return "None"
    return f"{backend.module}.{method.params}" if method.params.isidentifier() else method.params


def _name_type(name: str | None) -> str:
    """Return the code for a type of a method: the name of a definition, or the type itself."""
    return "NoneType" if name is None else f'"{name}"' if name.isidentifier() else name


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
