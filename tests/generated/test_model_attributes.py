"""Attributes of models: a misspelt one is an error, and undeclared members have a place of their own."""

from __future__ import annotations

from typing import Any

import pytest

import mcpspec
from mcpspec.v2025_11_25.exact import models
from tests.cases import each


def tool(**members: Any) -> Any:
    schema: dict[str, Any] = {"type": "object"}
    return models.from_builtins({"name": "a", "inputSchema": schema, **members}, models.Tool)


@each("version", [each for each in mcpspec.VERSIONS if hasattr(mcpspec.revision(each).exact.models, "Root")])
def test_a_misspelt_attribute_is_rejected_and_not_encoded(version: str) -> None:
    root = mcpspec.revision(version).exact.models.Root(uri="file:///a")
    with pytest.raises(AttributeError, match="Root declares no member 'nmae'; set it in model_extra"):
        root.nmae = "b"
    root.name = "b"
    assert mcpspec.revision(version).exact.models.to_builtins(root) == {"uri": "file:///a", "name": "b"}


def test_an_undeclared_member_is_set_in_model_extra() -> None:
    found = tool()
    found.model_extra["color"] = "red"
    assert models.to_builtins(found)["color"] == "red"


def test_an_undeclared_member_that_is_present_can_be_assigned() -> None:
    found = tool(color="red")
    found.color = "blue"
    assert models.to_builtins(found)["color"] == "blue"


def test_a_subclass_has_private_attributes_and_properties() -> None:
    class Named(models.Root):
        _count: int = 0

        def count(self) -> int:
            self._count += 1
            return self._count

        @property
        def label(self) -> str:
            return str(self.name)

        @label.setter
        def label(self, value: str) -> None:
            self.name = value

    root = Named(uri="file:///a")
    root.label = "b"
    assert (root.count(), root.count(), root.name) == (1, 2, "b")
    assert models.to_builtins(root) == {"uri": "file:///a", "name": "b"}


def test_a_copy_can_be_changed() -> None:
    found = tool().model_copy(update={"title": "t"})
    found.title = "u"
    assert models.to_builtins(found)["title"] == "u"
