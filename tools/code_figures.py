"""Print figures of the hand-written code: lengths of functions, lines of the core, bare `Any`, suppressed warnings.

    python -m tools.code_figures [PROJECT [--core PATH …]]

PROJECT is a checkout, this one unless given; the paths of the core are relative to `runtime/typedmcp`.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import TypeAlias

FOLDERS = ("runtime", "codegen", "bench", "tools")
CORE = (
    "dialect", "errors.py", "limits.py", "nesting.py", "observers.py", "protocol", "revisions", "server/*.py",
    "transports",
)  # fmt: skip
RELATIVE_CLAUSES = {
    "Who", "What", "Whether", "How", "Where", "Which", "Something", "Somebody", "Nobody", "Whoever",
}  # fmt: skip
"""Words that begin a relative clause instead of a description."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.code_figures", description=__doc__)
    parser.add_argument("project", type=Path, nargs="?", default=Path(__file__).resolve().parents[1])
    parser.add_argument("--core", nargs="+", default=CORE)
    options = parser.parse_args()
    for name, figure in figures(options.project, options.core):
        print(f"{name:<52}{figure}")
    return 0


def figures(project: Path, core: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each figure with its name."""
    package = project / "runtime" / "typedmcp"
    functions = [function for path in _modules(package) for function in _functions(path)]
    lengths = sorted(_length(function) for function in functions)
    with_any = sum(_has_bare_any(function) for function in functions)
    everything = sum(_lines(path) for path in _modules(package))
    in_core = sum(_lines(path) for pattern in core for found in package.glob(pattern) for path in _modules(found))
    yield "functions of the runtime", f"{len(functions)}"
    yield (
        "lines of a function: median, 90 %, longest",
        f"{median(lengths):g}, {quantiles(lengths, n=10)[-1]:g}, {lengths[-1]}",
    )
    yield "functions over 40 lines", f"{sum(length > 40 for length in lengths)}"
    yield "functions with a bare Any in the signature", f"{with_any} ({with_any / len(functions):.1%})"
    yield "modules at the root of the runtime", f"{len([*package.glob('*.py')])}"
    yield "lines of the core, of the rest", f"{in_core:,}, {everything - in_core:,}"
    texts = [text for folder in FOLDERS for path in _modules(project / folder) for _, text in docstrings(_parse(path))]
    clauses = sum(begins_with_relative_clause(text) for text in texts)
    yield "docstrings that begin with a relative clause", f"{clauses} of {len(texts):,} ({clauses / len(texts):.1%})"
    sources = [path.read_text(encoding="utf-8") for folder in FOLDERS for path in _modules(project / folder)]
    for name, pattern in (
        ("noqa", r"#\s*noqa"),
        ("type: ignore", r"#\s*type:\s*ignore"),
        ("pyright: ignore", r"#\s*pyright:"),
    ):
        yield f"comments with {name}", f"{sum(len(re.findall(pattern, source)) for source in sources)}"


def _modules(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(_parse(path)) if isinstance(node, Function)]


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _has_bare_any(function: Function) -> bool:
    """Return whether a parameter or the result is `Any` itself, and not a container of `Any`."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    hints = [*(parameter.annotation for parameter in parameters if parameter is not None), function.returns]
    return any(isinstance(hint, ast.Name) and hint.id == "Any" for hint in hints)


def begins_with_relative_clause(text: str) -> bool:
    """Return whether a docstring begins with a relative clause."""
    return text.split()[0].strip("`,.:;") in RELATIVE_CLAUSES


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of the docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from _attribute_docstrings(node.body)
        if isinstance(node, ast.Module | ast.ClassDef | Function) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def _attribute_docstrings(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for before, node in pairwise(body):
        if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Expr):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield node.lineno, value.value


if __name__ == "__main__":
    sys.exit(main())
