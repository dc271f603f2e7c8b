"""Print figures of the hand-written code, such as lines by distribution and the sizes of classes and functions.

    python -m tools.code_figures [PROJECT] [--write]

PROJECT is a checkout, this one unless given. With `--write` the figures that pages quote are written into them.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple, TypeAlias

FOLDERS = ("runtime", "codegen", "bench", "tools")
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
"""Pages with places for what is made here: `<!-- NAME: make figures -->` to `<!-- end of NAME -->`."""

RELATIVE_CLAUSES = {
    "Who", "What", "Whether", "How", "Where", "Which", "Something", "Somebody", "Nobody", "Whoever",
}  # fmt: skip
"""Words that begin a relative clause instead of a description."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Weight(NamedTuple):
    """Lines of Python, and those that are neither blank nor in a docstring."""

    lines: int
    code: int


class ClassSize(NamedTuple):
    """The names that a class defines itself: methods, and attributes of its instances."""

    methods: int
    attributes: int
    place: str
    name: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.code_figures", description=__doc__)
    parser.add_argument("project", type=Path, nargs="?", default=Path(__file__).resolve().parents[1])
    parser.add_argument("--write", action="store_true", help="write the figures that pages quote")
    options = parser.parse_args()
    if options.write:
        for page in PAGES:
            path = options.project / page
            path.write_text(fill(path.read_text(encoding="utf-8"), options.project), encoding="utf-8")
        return 0
    for name, figure in figures(options.project):
        print(f"{name:<52}{figure}")
    return 0


def figures(project: Path) -> Iterator[tuple[str, str]]:
    """Yield each figure with its name."""
    for name, weight in distributions(project).items():
        yield f"lines of {name}, code alone", f"{weight.lines:,}, {weight.code:,}"
    package = project / "runtime" / "typedmcp"
    functions = [function for path in _modules(package) for function in _functions(path)]
    lengths = sorted(length(function) for function in functions)
    with_any = sum(_has_bare_any(function) for function in functions)
    yield "functions of the core", f"{len(functions)}"
    yield (
        "lines of a function: median, 90 %, longest",
        f"{median(lengths):g}, {quantiles(lengths, n=10)[-1]:g}, {lengths[-1]}",
    )
    yield "functions over 40 lines", f"{sum(each > 40 for each in lengths)}"
    yield "functions with a bare Any in the signature", f"{with_any} ({with_any / len(functions):.1%})"
    for size in sorted(class_sizes(package), reverse=True)[:5]:
        yield f"methods, attributes of {size.name}", f"{size.methods}, {size.attributes}"
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


def fill(page: str, project: Path) -> str:
    """Put what is made from the code into its places in a page."""
    for name, make in {"layers": layers, "distributions": distribution_table, "rooms": room_table}.items():
        begin, end = f"<!-- {name}: make figures -->\n", f"<!-- end of {name} -->"
        if begin in page:
            before, rest = page.split(begin)
            page = f"{before}{begin}{make(project)}\n{end}{rest.partition(end)[2]}"
    return page


def layers(project: Path) -> str:
    """Draw the rooms of the core as the import contract has them, the highest first."""
    contracts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    rooms = next(each for each in contracts["contracts"] if each.get("containers") == ["typedmcp"])
    return f"```text\n{_arrows([*rooms['layers'], 'typedmcp_schemas | mcpspec'])}\n```"


def _arrows(names: list[str], width: int = 110) -> str:
    """Join layers by arrows, in lines of a bounded width."""
    lines = [""]
    for name in names:
        lead = " → " if lines[-1] else ""
        if len(lines[-1]) + len(lead) + len(name) > width:
            lines.append(f"  → {name}")
        else:
            lines[-1] += f"{lead}{name}"
    return "\n".join(lines)


def distribution_table(project: Path) -> str:
    """Make the table of the distributions of `runtime/` and their weight."""
    rows = (f"| `{name}` | {lines:,} | {code:,} |" for name, (lines, code) in distributions(project).items())
    return "\n".join(("| distribution | lines | without docstrings and blanks |", "|---|---|---|", *rows))


def room_table(project: Path) -> str:
    """Make the table of the rooms of the core and their weight, the heaviest first."""
    package = project / "runtime" / "typedmcp"
    folders = {f"{path.name}/": weigh([path]) for path in package.iterdir() if (path / "__init__.py").exists()}
    folders["modules beside the rooms"] = weigh(package.glob("*.py"))
    heaviest = sorted(folders.items(), key=lambda item: -item[1].lines)
    rows = (f"| `{name}` | {lines:,} | {code:,} |" for name, (lines, code) in heaviest)
    return "\n".join(("| folder | lines | without docstrings and blanks |", "|---|---|---|", *rows)).replace(
        "`modules beside the rooms`", "modules beside the rooms"
    )


def distributions(project: Path) -> dict[str, Weight]:
    """Weigh each distribution of `runtime/`, the core first: its name → weight."""
    packages = sorted((project / "runtime").glob("typedmcp*"))
    return {path.name: weigh([path]) for path in packages}


def weigh(paths: Iterable[Path]) -> Weight:
    """Count the lines of modules and of folders of modules."""
    lines = code = 0
    for path in (module for each in paths for module in _modules(each)):
        text = path.read_text(encoding="utf-8").splitlines()
        described = _docstring_lines(ast.parse("\n".join(text)))
        lines += len(text)
        code += sum(bool(line.strip()) and number not in described for number, line in enumerate(text, 1))
    return Weight(lines, code)


def class_sizes(package: Path) -> Iterator[ClassSize]:
    """Yield what each class of a package defines. Overloads count once, as a property and its setter do."""
    for path in _modules(package):
        for node in ast.walk(_parse(path)):
            if isinstance(node, ast.ClassDef):
                methods = {each.name for each in node.body if isinstance(each, Function)}
                yield ClassSize(len(methods), len(_attributes(node)), path.relative_to(package).as_posix(), node.name)


def _attributes(node: ast.ClassDef) -> set[str]:
    declared = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and "ClassVar" not in ast.unparse(each.annotation)
    }
    assigned = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }
    return declared | assigned


def functions_of(package: Path) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a package, each with its module's path."""
    for path in _modules(package):
        for function in _functions(path):
            yield path.relative_to(package).as_posix(), function


def _modules(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(_parse(path)) if isinstance(node, Function)]


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def length(function: Function) -> int:
    """Count the lines of a function, with its docstring and without its decorators."""
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
    for node in _docstring_nodes(module):
        yield node.lineno, cleandoc(str(node.value))


def _docstring_lines(module: ast.Module) -> set[int]:
    return {
        line for node in _docstring_nodes(module) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _docstring_nodes(module: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | Function):
            yield from _texts(node.body[:1])
        if isinstance(node, ast.Module | ast.ClassDef):
            pairs = pairwise(node.body)
            yield from _texts(after for before, after in pairs if isinstance(before, ast.Assign | ast.AnnAssign))


def _texts(statements: Iterable[ast.stmt]) -> Iterator[ast.Constant]:
    for each in statements:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            yield each.value


if __name__ == "__main__":
    sys.exit(main())
