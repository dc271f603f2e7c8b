"""Docstrings in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

from tests.cases import each
from tests.growth import growth
from typedmcp_schemas.docstrings import parse_docstring

GOOGLE = """Add two numbers.

    The sum is exact.

    Args:
        a: The first one.
        b (int): The second one,
            on two lines.
        *rest: More of them.

    Returns:
        The sum: an integer.
    """

NUMPY = """Add two numbers.

    The sum is exact.

    Parameters
    ----------
    a : int
        The first one.
    b : int, optional
        The second one,
        on two lines.
    *rest
        More of them.

    Returns
    -------
    int
        The sum.
    """

SPHINX = """Add two numbers.

    The sum is exact.

    :param a: The first one.
    :param int b: The second one,
        on two lines.
    :param rest: More of them.
    :returns: The sum.
    :rtype: int
    """

PARAMETERS = {"a": "The first one.", "b": "The second one, on two lines.", "rest": "More of them."}


@each("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_each_style_is_parsed_into_text_and_parameters(text: str) -> None:
    assert parse_docstring(text) == ("Add two numbers.\n\nThe sum is exact.", PARAMETERS)


@each(
    "text, expected, parameters",
    [
        (None, "", {}),
        ("", "", {}),
        ("Only this.", "Only this.", {}),
        ("Note: this is no section\nof anything.", "Note: this is no section\nof anything.", {}),
        ("\nArgs:\n    a: one", "", {"a": "one"}),
        ("Do it.\n\nArgs:\n    a: one\n\nAnd more text.", "Do it.\n\nAnd more text.", {"a": "one"}),
        ("Do it.\n\nArgs:\n    a: see http://example.org: there", "Do it.", {"a": "see http://example.org: there"}),
        (
            "Do it.\n\nArgs:\n    a (tuple(int, int)): one\n    b (int): (see): b",
            "Do it.",
            {"a": "one", "b": "(see): b"},
        ),
        ("Do it.\n\nArgs:\n    *args: all\n    **kwargs: more", "Do it.", {"args": "all", "kwargs": "more"}),
        ("Do it.\n\nArgs:\n\n    a: one\n\n    b: two", "Do it.", {"a": "one", "b": "two"}),
        ("Do it.\n\nArgs:\n    a:\n        one\n    b: two", "Do it.", {"a": "one", "b": "two"}),
        ("Do it.\n\nArgs:", "Do it.", {}),
        ("Do it.\n\nRaises:\n    ValueError: never", "Do it.", {}),
        ("Do it.\n\nParameters\n----------\na, b : int\n    Both.", "Do it.", {"a": "Both.", "b": "Both."}),
        ("Do it.\n:param a:\n:param b: two", "Do it.", {"b": "two"}),
        ("\nExample:\n    >>> f()", "", {}),
        ("Grüße: ja\n\nArgs:\n    größe: in cm", "Grüße: ja", {"größe": "in cm"}),
    ],
)
def test_unusual_docstrings_are_parsed(text: str | None, expected: str, parameters: dict[str, str]) -> None:
    assert parse_docstring(text) == (expected, parameters)


@each("begin", ["", ":", ":a", ":param a", "Do.\nArgs:\n    a", "Do.\nArgs:\n    a (", "Parameters\n---\na"])
@each("part", ["a", " ", "a ", ":", "(", ") ", ",a", " ,*", "-", "\n", "\n a:"])
def test_docstrings_are_parsed_in_linear_time(begin: str, part: str) -> None:
    assert growth(lambda text: parse_docstring(f"{begin}{text}|"), part) < 10
