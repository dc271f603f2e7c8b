"""The annotations in the bodies of classes that are being made, for the metaclasses that make them.

Since Python 3.14 they are evaluated when they are read, unless their module makes all of them strings.
https://docs.python.org/3/library/annotationlib.html
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

__all__ = ["named_annotations", "remove_annotation"]


def named_annotations(namespace: Mapping[str, Any]) -> list[str]:
    """Return the names that the body of a class annotates."""
    if sys.version_info >= (3, 14) and "__annotations__" not in namespace:
        from annotationlib import Format, call_annotate_function, get_annotate_from_class_namespace

        annotate = get_annotate_from_class_namespace(namespace)
        return [] if annotate is None else [*call_annotate_function(annotate, Format.STRING)]
    return [*namespace.get("__annotations__", {})]


def remove_annotation(namespace: MutableMapping[str, Any], name: str) -> None:
    """Remove the annotation of a name from the body of a class."""
    namespace.get("__annotations__", {}).pop(name, None)
    if sys.version_info >= (3, 14):
        from annotationlib import call_annotate_function, get_annotate_from_class_namespace

        if (annotate := get_annotate_from_class_namespace(namespace)) is None:
            return

        def annotate_others(format: Any, /) -> dict[str, Any]:
            return {key: hint for key, hint in call_annotate_function(annotate, format).items() if key != name}

        for key in [key for key, value in namespace.items() if value is annotate]:
            namespace[key] = annotate_others
