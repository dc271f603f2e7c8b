"""The server's side of Apps: pages, and tools that have one.

https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache, wraps
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, Unpack, cast, get_args
from weakref import WeakSet

import msgspec

import mcpspec
from typedmcp import Context, Server, types
from typedmcp.app import ToolOptions
from typedmcp.building import check_list, to_builtins
from typedmcp.errors import UsageError
from typedmcp.extensions import AdaptTool, ServerExtension
from typedmcp_extensions.apps.metadata import (
    APPS,
    FEATURES_OF_PERMISSIONS,
    PAGE_MIME_TYPE,
    PAGE_SCHEME,
    Audience,
    PageCsp,
    PageMeta,
    PagePermissions,
    Permission,
    ToolPage,
    is_for_model,
    supports_pages,
)
from typedmcp_extensions.apps.policy import is_origin

__all__ = ["AppPage", "AppsServer", "PageContent"]

F = TypeVar("F", bound=Callable[..., Any])

PageContent: TypeAlias = str | PathLike[str] | Callable[..., Any]
"""The HTML of a page, the path of a file with it, or a function that returns either."""

_BOTH: Final[tuple[Audience, ...]] = ("model", "app")


class AppsServer(ServerExtension):
    """Apps as a server offers them: `Server("weather", extensions=[AppsServer()])`.

    Clients that show no pages get the tools without their pages, and do not get the tools that are for pages alone.
    """

    def __init__(self) -> None:
        super().__init__(APPS)
        self.adapt_tool: AdaptTool | None = _adapt_tool


def _adapt_tool(tool: types.Tool, ctx: Context) -> types.Tool | None:
    """Return a tool as the client of a request gets it, or None if it is not for this client."""
    meta = tool.meta
    if not meta or "ui" not in meta or (supports_pages(ctx.client_capabilities) and _has_tool_meta(ctx.revision)):
        return tool
    if not is_for_model(tool):
        return None
    return msgspec.structs.replace(tool, meta={name: value for name, value in meta.items() if name != "ui"} or None)


@cache
def _has_tool_meta(revision: str) -> bool:
    """Return whether tools have `_meta` on a revision. The oldest ones lack it, so that a host cannot know the page."""
    kind: type[msgspec.Struct] = mcpspec.revision(revision).exact.structs.Tool
    return "_meta" in kind.__struct_encode_fields__


class AppPage:
    """A page that hosts show with the results of tools.

    `uri` begins with `ui://`. `content` is the HTML itself, the path of a file, or a function that returns either and
    may take the `Context`. `connect`, `resources`, `frames` and `base_uris` are the origins that the page needs, see
    `PageCsp`; `permissions` are features of the browser. `domain` is the origin that the page wants to have, in the
    form that the host prescribes. `border=True` asks for a border and a background, `False` for none.

    Raises `UsageError` for a URI, an origin, a permission or a file that is not valid.

    ```python
    page = AppPage("ui://weather/forecast", Path("forecast.html"), connect=["https://tiles.example.com"])

    @page.tool(server, text=lambda forecast: f"{forecast.rain} mm of rain")
    def forecast(city: str) -> Forecast: ...
    ```
    """

    def __init__(
        self,
        uri: str,
        content: PageContent,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        connect: Iterable[str] = (),
        resources: Iterable[str] = (),
        frames: Iterable[str] = (),
        base_uris: Iterable[str] = (),
        permissions: Iterable[Permission] = (),
        domain: str | None = None,
        border: bool | None = None,
    ) -> None:
        self._what = f"page {uri!r}"
        if not uri.startswith(PAGE_SCHEME) or len(uri) == len(PAGE_SCHEME) or "{" in uri:
            raise UsageError(f"{self._what}: the URI of a page is {PAGE_SCHEME} and a path without variables")
        self.uri: str = uri
        csp = PageCsp(
            connect_domains=self._check_origins("connect", connect),
            resource_domains=self._check_origins("resources", resources),
            frame_domains=self._check_origins("frames", frames),
            base_uri_domains=self._check_origins("base_uris", base_uris),
        )
        self.meta: PageMeta = PageMeta(
            csp=None if csp == PageCsp() else csp,
            permissions=self._check_permissions(permissions),
            domain=domain,
            prefers_border=border,
        )
        """The member `_meta.ui` of the page."""
        self._wire_meta = {"ui": to_builtins(self.meta)} if self.meta != PageMeta() else None
        self._name = name or uri.rstrip("/").rpartition("/")[2]
        self._title, self._description = title, description
        self._read = self._reader(content)
        self._is_text = isinstance(content, str)
        self._servers: WeakSet[Server] = WeakSet()

    def __repr__(self) -> str:
        return f"<AppPage {self.uri}>"

    def _check_origins(self, option: str, given: Iterable[str]) -> list[str] | None:
        check_list(f"{self._what}: {option}", given)
        origins = [*given]
        for origin in origins:
            if not is_origin(origin):
                text = "expected an origin, such as https://api.example.com or https://*.example.com"
                raise UsageError(f"{self._what}: {option}: {text}, not {origin!r}")
        return origins or None

    def _check_permissions(self, given: Iterable[Permission]) -> PagePermissions | None:
        check_list(f"{self._what}: permissions", given)
        attributes = {feature: attribute for attribute, feature in FEATURES_OF_PERMISSIONS.items()}
        made: dict[str, Any] = {}
        for feature in given:
            if feature not in attributes:
                raise UsageError(f"{self._what}: unknown permission {feature!r}; known: {', '.join(attributes)}")
            made[attributes[feature]] = {}
        return PagePermissions(**made) if made else None

    def _reader(self, content: PageContent) -> Callable[..., Any]:
        """Return the function of the resource, which returns the contents of the page."""
        if isinstance(content, str):
            if "<" not in content:
                raise UsageError(f"{self._what}: expected HTML; the path of a file is a Path({content!r})")
            return lambda: self._contents(content)
        if isinstance(content, PathLike):
            path = Path(content)  # pyright: ignore[reportUnknownArgumentType]
            if not path.is_file():
                raise UsageError(f"{self._what}: there is no file {str(path)!r}")
            return lambda: self._contents(path)
        if not callable(cast(object, content)):
            raise UsageError(f"{self._what}: expected HTML, a path or a function, not {content!r}")
        return self._wrap(content)

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def read_async(*values: Any, **named: Any) -> types.TextResourceContents:
                return self._contents(await function(*values, **named))

            return read_async

        @wraps(function)
        def read(*values: Any, **named: Any) -> types.TextResourceContents:
            return self._contents(function(*values, **named))

        return read

    def _contents(self, html: object) -> types.TextResourceContents:
        """Return the contents. Raises `TypeError` for a value that is no HTML."""
        if isinstance(html, Path):
            html = html.read_text(encoding="utf-8")
        if isinstance(html, bytes):
            html = html.decode()
        if not isinstance(html, str):
            raise TypeError(f"{self._what}: expected HTML as text, bytes or a path, got {type(html).__name__}")
        return types.TextResourceContents(uri=self.uri, mime_type=PAGE_MIME_TYPE, text=html, meta=self._wire_meta)

    def add_to(self, server: Server) -> None:
        """Add the page to a server as a resource, unless it has it already. `tool` does that, too.

        Raises `UsageError` for a server that does not offer Apps.
        """
        if not any(each.extension is APPS for each in server.extensions):
            text = f"{server!r} does not offer {APPS.identifier}; use Server(…, extensions=[AppsServer()])"
            raise UsageError(f"{self._what}: {text}")
        if server in self._servers:
            return
        server.add_resource(
            self._read,
            self.uri,
            name=self._name,
            title=self._title,
            description=self._description or "",
            mime_type=PAGE_MIME_TYPE,
            meta=self._wire_meta,
            thread=not self._is_text,
        )
        self._servers.add(server)

    def tool(
        self, server: Server, *, visible_to: Sequence[Audience] = _BOTH, **options: Unpack[ToolOptions]
    ) -> Callable[[F], F]:
        """Register the function as a tool of a server whose results this page shows.

        `visible_to` says whom the tool is for: `["app"]` is a tool that only the page calls, `["model"]` one that the
        page may not call. The other options are those of `Server.tool`. Hosts without pages, and the model, read the
        text of the result: `text=` makes it.

        Raises `UsageError` for a server that does not offer Apps, and for an audience that is not known.
        """
        check_list("visible_to", visible_to)
        unknown = [each for each in visible_to if each not in get_args(Audience)]
        if unknown or not visible_to:
            raise UsageError(f"{self._what}: visible_to has 'model', 'app' or both, not {[*visible_to]!r}")
        self.add_to(server)
        audience: list[Audience] | None = None if {*visible_to} == {*_BOTH} else [*visible_to]
        ui = to_builtins(ToolPage(resource_uri=self.uri, visibility=audience))
        options["meta"] = {**(options.get("meta") or {}), "ui": ui}

        def register(function: F) -> F:
            server.add_tool(function, **options)
            return function

        return register
