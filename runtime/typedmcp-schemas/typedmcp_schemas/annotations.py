"""The annotations of classes and functions, read in the way that each version of Python documents.

Since Python 3.14 they are evaluated when they are read, unless their module makes all of them strings.
https://docs.python.org/3/library/annotationlib.html
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from inspect import Signature

__all__ = ["annotations_of", "evaluate", "evaluated_members", "signature_of"]


def annotations_of(owner: Any) -> dict[str, Any]:
    """Return the annotations of a class, function or module, with references in place of names that are not known.

    Raises `TypeError` if one of them cannot be evaluated, since it raises an exception.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations  # few programs read annotations

        try:
            return get_annotations(owner, format=Format.FORWARDREF)
        except TypeError:
            raise
        except Exception as error:
            raise _unreadable(error) from error
    else:
        from inspect import get_annotations

        return get_annotations(owner)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function, whatever its annotations are.

    Raises `ValueError` or `TypeError` if it has none.
    """
    from inspect import signature

    if sys.version_info >= (3, 14):
        from annotationlib import Format

        try:
            return signature(function, annotation_format=Format.FORWARDREF)
        except (TypeError, ValueError):
            raise
        except Exception as error:
            raise _unreadable(error) from error
    else:
        return signature(function)


def evaluate(
    annotations: Mapping[str, Any], names: Mapping[str, Any], local_names: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Evaluate the strings and references in annotations, with global and local names.

    Raises `NameError` for an unknown name, and `TypeError` for another fault.
    """
    from types import SimpleNamespace

    return _hints(SimpleNamespace(__annotations__=annotations, __globals__=names), local_names)


def evaluated_members(kind: type, local_names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evaluated annotations of a class and of those that it inherits from. Raises as `evaluate` does."""
    return _hints(kind, local_names)


def _hints(owner: Any, local_names: Mapping[str, Any] | None) -> dict[str, Any]:
    from typing import get_type_hints

    try:
        return get_type_hints(owner, localns=None if local_names is None else {**local_names}, include_extras=True)
    except (NameError, TypeError):
        raise
    except Exception as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> TypeError:
    return TypeError(f"an annotation cannot be evaluated: {type(error).__name__}: {error}")
