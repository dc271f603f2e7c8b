"""Servers with pages: what a host lists and reads, and what a client without pages gets instead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import run
from tests.spoken import SUPPORTED
from typedmcp_extensions.apps import PAGE_MIME_TYPE, AppPage, AppsClient, AppsServer, is_for_model, page_uri
from typedmcp_extensions.apps.host import load_page

HTML = "<!doctype html><title>Rain</title><p id=rain></p>"
URI = "ui://weather/rain"


@dataclass
class Rain:
    city: str
    amount: int


def weather(page: AppPage | None = None) -> typedmcp.Server:
    server = typedmcp.Server("weather", extensions=[AppsServer()], public=True)
    page = page or AppPage(URI, HTML)

    @page.tool(server, text=lambda rain: f"{rain.amount} mm in {rain.city}")
    def rain(city: str) -> Rain:
        """Return the rain."""
        return Rain(city, 3)

    @page.tool(server, visible_to=["app"], meta={"com.acme/owner": "sky"})
    async def refresh(ctx: typedmcp.Context) -> str:
        return "fresh"

    @page.tool(server, visible_to=["model"])
    def plan() -> str:
        return "planned"

    return server


async def listed(server: typedmcp.Server, **options: Any) -> dict[str, Any]:
    async with typedmcp.connect(server, **options) as client:
        return {tool.name: tool.meta async for tool in client.tools()}


LACKING = ("2024-11-05", "2025-03-26")
"""Revisions whose tools have no `_meta`."""


@each("revision", [revision for revision in SUPPORTED if revision not in LACKING])
def test_a_host_gets_the_pages_of_tools(revision: str) -> None:
    async def main() -> None:
        tools = await listed(weather(), extensions=[AppsClient()], revisions=[revision])
        assert tools == {
            "rain": {"ui": {"resourceUri": URI}},
            "refresh": {"com.acme/owner": "sky", "ui": {"resourceUri": URI, "visibility": ["app"]}},
            "plan": {"ui": {"resourceUri": URI, "visibility": ["model"]}},
        }

    run(main)


@each("revision", LACKING)
def test_revisions_without_metadata_of_tools_do_not_show_the_tools_of_pages(revision: str) -> None:
    async def main() -> None:
        tools = await listed(weather(), extensions=[AppsClient()], revisions=[revision])
        assert tools == {"rain": None, "plan": None}

    run(main)


def declare(settings: Any) -> dict[str, Any]:
    return {"capabilities": {"extensions": {"io.modelcontextprotocol/ui": settings}}}


OTHER_CLIENTS: dict[str, dict[str, Any]] = {
    "no extension": {},
    "no settings": declare({}),
    "other media types": declare({"mimeTypes": ["text/plain"]}),
}


@each("name", OTHER_CLIENTS)
def test_a_client_without_pages_gets_the_tools_of_the_model_without_their_pages(name: str) -> None:
    tools: list[Any] = []

    async def main() -> None:
        tools.append(await listed(weather(), **OTHER_CLIENTS[name]))

    run(main)
    assert tools == [{"rain": None, "plan": None}]


def test_the_text_of_a_result_is_for_the_model_and_its_structure_for_the_page() -> None:
    async def main() -> None:
        async with typedmcp.connect(weather()) as client:
            result = await client.call_tool("rain", {"city": "Bergen"})
            assert typedmcp.text_of(result) == "3 mm in Bergen"
            assert result.structured_content == {"city": "Bergen", "amount": 3}

    run(main)


def test_a_list_that_depends_on_the_client_is_not_for_shared_caches() -> None:
    async def main() -> None:
        async with typedmcp.connect(weather()) as client:
            assert (await client.list_tools()).cache_scope == "private"
            assert (await client.list_resources()).cache_scope == "public"

    run(main)


def test_the_server_declares_the_extension() -> None:
    async def main() -> None:
        async with typedmcp.connect(weather()) as client:
            assert client.server.capabilities.extensions == {"io.modelcontextprotocol/ui": {}}

    run(main)


def as_function() -> str:
    return HTML


async def as_async_function(ctx: typedmcp.Context) -> bytes:
    assert ctx.method == "resources/read"
    return HTML.encode()


def test_a_page_is_html_a_file_or_a_function(tmp_path: Path) -> None:
    path = tmp_path / "rain.html"
    path.write_text(HTML, encoding="utf-8")

    async def main() -> None:
        for content in (HTML, path, as_function, as_async_function, lambda: path):
            async with typedmcp.connect(weather(AppPage(URI, content))) as client:
                [contents] = (await client.read_resource(URI)).contents
                assert (contents.uri, contents.mime_type, contents.meta) == (URI, PAGE_MIME_TYPE, None)
                assert (await load_page(client, URI)).html == HTML

    run(main)


def test_the_metadata_of_a_page_are_in_its_contents_and_in_the_list() -> None:
    page = AppPage(
        URI,
        HTML,
        title="Rain",
        connect=["https://api.example.com", "wss://live.example.com:8443"],
        resources=["https://*.example.com"],
        frames=["https://video.example.com"],
        base_uris=["https://cdn.example.com"],
        permissions=["geolocation", "clipboard-write"],
        domain="weather.example.com",
        border=False,
    )
    ui: dict[str, Any] = {
        "csp": {
            "connectDomains": ["https://api.example.com", "wss://live.example.com:8443"],
            "resourceDomains": ["https://*.example.com"],
            "frameDomains": ["https://video.example.com"],
            "baseUriDomains": ["https://cdn.example.com"],
        },
        "permissions": {"geolocation": {}, "clipboardWrite": {}},
        "domain": "weather.example.com",
        "prefersBorder": False,
    }

    async def main() -> None:
        async with typedmcp.connect(weather(page)) as client:
            [contents] = (await client.read_resource(URI)).contents
            [resource] = [resource async for resource in client.resources()]
            assert contents.meta == resource.meta == {"ui": ui}
            assert (resource.name, resource.title, resource.mime_type) == ("rain", "Rain", PAGE_MIME_TYPE)
            assert (await load_page(client, URI)).meta == page.meta

    run(main)


def test_the_page_of_a_mounted_server_is_found_and_its_tools_have_the_prefix() -> None:
    middle = typedmcp.Server("middle", extensions=[AppsServer()])
    middle.mount(weather(), "sky")
    outer = typedmcp.Server("outer", extensions=[AppsServer()])
    outer.mount(middle, "all")

    async def main() -> None:
        async with typedmcp.connect(outer, extensions=[AppsClient()]) as client:
            tools = {tool.name: tool async for tool in client.tools()}
            assert [*tools] == ["all_sky_rain", "all_sky_refresh", "all_sky_plan"]
            assert not is_for_model(tools["all_sky_refresh"])
            assert page_uri(tools["all_sky_rain"]) == "ui://all/sky/weather/rain"
            page = await load_page(client, tools["all_sky_rain"])
            assert (page.uri, page.html) == ("ui://all/sky/weather/rain", HTML)
        assert await listed(outer) == {"all_sky_rain": None, "all_sky_plan": None}

    run(main)


def make_page(**options: Any) -> AppPage:
    options = {"uri": URI, "content": HTML, **options}
    return AppPage(**options)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another scheme": ({"uri": "https://a"}, "the URI of a page is ui:// and a path"),
    "a template": ({"uri": "ui://a/{b}"}, "a path without variables"),
    "a path as text": ({"content": "rain.html"}, r"expected HTML; the path of a file is a Path\('rain.html'\)"),
    "no such file": ({"content": Path("no.html")}, "there is no file 'no.html'"),
    "no content": ({"content": 1}, "expected HTML, a path or a function, not 1"),
    "an origin with a path": ({"connect": ["https://a.example/b"]}, "connect: expected an origin, such as"),
    "every origin": ({"resources": ["*"]}, r"resources: expected an origin, .* not '\*'"),
    "one text": ({"frames": "https://a.example"}, r"frames must be a list, such as \['https://a.example'\]"),
    "a permission": ({"permissions": ["usb"]}, "unknown permission 'usb'; known: camera, microphone, geolocation"),
}


@each("name", WRONG)
def test_a_wrong_page_is_rejected_at_once(name: str) -> None:
    options, said = WRONG[name]
    with pytest.raises(typedmcp.UsageError, match=f"page '.*': .*{said}"):
        make_page(**options)


def test_a_server_without_the_extension_gets_no_page() -> None:
    page = make_page()
    with pytest.raises(typedmcp.UsageError, match=r"does not offer io.modelcontextprotocol/ui; use Server\("):
        page.tool(typedmcp.Server("weather"))
    audience: Any = ["everyone"]
    with pytest.raises(typedmcp.UsageError, match=r"visible_to has 'model', 'app' or both, not \['everyone'\]"):
        page.tool(typedmcp.Server("weather", extensions=[AppsServer()]), visible_to=audience)


def test_a_function_that_returns_no_html_is_an_internal_error() -> None:
    async def main() -> None:
        async with typedmcp.connect(weather(AppPage(URI, lambda: 1))) as client:
            with pytest.raises(typedmcp.RemoteError, match="internal error in resources/read"):
                await client.read_resource(URI)

    run(main)
