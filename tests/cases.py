"""Tables of cases: one test goes through all of them, and reports every case that fails."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

__all__ = ["each", "forget_servers"]


class _Case(NamedTuple):
    name: str
    arguments: dict[str, Any]


class _Table(NamedTuple):
    names: list[str]
    read: Callable[[], list[_Case]]


def each(
    names: str | Sequence[str], values: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each of these values, as one item.

    It is written as `pytest.mark.parametrize` is, and several of them multiply likewise. A table with thousands of rows
    then costs what its rows cost, not thousands of items. Each failing case has a report of its own with its name, and
    `--case TEXT` runs those whose names contain a text. Cases share the fixtures of their test, except that `tmp_path`
    is a folder of its own, and that what `monkeypatch`, `capsys` and `caplog` hold is undone or forgotten. A fixture
    with a method `begin_case` is told. The values are read when the test runs: what is costly to list can be a
    generator, and costs nothing when tests are collected.
    """
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    read = functools.cache(lambda: list(_cases(listed, values, ids)))

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        function, *inner = getattr(test, "_each", (test,))
        made = _as_one(function, [*inner, _Table(listed, read)])
        vars(made).update({name: value for name, value in vars(test).items() if name == "pytestmark"})
        return made

    return decorate


def forget_servers() -> None:
    """Let clients negotiate anew: a port may have belonged to a server of an older test."""
    # Tests of the types do not have the module.
    if (opening := sys.modules.get("typedmcp.client.connection.opening")) is not None:
        opening.known_servers.clear()


def _cases(
    names: list[str], values: Iterable[Any], ids: Iterable[str] | Callable[[Any], object] | None
) -> Iterator[_Case]:
    given = iter(ids) if ids is not None and not callable(ids) else None
    for index, value in enumerate(values):
        marked = value if isinstance(value, type(pytest.param())) else None
        assert not (marked and marked.marks), f"case {index} of {names} has marks: give it a test of its own"
        name = (marked.id if marked else None) or (next(given) if given else None)
        parts: tuple[Any, ...] = tuple(marked.values if marked else value if len(names) > 1 else (value,))
        words = (str(ids(part)) if callable(ids) else _word(part) for part in parts)
        yield _Case(str(name or "-".join(words)), dict(zip(names, parts, strict=True)))


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _joined(cases: tuple[_Case, ...]) -> _Case:
    arguments = {name: value for case in cases for name, value in case.arguments.items()}
    return _Case("-".join(case.name for case in cases), arguments)


def _as_one(function: Callable[..., None], tables: list[_Table]) -> Callable[..., None]:
    signature = inspect.signature(function)
    filled = {name for table in tables for name in table.names}
    fixtures = [parameter for parameter in signature.parameters.values() if parameter.name not in filled]

    @functools.wraps(function)
    def test(*, request: pytest.FixtureRequest, subtests: pytest.Subtests, **shared: Any) -> None:
        wanted = str(request.config.getoption("--case"))
        cases = [*map(_joined, itertools.product(*(table.read() for table in tables)))]
        chosen = [(index, case) for index, case in enumerate(cases) if wanted in case.name]
        assert cases, "the table is empty"
        if not chosen:
            pytest.skip(f"no case is called {wanted}")
        for index, case in chosen:
            _run(subtests, index, case, function, shared)

    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("request", "subtests")]
    test.__signature__ = signature.replace(parameters=[*fixtures, *added])  # type: ignore[attr-defined]
    test._each = (function, *tables)  # type: ignore[attr-defined]
    return test


def _run(
    subtests: pytest.Subtests, index: int, case: _Case, function: Callable[..., None], shared: dict[str, Any]
) -> None:
    """Run one case. Only one that does not pass costs a report."""
    __tracebackhide__ = True
    forget_servers()
    try:
        function(**{name: _fresh(name, value, index) for name, value in shared.items()}, **case.arguments)
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
        with subtests.test(case.name):
            raise error
    finally:
        if "monkeypatch" in shared:
            shared["monkeypatch"].undo()


def _fresh(name: str, value: Any, index: int) -> Any:
    if name == "tmp_path":
        value = value / f"case{index}"
        value.mkdir()
    elif name in ("capsys", "capfd"):
        value.readouterr()
    elif name in ("caplog", "recwarn"):
        value.clear()
    elif hasattr(value, "begin_case"):
        value.begin_case()
    return value
