"""URI templates: what fits, what is in it, and what is no template."""

from __future__ import annotations

import pytest

from typedmcp.errors import UsageError
from typedmcp.server.templates import UriTemplate

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
    ("x://(a)[b]{c}", "x://(a)[b]1", {"c": "1"}),
    ("x://{a}", "x://" + "a" * 9000, None),
]


@pytest.mark.parametrize(("template", "uri", "values"), MATCHES)
def test_a_uri_fits_with_these_values(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("x://{", "braces"),
        ("x://a}", "braces"),
        ("x://{}", "no expression"),
        ("x://{a b}", "no expression"),
        ("x://{a:3}", "no expression"),
        ("x://{!a}", "no expression"),
        ("x://{a}/{a}", "twice"),
        ("x://y{?q}/z", "query is its end"),
        ("x://y{?q}{z}", "query is its end"),
    ],
)
def test_what_is_no_template_says_why(template: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        UriTemplate(template)
