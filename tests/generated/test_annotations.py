"""Classes of users, whose annotations are strings or, since Python 3.14, evaluated when they are read."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import get_annotations
from typing import Any, get_type_hints

import pytest

from mcpspec.v2026_07_28 import structs
from tests.cases import each

SOURCE = """
from typing import Literal
from mcpspec.support.everyday_structs import ConstantStruct

class Mine(ConstantStruct, tag_field="type", tag="mine"):
    type: Literal["mine"] = "mine"
    others: "list[Mine]" = []
    unknown: {unknown} = None
"""


def make(beginning: str, unknown: str = "int | None") -> Any:
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(beginning + SOURCE.format(unknown=unknown), "made.py", "exec", dont_inherit=True), names)  # noqa: S102
    return names["Mine"]


@each("beginning", ["", "from __future__ import annotations\n"])
def test_a_class_may_annotate_its_tag(beginning: str) -> None:
    kind = make(beginning)
    assert kind(type="mine", unknown=1) == kind(unknown=1)
    assert structs.encode(kind(unknown=1)) == b'{"type":"mine","unknown":1}'
    assert kind.__struct_fields__ == ("others", "unknown")
    assert [*get_annotations(kind)] == ["others", "unknown"]
    assert get_type_hints(kind, localns={"Mine": kind})["unknown"] == int | None


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated where they stand")
def test_an_unknown_name_in_an_annotation_is_left_as_a_reference() -> None:
    annotationlib = import_module("annotationlib")
    kind = make("", "Missing")
    assert kind().unknown is None
    assert "Missing" in repr(annotationlib.get_annotations(kind, format=annotationlib.Format.FORWARDREF)["unknown"])
