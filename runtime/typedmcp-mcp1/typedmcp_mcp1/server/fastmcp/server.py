"""`FastMCP`, under the names of `mcp.server.fastmcp.server`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from typing_extensions import TypeVar as TypeVarWithDefault

from typedmcp import Auth, ServerConfig
from typedmcp.errors import UsageError
from typedmcp.revisions.features import LEGACY
from typedmcp_mcp1 import types
from typedmcp_mcp1.server.fastmcp.context import Context
from typedmcp_mcp1.server.fastmcp.exceptions import ResourceError, ToolError
from typedmcp_mcp1.server.fastmcp.prompts.base import Prompt
from typedmcp_mcp1.server.fastmcp.resources.types import FunctionResource, Resource, ResourceTemplate
from typedmcp_mcp1.server.fastmcp.tools import Tool
from typedmcp_mcp1.server.lowlevel.helper_types import ReadResourceContents
from typedmcp_mcp1.server.lowlevel.server import Server
from typedmcp_mcp1.server.lowlevel.server import lifespan as empty_lifespan
from typedmcp_mcp1.server.stdio import stdio_server
from typedmcp_mcp1.server.streamable_http_manager import StreamableHTTPSessionManager
from typedmcp_mcp1.server.transport_security import TransportSecuritySettings

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["Context", "FastMCP", "Settings"]

_log = logging.getLogger("typedmcp")

F = TypeVar("F", bound=Callable[..., Any])
LifespanResultT = TypeVarWithDefault("LifespanResultT", default=Any)
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Settings(BaseModel):
    """The options of a `FastMCP` that may be changed until it is served."""

    debug: bool = False
    log_level: LogLevel = "INFO"
    host: str = "127.0.0.1"
    port: int = 8000
    mount_path: str = "/"
    sse_path: str = "/sse"
    message_path: str = "/messages/"
    streamable_http_path: str = "/mcp"
    json_response: bool = False
    stateless_http: bool = False
    warn_on_duplicate_resources: bool = True
    warn_on_duplicate_tools: bool = True
    warn_on_duplicate_prompts: bool = True
    dependencies: list[str] = []
    auth: Any = None
    transport_security: TransportSecuritySettings | None = None


class FastMCP(Generic[LifespanResultT]):
    """A server whose tools, resources and prompts are functions.

    The options are those of mcp 1.x. `event_store`, `retry_interval`, `json_response` and the limits on sessions have
    no effect: typedmcp keeps events and limits sessions itself. `revisions` are the protocol revisions to speak, by
    default those with a handshake.
    """

    def __init__(
        self,
        name: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[types.Icon] | None = None,
        auth_server_provider: Any = None,
        token_verifier: Any = None,
        event_store: Any = None,
        retry_interval: int | None = None,
        *,
        tools: list[Tool] | None = None,
        max_request_body_size: int | None = None,
        session_idle_timeout: float | None = None,
        max_sessions: int | None = None,
        dependencies: Collection[str] = (),
        lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
        revisions: Iterable[str] = LEGACY,
        **settings: Any,
    ) -> None:
        if auth_server_provider is not None:
            raise UsageError(
                "auth_server_provider: typedmcp has no authorization server. Use any provider, and pass a "
                "token_verifier with auth=AuthSettings(…) for its tokens"
            )
        if unknown := settings.keys() - Settings.model_fields.keys():
            raise TypeError(f"FastMCP has no option {min(unknown)!r}")
        self.settings: Settings = Settings(dependencies=[*dependencies], **settings)
        self._mcp_server: Server[Any, Any] = Server(
            name or "FastMCP",
            instructions=instructions,
            website_url=website_url,
            icons=icons,
            lifespan=empty_lifespan if lifespan is None else lambda _server: lifespan(self),
            revisions=revisions,
        )
        self._tools: dict[str, Tool] = {tool.name: tool for tool in tools or ()}
        self._resources: dict[str, Resource] = {}
        self._templates: dict[str, ResourceTemplate] = {}
        self._prompts: dict[str, Prompt] = {}
        self._token_verifier = token_verifier
        self._routes: list[Any] = []
        self._session_manager: StreamableHTTPSessionManager | None = None
        self._register()

    def _register(self) -> None:
        server = self._mcp_server
        server.list_tools()(self.list_tools)
        server.call_tool(validate_input=False)(self.call_tool)
        server.list_resources()(self.list_resources)
        server.list_resource_templates()(self.list_resource_templates)
        server.read_resource()(self.read_resource)
        server.list_prompts()(self.list_prompts)
        server.get_prompt()(self.get_prompt)

    @property
    def name(self) -> str:
        """The name of the server."""
        return self._mcp_server.name

    @property
    def low_level(self) -> Server[Any, Any]:
        """The server beneath: its `configure` is for typedmcp, its `run` for streams."""
        return self._mcp_server

    def __typedmcp_config__(self) -> ServerConfig:
        """Return the server for the command `typedmcp`. Raises `UsageError` if it has tokens, which `run` checks."""
        if self._token_verifier is not None:
            raise UsageError("a FastMCP with a token_verifier is served by its own run: start the program with Python")
        return self._mcp_server.configure()

    def __server_config__(self) -> NoReturn:
        """Raise `UsageError`: the methods of this class are not those of a handler."""
        raise UsageError("typedmcp serves a FastMCP as server.low_level.configure(); its own run needs nothing else")

    @property
    def instructions(self) -> str | None:
        """The instructions for the client's model."""
        return self._mcp_server.instructions

    @property
    def website_url(self) -> str | None:
        """The website of the server."""
        return self._mcp_server.website_url

    @property
    def icons(self) -> list[types.Icon] | None:
        """The icons of the server."""
        return self._mcp_server.icons

    @property
    def dependencies(self) -> list[str]:
        """The packages that the server needs, for those who install it."""
        return self.settings.dependencies

    def get_context(self) -> Context[Any, LifespanResultT, Any]:
        """Return the context of the request that is handled, or one without a request."""
        try:
            request = self._mcp_server.request_context
        except LookupError:
            request = None
        return Context(request_context=request, fastmcp=self)

    # Tools

    def add_tool(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: types.ToolAnnotations | None = None,
        icons: list[types.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> None:
        """Add a function as a tool. One with the name of another one is left out, with a warning."""
        tool = Tool.from_function(fn, name, title, description, annotations, icons, meta, structured_output)
        self._add(self._tools, tool.name, tool, "Tool", self.settings.warn_on_duplicate_tools)

    def _add(self, known: dict[str, Any], name: str, item: Any, kind: str, warns: bool) -> None:
        if name in known and warns:
            _log.warning("%s already exists: %s", kind, name)
        known.setdefault(name, item)

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises `ToolError` if there is none."""
        if self._tools.pop(name, None) is None:
            raise ToolError(f"Unknown tool: {name}")

    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: types.ToolAnnotations | None = None,
        icons: list[types.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a tool: `@mcp.tool()`."""
        _check_called(name, "tool")

        def decorate(function: F) -> F:
            self.add_tool(function, name, title, description, annotations, icons, meta, structured_output)
            return function

        return decorate

    async def list_tools(self) -> list[types.Tool]:
        """List the tools."""
        return [tool.describe() for tool in self._tools.values()]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool: blocks of content, blocks with structured content, or a whole result.

        Raises `ToolError` if it fails, or if there is none.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        return await tool.run(arguments, self.get_context(), convert_result=True)

    # Resources

    def add_resource(self, resource: Resource) -> None:
        """Add a resource."""
        self._add(self._resources, str(resource.uri), resource, "Resource", self.settings.warn_on_duplicate_resources)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: list[types.Icon] | None = None,
        annotations: types.Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a resource, or as a template if its URI has variables."""
        _check_called(uri, "resource")
        members: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "icons": icons,
        }
        members |= {"annotations": annotations, "meta": meta}

        def decorate(function: F) -> F:
            template = ResourceTemplate(function, uri, **members)
            if template.matches(uri) is None or "{" in uri:
                self._templates[uri] = template
                return function
            described = template.describe()
            self.add_resource(
                FunctionResource(
                    uri=types.AnyUrl(uri),
                    name=template.name,
                    title=title,
                    description=described.description,
                    mime_type=template.mime_type,
                    icons=icons,
                    annotations=annotations,
                    meta=meta,
                    fn=lambda: template.call({}, self.get_context()),
                )
            )
            return function

        return decorate

    async def list_resources(self) -> list[types.Resource]:
        """List the resources."""
        return [resource.describe() for resource in self._resources.values()]

    async def list_resource_templates(self) -> list[types.ResourceTemplate]:
        """List the resource templates."""
        return [template.describe() for template in self._templates.values()]

    async def read_resource(self, uri: types.AnyUrl | str) -> Iterable[ReadResourceContents]:
        """Read a resource. Raises `ResourceError` if that fails, or if there is none."""
        text = str(uri)
        try:
            if (found := self._resources.get(text)) is not None:
                return [ReadResourceContents(await found.read(), found.mime_type, found.meta)]
            for template in self._templates.values():
                if (variables := template.matches(text)) is not None:
                    content = await template.read(variables, self.get_context())
                    return [ReadResourceContents(content, template.mime_type, template.meta)]
        except ValueError as error:
            raise ResourceError(str(error)) from error
        raise ResourceError(f"Unknown resource: {text}")

    # Prompts

    def add_prompt(self, prompt: Prompt) -> None:
        """Add a prompt."""
        self._add(self._prompts, prompt.name, prompt, "Prompt", self.settings.warn_on_duplicate_prompts)

    def prompt(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: list[types.Icon] | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a prompt: `@mcp.prompt()`."""
        _check_called(name, "prompt")

        def decorate(function: F) -> F:
            self.add_prompt(Prompt.from_function(function, name, title, description, icons))
            return function

        return decorate

    async def list_prompts(self) -> list[types.Prompt]:
        """List the prompts."""
        return [prompt.describe() for prompt in self._prompts.values()]

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> types.GetPromptResult:
        """Return a prompt with its messages. Raises `ValueError` if that fails, or if there is none."""
        prompt = self._prompts.get(name)
        if prompt is None:
            raise ValueError(f"Unknown prompt: {name}")
        messages = await prompt.render(arguments, self.get_context())
        return types.GetPromptResult(description=prompt.description, messages=to_jsonable_python(messages))

    def completion(self) -> Callable[[F], F]:
        """Register the function that completes arguments: it gets `ref`, `argument` and `context`."""
        decorate: Any = self._mcp_server.completion()
        return decorate  # type: ignore[no-any-return]

    # Serving

    def run(
        self, transport: Literal["stdio", "sse", "streamable-http"] = "stdio", mount_path: str | None = None
    ) -> None:
        """Serve until the client or a signal ends it."""
        match transport:
            case "stdio":
                asyncio.run(self.run_stdio_async())
            case "sse":
                asyncio.run(self.run_sse_async(mount_path))
            case "streamable-http":
                asyncio.run(self.run_streamable_http_async())
            case _:
                raise ValueError(f"Unknown transport: {transport}")

    async def run_stdio_async(self) -> None:
        """Serve over standard input and output."""
        async with stdio_server() as (read, write):
            await self._mcp_server.run(read, write)

    async def run_sse_async(self, mount_path: str | None = None) -> None:
        """Serve over HTTP with SSE, the transport of 2024-11-05."""
        await self._serve(self.sse_app(mount_path))

    async def run_streamable_http_async(self) -> None:
        """Serve over HTTP."""
        await self._serve(self.streamable_http_app())

    async def _serve(self, app: Any) -> None:
        import uvicorn  # servers over stdio do not load it

        settings = self.settings
        options = {"host": settings.host, "port": settings.port, "log_level": settings.log_level.lower()}
        await uvicorn.Server(uvicorn.Config(app, **options, timeout_graceful_shutdown=5)).serve()  # type: ignore[arg-type]

    @property
    def session_manager(self) -> StreamableHTTPSessionManager:
        """The manager of sessions over HTTP. Raises `RuntimeError` before `streamable_http_app`."""
        if self._session_manager is None:
            raise RuntimeError("the session manager is made by streamable_http_app(): call that first")
        return self._session_manager

    def streamable_http_app(self) -> Starlette:
        """Return an application of Starlette that serves HTTP, and the routes of `custom_route`."""
        settings = self.settings
        if self._session_manager is None:
            self._session_manager = StreamableHTTPSessionManager(
                self._mcp_server, stateless=settings.stateless_http, security_settings=self._security()
            )
            self._session_manager.configure(path=settings.streamable_http_path, auth=self._auth())
        served = self._session_manager.app
        return self._make_app([settings.streamable_http_path], served)

    def sse_app(self, mount_path: str | None = None) -> Starlette:
        """Return an application of Starlette that serves HTTP with SSE, and the routes of `custom_route`."""
        import typedmcp

        settings = self.settings
        if mount_path is not None:
            settings.mount_path = mount_path
        messages = settings.message_path.rstrip("/")
        served = typedmcp.asgi(
            self._mcp_server.configure(),
            path="/no-such-endpoint",
            sse_path=settings.sse_path,
            messages_path=messages,
            auth=self._auth(),
            **self._security().allowed(),
        )
        return self._make_app([settings.sse_path, messages], served)

    def _make_app(self, paths: Sequence[str], served: Any) -> Starlette:
        from starlette.applications import Starlette
        from starlette.routing import Route

        @asynccontextmanager
        async def lifespan(_app: Any) -> AsyncGenerator[None]:
            async with served.lifespan():
                yield

        routes = [Route(path, endpoint=served) for path in paths]
        if self._auth() is not None:
            routes += [Route("/.well-known/{path:path}", endpoint=served)]
        return Starlette(debug=self.settings.debug, routes=[*routes, *self._routes], lifespan=lifespan)

    def _security(self) -> TransportSecuritySettings:
        given = self.settings.transport_security
        if given is not None:
            return given
        is_local = self.settings.host in ("127.0.0.1", "localhost", "::1")
        return TransportSecuritySettings.local() if is_local else TransportSecuritySettings.open()

    def _auth(self) -> Auth | None:
        if self._token_verifier is None:
            return None
        from typedmcp_mcp1.server.auth.settings import to_auth

        return to_auth(self._token_verifier, self.settings.auth)

    def custom_route(
        self, path: str, methods: list[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[Callable[[Any], Awaitable[Any]]], Callable[[Any], Awaitable[Any]]]:
        """Register a function of Starlette for a path beside the endpoint. It needs no token."""

        def decorate(function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
            from starlette.routing import Route

            self._routes.append(Route(path, function, methods=methods, name=name, include_in_schema=include_in_schema))
            return function

        return decorate


def _check_called(name: object, decorator: str) -> None:
    if callable(name):
        example = "'uri'" if decorator == "resource" else ""
        raise TypeError(
            f"The @{decorator} decorator was used incorrectly. Did you forget to call it? "
            f"Use @{decorator}({example}) instead of @{decorator}"
        )
