"""Import statements in LibCST: choose some of their names, and point them at `mcpspec.compat`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import libcst as cst

__all__ = [
    "COMPAT", "ImportStatement", "aliases_of", "bound_name", "import_from", "import_modules", "imported_module", "join",
    "rename", "select", "split_line",
]  # fmt: skip

ImportStatement: TypeAlias = cst.Import | cst.ImportFrom
_Whitespace: TypeAlias = cst.BaseParenthesizableWhitespace

COMPAT = cst.Attribute(cst.Name("mcpspec"), cst.Name("compat"))


def aliases_of(statement: ImportStatement) -> Sequence[cst.ImportAlias]:
    """Return the names that a statement imports; none for a star."""
    return () if isinstance(statement.names, cst.ImportStar) else statement.names


def imported_module(statement: cst.ImportFrom) -> str:
    """Return the dotted name of the module, or an empty text if it is relative."""
    return "" if statement.relative or statement.module is None else _dotted(statement.module)


def _dotted(node: cst.Name | cst.Attribute) -> str:
    """Return a name as text, without spaces and comments."""
    if isinstance(node, cst.Name):
        return node.value
    assert isinstance(node.value, cst.Name | cst.Attribute)
    return f"{_dotted(node.value)}.{node.attr.value}"


def bound_name(alias: cst.ImportAlias) -> str:
    """Return the variable that an alias assigns."""
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def rename(alias: cst.ImportAlias, name: cst.Name | cst.Attribute) -> cst.ImportAlias:
    """Import something else under the same variable."""
    bound = cst.Name(bound_name(alias))
    is_same = isinstance(name, cst.Name) and name.value == bound.value
    return alias.with_changes(name=name, asname=None if is_same else alias.asname or cst.AsName(bound))


def import_modules(statement: cst.Import, aliases: Iterable[cst.ImportAlias]) -> cst.Import:
    """Import other modules with a statement."""
    return statement.with_changes(names=[_without_comma(alias) for alias in aliases])


def import_from(statement: cst.ImportFrom, module: cst.BaseExpression, names: Mapping[int, cst.Name]) -> cst.ImportFrom:
    """Import some of the names of a statement, by their places in it, from another module."""
    chosen = select(statement, [*names])
    renamed = [
        alias if alias.evaluated_name == name.value else rename(alias, name)
        for alias, name in zip(aliases_of(chosen), names.values(), strict=True)
    ]
    return chosen.with_changes(module=module, names=renamed)


def select(statement: cst.ImportFrom, chosen: Sequence[int]) -> cst.ImportFrom:
    """Import only some of the names of a statement, with their comments and the layout of the lines."""
    aliases = [*aliases_of(statement)]
    if len(chosen) == len(aliases):
        return statement
    if statement.lpar is not None:
        return _select_in_parentheses(statement, aliases, chosen)
    names = [aliases[index] for index in chosen]
    return statement.with_changes(names=[*names[:-1], _without_comma(names[-1])])


def _select_in_parentheses(
    statement: cst.ImportFrom, aliases: list[cst.ImportAlias], chosen: Sequence[int]
) -> cst.ImportFrom:
    gaps = _gaps(statement, aliases)
    places = [(chosen[0], 0), *((index, before + 1) for before, index in pairwise(chosen))]
    opening, *between = [_merge(gaps[after], gaps[index]) for index, after in places]
    closing = _merge(gaps[chosen[-1] + 1], gaps[-1], is_end=True)
    names = [aliases[index] for index in chosen]
    has_comma = isinstance(aliases[-1].comma, cst.Comma) or _has_comment_before_comma(names[-1])
    if len(names) == 1 and not any(map(_has_comment, (opening, closing))) and not _has_comment_before_comma(names[0]):
        one_line: dict[str, Any] = {"lpar": None, "rpar": None, "whitespace_after_import": cst.SimpleWhitespace(" ")}
        return statement.with_changes(names=[_without_comma(names[0])], **one_line)
    last = _with_comma(names[-1], closing) if has_comma else _without_comma(names[-1])
    end = cst.RightParen(whitespace_before=cst.SimpleWhitespace("") if has_comma else closing)
    names = [*map(_with_comma, names, between), last]
    return statement.with_changes(names=names, lpar=cst.LeftParen(whitespace_after=opening), rpar=end)


def _gaps(statement: cst.ImportFrom, aliases: Sequence[cst.ImportAlias]) -> list[_Whitespace]:
    """Return what stands before each name, and before the closing parenthesis: spaces, line ends and comments."""
    assert statement.lpar is not None
    assert statement.rpar is not None
    after_commas = [alias.comma.whitespace_after for alias in aliases if isinstance(alias.comma, cst.Comma)]
    gaps = [statement.lpar.whitespace_after, *after_commas]
    return gaps if len(gaps) > len(aliases) else [*gaps, statement.rpar.whitespace_before]


def _merge(after: _Whitespace, before: _Whitespace, *, is_end: bool = False) -> _Whitespace:
    """Join the end of the line after one name with the comments and the indentation before another."""
    if after is before:
        return before
    if isinstance(before, cst.ParenthesizedWhitespace):
        same_line = after.first_line if isinstance(after, cst.ParenthesizedWhitespace) else cst.TrailingWhitespace()
        return before.with_changes(first_line=same_line)
    return before if is_end and isinstance(after, cst.SimpleWhitespace) else after


def _has_comment(gap: _Whitespace) -> bool:
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return False
    return gap.first_line.comment is not None or any(line.comment is not None for line in gap.empty_lines)


def _has_comment_before_comma(alias: cst.ImportAlias) -> bool:
    """Return whether a line with a comment ends before the comma, which then begins the next line."""
    return isinstance(alias.comma, cst.Comma) and _has_comment(alias.comma.whitespace_before)


def _without_comma(alias: cst.ImportAlias) -> cst.ImportAlias:
    return alias.with_changes(comma=cst.MaybeSentinel.DEFAULT)


def _with_comma(alias: cst.ImportAlias, gap: _Whitespace) -> cst.ImportAlias:
    comma = alias.comma if isinstance(alias.comma, cst.Comma) else cst.Comma()
    return alias.with_changes(comma=comma.with_changes(whitespace_after=gap))


def split_line(
    line: cst.SimpleStatementLine, statements: Sequence[ImportStatement]
) -> cst.FlattenSentinel[cst.SimpleStatementLine]:
    """Put each statement in a line of its own. Each gets the comment of the line, which may be for a linter."""
    first, *others = statements
    end = line.trailing_whitespace
    lines = [cst.SimpleStatementLine([other], trailing_whitespace=end) for other in others]
    return cst.FlattenSentinel([line.with_changes(body=[first]), *lines])


def join(statement: ImportStatement, statements: Sequence[ImportStatement]) -> cst.FlattenSentinel[ImportStatement]:
    """Put statements in the place of one that shares its line with others."""
    *others, last = [each.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for each in statements]
    return cst.FlattenSentinel([*others, last.with_changes(semicolon=statement.semicolon)])
