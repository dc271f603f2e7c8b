"""URI templates: which URIs match, with which values, and malformed templates."""

from __future__ import annotations

import time

import pytest
from hypothesis import strategies as st

from tests.cases import each
from tests.strategies import fuzzed
from typedmcp.app.templates import UriTemplate
from typedmcp.errors import UsageError

MATCHES: list[tuple[str, str, dict[str, str] | None]] = [
    ("weather://{city}/now", "weather://Oslo/now", {"city": "Oslo"}),
    ("weather://{city}/now", "weather://S%C3%A3o%20Paulo/now", {"city": "São Paulo"}),
    ("weather://{city}/now", "weather://Zürich/now", {"city": "Zürich"}),
    ("weather://{city}/now", "weather://a/b/now", None),
    ("weather://{city}/now", "weather:///now", None),
    ("weather://{city}/now", "weather://Oslo/now\n", None),
    ("weather://{city}/now", "WEATHER://Oslo/now", None),
    ("file://{path*}", "file:///etc/hosts", {"path": "/etc/hosts"}),
    ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
    ("x://{a}-{b}", "x://1-2", {"a": "1", "b": "2"}),
    ("x://{a,b}", "x://1,2", {"a": "1", "b": "2"}),
    ("x://{a,b}", "x://1", None),
    ("x://y{/a,b}", "x://y/1/2", {"a": "1", "b": "2"}),
    ("x://y{/rest*}", "x://y/1/2/3", {"rest": "1/2/3"}),
    ("x://y{.kind}", "x://y.png", {"kind": "png"}),
    ("x://y{#part}", "x://y#top", {"part": "top"}),
    ("x://y{;a,b}", "x://y;a=1;b=2", {"a": "1", "b": "2"}),
    ("x://y{?q,lang}", "x://y", {}),
    ("x://y{?q,lang}", "x://y?lang=de", {"lang": "de"}),
    ("x://y{?q,lang}", "x://y?lang=de&q=a%26b", {"q": "a&b", "lang": "de"}),
    ("x://y{?q}", "x://y?other=1", None),
    ("x://y{?q}", "x://y?q=1&q=2", None),
    ("x://{a}{?q}", "x://1?q=", {"a": "1", "q": ""}),
    ("x://{a}{?q}{&r}", "x://1?r=2", {"a": "1", "r": "2"}),
    ("x://y?v=1{&q}", "x://y?v=1&q=2", {"q": "2"}),
    ("x://y?v=1{&q}", "x://y?v=1", {}),
    ("x://y?v=1{&q,r}", "x://y?v=1&r=2&q=%26", {"q": "&", "r": "2"}),
    ("x://y?v=1{&q}", "x://y?q=2", None),
    ("x://y?v=1{&q}", "x://y?v=2&q=2", None),
    ("x://y?v=1{&q}", "x://y?v=1&v=1", None),
    ("x://y?v=1{&q}", "x://y", None),
    ("x://{a}?v={v}&w=1{&q}", "x://1?v=2&w=1&q=3", {"a": "1", "v": "2", "q": "3"}),
    ("x://(a)[b]{c}", "x://(a)[b]1", {"c": "1"}),
    ("x://{a}", "x://" + "a" * 9000, None),
    ("x://{a}-{b}", "x://1-2-3", {"a": "1-2", "b": "3"}),
    ("x://{a}{b}", "x://123", {"a": "12", "b": "3"}),
    ("x://{a*}/{b}", "x://1/2/3", {"a": "1/2", "b": "3"}),
    ("x://{a}/{b*}", "x://1/2/3", {"a": "1", "b": "2/3"}),
    ("x://{a*}.{b}", "x://1.2/3", None),
    ("x://{a}.txt", "x://a.txt.txt", {"a": "a.txt"}),
    ("x://{a}aa", "x://aaa", {"a": "a"}),
    ("x://y{;a,b}", "x://y;a=;b=2", {"a": "", "b": "2"}),
    ("x://y{;a}", "x://y;b=1", None),
    ("x://{a,b*}", "x://1,2,3/4", {"a": "1", "b": "2,3/4"}),
    ("x://y{#a,b}", "x://y#1/2,3", {"a": "1/2", "b": "3"}),
    ("{+scheme}://x", "a://x", {"scheme": "a"}),
    ("x://{a}", "x://", None),
    ("x://{a}", "x:", None),
    ("x://{a}", "", None),
    ("x://{größe}/ü", "x://1/ü", {"größe": "1"}),
]


@each("template, uri, values", MATCHES)
def test_a_uri_matches_with_these_values(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == values


@each(
    "template, why",
    [
        ("x://{", "braces"),
        ("x://a}", "braces"),
        ("x://{}", "not an expression"),
        ("x://{a b}", "not an expression"),
        ("x://{a:3}", "not an expression"),
        ("x://{!a}", "not an expression"),
        ("x://{a}/{a}", "twice"),
        ("x://y{?q}/z", "the query must be its end"),
        ("x://y{?q}{z}", "the query must be its end"),
        ("x://y?v=1{?q}", "begins a second query"),
    ],
)
def test_a_malformed_template_is_an_error_with_the_reason(template: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        UriTemplate(template)


@each("template", ["x://{a}-{b}-{c}-{d}/z", "x://{a*}-{b*}-{c*}/z", "x://{a}{b}{c}{d}/z", "x://{a,b,c}/z"])
@each("character", ["-", "a", ",", "/"])
def test_a_uri_that_does_not_match_is_rejected_fast(template: str, character: str) -> None:
    began = time.process_time()
    assert UriTemplate(template).match("x://" + character * 8000) is None
    assert time.process_time() - began < 1


EXPANDED = {
    "{a}": "1-a", "{b*}": "2/a", "{+c}": "3/-", "{d,e}": "4,5", "{.f}": ".6", "{/g,h}": "/7/8", "{;i}": ";i=9",
}  # fmt: skip
"""Expressions, each with the format of its value in URIs."""
PARTS = st.lists(st.sampled_from(["x", "-", "/", ",", ".", "a", *EXPANDED]), max_size=8, unique=True)


def expanded(expression: str, values: dict[str, str]) -> str:
    """Return an expression and its URI with other values."""
    operator, names = expression[1].strip("abd"), expression.strip("{+./;}").split(",")
    found = [values[name.rstrip("*")] for name in names]
    if operator in ("", "+"):
        return ",".join(found)
    return "".join((f";{names[0]}=" if operator == ";" else operator) + value for value in found)


def test_matched_values_expand_to_the_same_uri() -> None:
    def check(value: list[str]) -> None:
        uri = "s:" + "".join(EXPANDED.get(part, part) for part in value)
        values = UriTemplate("s:" + "".join(value)).match(uri)
        assert values is not None
        assert "s:" + "".join(expanded(part, values) if part in EXPANDED else part for part in value) == uri

    fuzzed(PARTS, 300)(check)()
