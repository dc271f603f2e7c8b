"""Modules of Structs make each definition when it is first used, and look like modules that made all at import."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from threading import Barrier, Thread
from types import ModuleType
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from mcpspec.v2026_07_28 import methods, structs
from mcpspec.v2026_07_28.exact import structs as exact
from tests.cases import each
from tests.generated.backends import PACKAGES

MODULES = [f"{package}{face}.structs" for package in PACKAGES.values() for face in ("", ".exact")]
each_module = each("module", MODULES)
each_face = each("module", [structs.__name__, exact.__name__])


@contextmanager
def imported_again(name: str) -> Generator[ModuleType]:
    """A module as in a process that has not used it. Its classes evaluate their annotations in it."""
    known = import_module(name)
    package, _, attribute = name.rpartition(".")
    try:
        del sys.modules[name]
        yield import_module(name)
    finally:
        sys.modules[name] = known
        setattr(sys.modules[package], attribute, known)


def made_in(module: ModuleType) -> set[str]:
    return {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}


@each_module
def test_an_import_makes_no_class(module: str) -> None:
    with imported_again(module) as fresh:
        assert made_in(fresh) - {"__annotate__"} == set()


@each_face
def test_the_first_use_of_a_class_makes_it_and_all_that_it_refers_to(module: str) -> None:
    with imported_again(module) as fresh:
        assert issubclass(fresh.Tool, msgspec.Struct)
        parts = {"Tool", "Icon", "ToolAnnotations"}
        assert parts <= made_in(fresh) <= parts | {"MetaObject", "ToolInputSchema", "ToolOutputSchema"}


@each_module
def test_each_definition_can_be_the_first(module: str) -> None:
    """Whatever is used first, all that it refers to is there: a decoder evaluates the annotations."""
    for name in import_module(module).__all__:
        with imported_again(module) as fresh:
            found = getattr(fresh, name)
            if isinstance(found, type):
                get_type_hints(found)


@each_face
def test_a_class_is_made_once(module: str) -> None:
    with imported_again(module) as fresh:
        tool, result = fresh.Tool, fresh.ListToolsResult
        assert fresh.Tool is tool
        assert get_args(get_type_hints(result)["tools"]) == (tool,)


@each_face
def test_threads_that_use_classes_for_the_first_time_get_the_same(module: str) -> None:
    with imported_again(module) as fresh:
        orders = [fresh.__all__, fresh.__all__[::-1]] * 4
        barrier = Barrier(len(orders))
        found: list[dict[str, Any]] = []

        def use_all(names: list[str]) -> None:
            barrier.wait()
            found.append({name: getattr(fresh, name) for name in names})

        threads = [Thread(target=use_all, args=(names,)) for names in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [found[0]] * len(orders)


@each_face
def test_a_module_lists_its_definitions_before_they_are_made(module: str) -> None:
    with imported_again(module) as fresh:
        assert set(fresh.__all__) <= set(dir(fresh))
        assert "Tool" not in vars(fresh)


@each_face
def test_a_class_that_was_replaced_stays_replaced_when_others_are_made(module: str) -> None:
    with imported_again(module) as fresh:
        replacement = vars(fresh)["Tool"] = object()
        assert fresh.ListToolsResult
        assert fresh.Tool is replacement
        delattr(fresh, "Tool")
        assert fresh.Tool.__name__ == "Tool"  # type: ignore[attr-defined]


@each("name", ["Tol", "tool", "__wrapped__"])
def test_an_unknown_name_is_an_error_as_in_any_module(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{structs.__name__}' has no attribute '{name}'"):
        getattr(structs, name)


def test_a_value_is_unpickled_by_a_process_that_has_not_used_its_class() -> None:
    tool = structs.Tool(name="x", input_schema={"type": "object"})
    code = f"import pickle; tool = pickle.loads({pickle.dumps(tool)!r}); assert tool.name == 'x', tool"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_classes_show_their_source() -> None:
    assert inspect.getsource(structs.Tool).startswith("class Tool(Struct, kw_only=True):")
    assert inspect.getdoc(structs.Tool)
    assert structs.Tool.__qualname__ == "Tool"


def test_the_types_of_a_method_are_found_when_they_are_read() -> None:
    code = f"""
import sys
from {methods.__name__} import TOOLS_CALL
assert TOOLS_CALL.exact.name == TOOLS_CALL.name
assert not [name for name in sys.modules if name.endswith(".structs") and name.startswith("mcpspec.v")]
assert TOOLS_CALL.params.__name__ == TOOLS_CALL.exact.params.__name__ == "CallToolRequestParams"
assert TOOLS_CALL.params is not TOOLS_CALL.exact.params
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
