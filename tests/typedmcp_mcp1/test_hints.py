"""Names of other libraries say what to use: the text survives `from typedmcp import …`."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.paths import ROOT

NAMES: dict[str, list[str]] = json.loads((ROOT / "runtime" / "typedmcp" / "other_names.json").read_bytes())["others"]


@each("name", sorted(NAMES))
def test_a_name_of_another_library_says_what_to_use(name: str) -> None:
    hint, *places = NAMES[name]
    with pytest.raises(ImportError) as caught:
        exec(f"from typedmcp import {name}")  # noqa: S102
    assert str(caught.value).startswith(f"module 'typedmcp' has no attribute {name!r}; {hint}")
    for place in places:
        assert str(caught.value).endswith(f"from typedmcp_mcp1.{place} import {name}")
        assert hasattr(import_module(f"typedmcp_mcp1.{place}"), name)


@each("name, kind", [("Tool", ImportError), ("TextContent", ImportError), ("nonsense", AttributeError)])
def test_a_type_says_where_it_is_and_an_unknown_name_is_an_attribute_error(name: str, kind: Any) -> None:
    with pytest.raises(kind, match=f"no attribute {name!r}"):
        getattr(typedmcp, name)


def test_no_name_of_typedmcp_has_a_hint() -> None:
    assert not NAMES.keys() & {*dir(typedmcp)}
