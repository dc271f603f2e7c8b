"""Loading pages: media type, size and metadata of hostile servers, and the policy for the browser."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import run
from typedmcp.dialect import structs
from typedmcp_extensions.apps import PAGE_MIME_TYPE, PageCsp, is_for_model, is_for_page, load_page, page_uri
from typedmcp_extensions.apps.policy import make_policy

URI = "ui://a/page"
DEFAULT = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'; "
    "form-action 'none'"
)


class Source:
    """A server with one resource."""

    def __init__(self, *contents: Any) -> None:
        self.contents = [*contents]

    async def read_resource(self, uri: str, **_: Any) -> structs.ReadResourceResult:
        return structs.ReadResourceResult(contents=self.contents, ttl_ms=0, cache_scope="private")


def text(html: str, mime_type: str | None = PAGE_MIME_TYPE, ui: Any = None, uri: str = URI) -> Any:
    meta = None if ui is None else {"ui": ui}
    return structs.TextResourceContents(uri=uri, text=html, mime_type=mime_type, meta=meta)


def blob(data: bytes | str) -> Any:
    encoded = data if isinstance(data, str) else base64.b64encode(data).decode()
    return structs.BlobResourceContents(uri=URI, blob=encoded, mime_type=PAGE_MIME_TYPE)


def load(*contents: Any, **options: Any) -> Any:
    loaded: list[Any] = []

    async def main() -> None:
        loaded.append(await load_page(Source(*contents), URI, **options))

    run(main)
    return loaded[0]


def test_a_page_is_text_or_a_blob() -> None:
    assert load(text("<p>é")).html == load(blob("<p>é".encode())).html == "<p>é"
    assert load(text("<p>", 'text/HTML; profile="mcp-app"')).html == "<p>"
    assert load(text("other", "text/plain", uri="ui://b"), text("<p>")).html == "<p>"
    assert len(load(text("<p>")).digest) == 64


WRONG: dict[str, tuple[tuple[Any, ...], str]] = {
    "nothing": ((), "expected text/html;profile=mcp-app, got no contents"),
    "plain HTML": ((text("<p>", "text/html"),), "got text/html"),
    "a type that controls terminals": ((text("<p>", "\x1b[2J"),), r"got \\x1b\[2J"),
    "no type": ((text("<p>", None),), "got no media type"),
    "a large text": ((text("<p>" + "é" * 50),), r"more than 100 bytes \(page_bytes\)"),
    "a large blob": ((blob(b"x" * 200),), r"more than 100 bytes \(page_bytes\)"),
    "no base64": ((blob("@@@@"),), "its blob is not base64 of UTF-8"),
    "no UTF-8": ((blob(b"\xff"),), "its blob is not base64 of UTF-8"),
    "metadata of another type": ((text("<p>", ui=[]),), "_meta.ui: "),
    "domains of another type": ((text("<p>", ui={"csp": {"connectDomains": "https://a"}}),), "_meta.ui: csp.connect"),
}


@each("name", WRONG)
def test_contents_that_are_no_page_are_rejected(name: str) -> None:
    contents, said = WRONG[name]
    with pytest.raises(typedmcp.ProtocolError, match=f"the page ui://a/page: .*{said}"):
        load(*contents, limits=typedmcp.Limits(page_bytes=100))


def test_a_page_that_fits_exactly_is_loaded() -> None:
    limits = typedmcp.Limits(page_bytes=100)
    assert len(load(text("é" * 50), limits=limits).html) == 50
    assert len(load(blob(b"x" * 100), limits=limits).html) == 100


def test_a_uri_that_is_no_page_and_a_tool_without_one_are_rejected() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match=r"the URI of a page begins with ui://, not 'file:///etc/passwd'"):
            await load_page(Source(), "file:///etc/passwd")
        with pytest.raises(typedmcp.UsageError, match="the tool 'a' has no page"):
            await load_page(Source(), tool(None))

    run(main)


# Policies


def test_a_page_without_metadata_reaches_nothing() -> None:
    page = load(text("<p>"))
    assert page.policy == (DEFAULT, PageCsp(), ())
    assert page.allow == ""
    assert page.headers["Content-Security-Policy"] == f"{DEFAULT}; sandbox allow-scripts"


def test_a_policy_has_what_the_page_declares_and_nothing_else() -> None:
    csp = PageCsp(
        connect_domains=["https://api.example.com", "wss://live.example.com"],
        resource_domains=["https://*.example.com/"],
        frame_domains=["https://video.example.com"],
        base_uri_domains=["https://cdn.example.com:8443"],
    )
    assert make_policy(csp).csp.split("; ") == [
        "default-src 'none'",
        "script-src 'self' 'unsafe-inline' https://*.example.com",
        "style-src 'self' 'unsafe-inline' https://*.example.com",
        "img-src 'self' data: https://*.example.com",
        "media-src 'self' data: https://*.example.com",
        "font-src 'self' https://*.example.com",
        "connect-src https://api.example.com wss://live.example.com",
        "frame-src https://video.example.com",
        "object-src 'none'",
        "base-uri https://cdn.example.com:8443",
        "form-action 'none'",
    ]


HOSTILE = [
    "*", "https:", "https://*", "https://*.com", "data:", "blob:", "'self'", "'unsafe-eval'", "example.com", "//a.b",
    "https://a.example; script-src *", "https://a.example 'unsafe-eval'", "https://a.example,https://b.example",
    "https://a.example\nx", "https://a.example/path", "https://user@a.example", "javascript://a.example", "",
    "https://*.*.example.com", "https://a.example:*", "https://é.example", "ftp://a.example", "https://a..example",
]  # fmt: skip


@each("source", HOSTILE)
def test_a_source_that_is_no_origin_is_left_out_and_named(source: str) -> None:
    lists = [source]
    csp = PageCsp(connect_domains=lists, resource_domains=lists, frame_domains=lists, base_uri_domains=lists)
    assert make_policy(csp) == (DEFAULT, PageCsp(), (source,))


def test_a_host_may_allow_fewer_origins() -> None:
    page = load(
        text("<p>", ui={"csp": {"connectDomains": ["https://a.example", "https://b.example"]}}),
        origins={"https://b.example"},
    )
    assert "connect-src https://b.example;" in page.policy.csp
    assert page.policy.rejected == ("https://a.example",)


def test_the_number_of_sources_is_limited() -> None:
    policy = make_policy(PageCsp(connect_domains=[f"https://{n}.example" for n in range(1000)]))
    assert policy.csp.count("https://") == 100
    assert len(policy.rejected) == 900


def test_a_page_gets_the_features_that_it_asks_for_and_the_host_grants() -> None:
    ui: dict[str, Any] = {"permissions": {"camera": {}, "clipboardWrite": {}, "usb": {}}}
    assert load(text("<p>", ui=ui)).allow == ""
    granted = ["camera", "geolocation", "clipboard-write", "usb"]
    assert load(text("<p>", ui=ui), permissions=granted).allow == "camera; clipboard-write"


META = '<meta http-equiv="Content-Security-Policy" content="'
DOCUMENTS = {
    "<!DOCTYPE html>\n<p>": "<!DOCTYPE html>",
    ' \n<!doctype html public "-//>"><p>': ' \n<!doctype html public "-//>',
    "<p>": "<!doctype html>",
    "<!--><script>evil()</script>--><!doctype html>": "<!doctype html>",
    "\ufeff<!doctype html>": "<!doctype html>",
    "\0<!doctype html>": "<!doctype html>",
    "<!doctype html": "<!doctype html>",
}


@each("html", DOCUMENTS)
def test_the_policy_comes_before_everything_but_the_doctype(html: str) -> None:
    document = load(text(html)).document
    assert document.startswith(DOCUMENTS[html] + META)
    assert document.endswith(html.removeprefix(DOCUMENTS[html]))


# Tools


def tool(meta: Any) -> structs.Tool:
    return structs.Tool(name="a", input_schema={"type": "object"}, meta=meta)


VISIBLE: dict[str, tuple[Any, tuple[bool, bool]]] = {
    "no metadata": (None, (True, True)),
    "a page": ({"ui": {"resourceUri": URI}}, (True, True)),
    "both": ({"ui": {"visibility": ["model", "app", "later"]}}, (True, True)),
    "the model": ({"ui": {"visibility": ["model"]}}, (True, False)),
    "pages": ({"ui": {"visibility": ["app"]}}, (False, True)),
    "nobody": ({"ui": {"visibility": []}}, (False, False)),
    "not valid": ({"ui": {"visibility": "model"}}, (False, False)),
    "no object": ({"ui": "model"}, (False, False)),
}


@each("name", VISIBLE)
def test_a_tool_is_for_those_that_it_names(name: str) -> None:
    meta, expected = VISIBLE[name]
    assert (is_for_model(tool(meta)), is_for_page(tool(meta))) == expected


def test_the_page_of_a_tool_is_a_uri_of_pages() -> None:
    assert page_uri(tool({"ui": {"resourceUri": URI}})) == URI
    assert page_uri(tool({"ui/resourceUri": URI})) == URI
    assert page_uri(tool({"ui": {"resourceUri": "https://a.example"}})) is None
    assert page_uri(tool({"ui": {"resourceUri": 1}})) is None
    assert page_uri(tool(None)) is None
