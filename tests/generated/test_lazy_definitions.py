"""Modules of models make each definition when it is first used, and look like modules that made all at import."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from functools import cache
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from threading import Barrier, Thread
from types import CodeType, ModuleType
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import BaseModel

from mcpspec.v2026_07_28.exact import models
from tests.cases import each
from tests.generated.backends import PACKAGES

MODULES = [f"{package}.models" for package in PACKAGES.values()]
each_module = each("module", MODULES)


@cache
def load_code(module: str) -> tuple[ModuleSpec, CodeType]:
    spec = find_spec(module)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    code = spec.loader.get_code(module)
    assert code is not None
    return spec, code


def import_again(module: str) -> ModuleType:
    """Import a second copy of a module, in which nothing has been used."""
    spec, code = load_code(module)
    copy = module_from_spec(spec)
    exec(code, vars(copy))  # noqa: S102
    return copy


def made_in(module: ModuleType) -> set[str]:
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return own - {"__annotate__"}  # of Python 3.14


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@each_module
def test_an_import_makes_no_definition(module: str) -> None:
    assert made_in(import_again(module)) == set()


def test_the_first_use_of_a_definition_makes_it_and_all_that_it_refers_to() -> None:
    copy = import_again(models.__name__)
    assert issubclass(copy.Tool, BaseModel)
    parts = {"Icon", "MetaObject", "ToolAnnotations", "ToolInputSchema", "ToolOutputSchema"}
    assert made_in(copy) == {"Tool", *parts}


def test_making_a_class_builds_no_validator() -> None:
    assert not import_again(models.__name__).Tool.__pydantic_complete__

    class Mine(models.Tool):
        price: int

    assert not Mine.__pydantic_complete__


@each_module
def test_each_definition_can_be_the_first(module: str) -> None:
    """The blocks name all references, so no definition depends on what was used before."""
    names = import_again(module).__all__
    assert [name for name in names if getattr(import_again(module), name) is None] == []


def test_a_definition_is_made_once() -> None:
    copy = import_again(models.__name__)
    tool, result, union = copy.Tool, copy.ListToolsResult, copy.ServerResult
    assert copy.Tool is tool
    assert get_args(result.model_fields["tools"].annotation) == (tool,)
    assert result in union.__value__.__origin__.__args__


def test_threads_that_use_definitions_for_the_first_time_get_the_same_classes() -> None:
    copy = import_again(models.__name__)
    raw = b'{"content": [{"type": "text", "text": "x"}], "resultType": "complete"}'
    orders = [copy.__all__, copy.__all__[::-1]] * 4
    barrier = Barrier(len(orders))
    found: list[dict[str, Any]] = []

    def use_all(names: list[str]) -> None:
        barrier.wait()
        content = copy.decode(raw, copy.CallToolResult).content[0]
        found.append({"content": type(content), **{name: getattr(copy, name) for name in names}})

    threads = [Thread(target=use_all, args=(names,)) for names in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * len(orders)
    assert found[0]["content"] is copy.TextContent


@each_module
def test_a_module_lists_its_definitions_before_they_are_made(module: str) -> None:
    copy = import_again(module)
    assert set(copy.__all__) <= set(dir(copy))
    assert made_in(copy) == set()


@each("name", ["Tol", "tool", "__wrapped__", "__path__"])
def test_an_unknown_name_is_an_error_as_in_any_module(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{models.__name__}' has no attribute '{name}'"):
        getattr(models, name)
    with pytest.raises(ImportError, match="cannot import name"):
        exec(f"from {models.__name__} import {name}")  # noqa: S102


def test_a_value_is_unpickled_by_a_process_that_has_not_used_its_class() -> None:
    tool = models.Tool(name="x", input_schema=models.ToolInputSchema())
    run(f"import pickle; tool = pickle.loads({pickle.dumps(tool)!r}); assert tool.name == 'x', tool")


def test_a_definition_that_was_deleted_is_found_again() -> None:
    """Tools that replace a name for a while, such as `unittest.mock.patch`, delete it afterwards."""
    copy = import_again(models.__name__)
    tool = copy.Tool
    delattr(copy, "Tool")
    assert copy.Tool is tool


@each("was_used", [True, False])
def test_a_definition_that_was_replaced_stays_replaced_when_others_are_made(was_used: bool) -> None:
    copy = import_again(models.__name__)
    if was_used:
        assert copy.Tool
    replacement = vars(copy)["Tool"] = object()
    assert copy.ListToolsResult
    assert copy.Tool is replacement
    delattr(copy, "Tool")
    assert get_args(copy.ListToolsResult.model_fields["tools"].annotation) == (copy.Tool,)


def test_classes_show_their_hints_and_their_source() -> None:
    assert get_type_hints(models.Tool)["input_schema"].__name__ == "ToolInputSchema"
    assert inspect.getsource(models.Tool).lstrip().startswith("class Tool(Model):")
    assert inspect.getdoc(models.Tool)
    assert models.Tool.__qualname__ == "Tool"
