"""Servers made of functions: each function is a tool, a resource or a prompt, and its types are the schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ForwardRef, Literal, TypeAlias, TypeVar, Unpack, cast, overload

from mcpspec.support.handlers import MaybeAwaitable
from typedmcp import dialect
from typedmcp.app.calls import RequestHandler, await_if_needed, check_middleware, run_middleware
from typedmcp.app.catalog import Catalog, Feature, MountedItem, add_prefix, paginate, remove_prefix
from typedmcp.app.completion import Completions, to_complete_result
from typedmcp.app.failures import describe_failure, unsendable
from typedmcp.app.options import (
    IconInput,
    Middleware,
    PromptOptions,
    ResourceOptions,
    ToolOptions,
    check_errors,
    check_options,
    convert_metadata,
)
from typedmcp.app.prompts import Prompt
from typedmcp.app.resources import Resource
from typedmcp.app.results import ReturnTypeError, ToolResult, error_result_of
from typedmcp.app.tools import Tool, is_recommended_name
from typedmcp.errors import (
    INTERNAL_ERROR,
    InputUnavailableError,
    InvalidParamsError,
    RemoteError,
    ResourceNotFoundError,
    ToolError,
    UsageError,
)
from typedmcp.protocol.guesses import guessed, reject_options
from typedmcp.protocol.option_checks import check_integer, check_seconds, check_text
from typedmcp.satellites import load_satellite
from typedmcp.server.changes import Changes
from typedmcp.server.config import ServerDefaults, TaskSupport
from typedmcp.server.context import Context
from typedmcp.server.encoded_lists import EncodedList
from typedmcp.server.lifespan import Lifespan
from typedmcp.server.run import serve

if TYPE_CHECKING:
    from typedmcp.protocol.extensions import Extension
    from typedmcp.server.extension_setup import AdaptTool, OfferedExtension
    from typedmcp.server.http.asgi import AsgiOptions
    from typedmcp_schemas.hosts import Finding
else:
    Extension = ForwardRef("Extension", module="typedmcp.protocol.extensions")
    OfferedExtension = ForwardRef("OfferedExtension", module="typedmcp.server.extension_setup")
    Finding = ForwardRef("Finding", module="typedmcp_schemas.hosts")
    AsgiOptions = ForwardRef("AsgiOptions", module="typedmcp.server.http.asgi")  # for `inspect.signature`

__all__ = ["Server"]

D = dialect.structs
F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P")
T = TypeVar("T")

ReadResult: TypeAlias = "D.ReadResourceResult | D.InputRequiredResult"
PromptResult: TypeAlias = "D.GetPromptResult | D.InputRequiredResult"

_RETURNING: dict[str, Feature] = {"tools/call": "tools", "resources/read": "resources", "prompts/get": "prompts"}
"""Methods whose results come from functions."""

# Handlers, which need no `Server`, seldom expect them.
for _guess in guessed("Context", "get_state", "lifespan_context", "request_context", "session", "set_state").items():
    setattr(Context, *_guess)


class Server:
    """A server whose tools, resources and prompts are functions. `serve`, `asgi` and `connect` take it as a handler.

    `name`, `version`, `title`, `description`, `website_url` and `icons` describe the server to clients. `instructions`
    tell the client's model how to use it. `lifespan` is a function that takes the server and returns an async context
    manager, which is entered before the first request and left after the last one; handlers get the value that it
    yields as `ctx.lifespan`. `middleware` are functions around every request, see `middleware()`. `extensions` are
    those that the server offers, see `ServerExtension`. `debug` sends clients the text of every exception, `errors` are
    exceptions whose text is always sent. `strict` repairs no arguments of tools, such as `"3"` for an integer. `page`
    is the number of items on a page of a list, `ttl` the seconds for which clients may cache lists, and `public` allows
    shared caches to keep them. `references` keeps `$ref`s in the schemas of tools; otherwise definitions stand where
    they are used. Raises `UsageError` for options that make no sense.

    ```python
    server = typedmcp.Server("weather")

    @server.tool
    async def forecast(city: str, days: int = 3) -> str:
        "Forecast the weather."
        return f"rain in {city}, for {days} days"

    server.run()
    ```
    """

    if not TYPE_CHECKING:

        def __new__(cls, *_arguments: Any, **options: Any) -> Server:
            if cls.__init__ is Server.__init__:
                reject_options(options, ("name", *Server.__init__.__kwdefaults__), " of Server")
            return super().__new__(cls)

    def __init__(
        self,
        name: str = "server",
        *,
        version: str = "0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[IconInput] | None = None,
        lifespan: Lifespan | None = None,
        middleware: Sequence[Middleware] = (),
        extensions: Sequence[Extension | OfferedExtension] = (),
        debug: bool = False,
        errors: tuple[type[Exception], ...] = (),
        strict: bool = False,
        page: int | None = None,
        ttl: float = 0.0,
        public: bool = False,
        references: bool = False,
    ) -> None:
        _check_list_options(page, ttl)
        if lifespan is not None and not callable(lifespan):
            raise UsageError(f"lifespan must be a function that returns an async context manager, not {lifespan!r}")
        check_text(f"server {name!r}: name", name)
        check_text(f"server {name!r}: version", version)
        check_errors(f"server {name!r}", errors)
        metadata = convert_metadata(
            f"server {name!r}", title=title, description=description, website_url=website_url, icons=icons
        )
        self._catalog: Catalog[Server] = Catalog()
        self._tools = self._catalog.tools
        self._completions: Completions = Completions()
        self.info: D.Implementation = D.Implementation(name=name, version=version, **metadata)
        """The server's description for clients."""
        self.instructions = instructions
        self.changes: Changes = self._catalog.changes
        """The hub that publishes changes of lists and resources to clients."""
        self.capabilities: D.ServerCapabilities = self._catalog.capabilities
        """The capabilities that the server declares."""
        self.extensions: tuple[OfferedExtension, ...] = ()
        """The extensions that the server offers."""
        self._adapters: list[AdaptTool] = []
        if extensions:
            self._declare_extensions(extensions)
        self.debug = debug
        self._references = references
        self._errors, self._is_strict = errors, strict
        self._page_size, self._ttl, self._cache_scope = page, ttl, "public" if public else "private"
        self._encodings: dict[Any, EncodedList] = {}
        """The encodings of lists that are the same for every client, by the types of their results."""
        self._lifespan = lifespan
        self._middleware: list[Middleware] = []
        if callable(middleware):
            raise UsageError(f"middleware must be a list, such as [{getattr(middleware, '__name__', 'm')}]")
        for each in middleware:
            self.middleware(each)

    if not TYPE_CHECKING:
        __new__.__wrapped__ = __init__  # for `help` and `inspect.signature`
        locals().update(guessed(
            "Server", "add_middleware", "add_template", "custom_route", "http_app", "run_async", "run_http_async",
            "run_stdio_async", "run_streamable_http_async", "settings", "sse_app", "streamable_http_app",
        ))  # fmt: skip

    def _declare_extensions(self, given: Sequence[Extension | OfferedExtension]) -> None:
        from typedmcp.server.extension_setup import declare_extensions, offered  # few servers have extensions

        self.extensions = tuple(offered(given))
        self._adapters = [each.adapt_tool for each in self.extensions if each.adapt_tool is not None]
        self.capabilities.extensions = declare_extensions(self.capabilities, self.extensions).extensions

    @property
    def name(self) -> str:
        """The server's name."""
        return self.info.name

    def __repr__(self) -> str:
        return f"<Server {self.name!r}>"

    # Tools

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, called: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, called: object = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Register a function as a tool: `@server.tool`, or with options, `@server.tool("name", title="…")`.

        The parameters become the input schema, the return annotation the output schema, and the docstring the
        description. The function itself stays unchanged. `ToolOptions` describes the options. Raises `UsageError`, with
        the names of the function and the parameter, for a function that cannot be a tool.
        """
        return _decorate(self.add_tool, called, options)

    def add_tool(self, function: Callable[..., Any], **options: Unpack[ToolOptions]) -> None:
        """Register `function` as a tool, like `@server.tool`, at any time. Clients are notified."""
        check_options(options, ToolOptions, "tool")
        if self._references:
            options.setdefault("references", True)
        kind = Tool
        if options.get("task") is not None or options.get("retry"):
            from typedmcp.app.task_tools import TaskTool, check_task_options  # few servers have tasks

            check_task_options(options, self.extensions)
            kind = TaskTool
        made = kind(function, server_errors=self._errors, debug=self.debug, server_strict=self._is_strict, **options)
        self._add("tools", made.name, made, options.get("replace", False))

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Clients are notified. Raises `KeyError` if there is no such tool."""
        del self._tools[name]
        self._catalog.publish_change("tools")

    # Resources

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Register a function as a resource, or as a resource template if its URI has variables.

        The function takes the variables: `@server.resource("weather://{city}/now")` needs a parameter `city`. It
        returns text, bytes, data that becomes JSON, or a list of contents. `ResourceOptions` describes the options,
        `typedmcp.app.templates` the templates. Raises `UsageError` for a function that does not fit its URI.
        """
        if callable(uri):
            raise UsageError('a resource needs a URI: @server.resource("data://…")')

        def decorate(function: F) -> F:
            self.add_resource(function, uri, **options)
            return function

        return decorate

    def add_resource(self, function: Callable[..., Any], uri: str, **options: Unpack[ResourceOptions]) -> None:
        """Register `function` as a resource, like `@server.resource`, at any time. Clients are notified."""
        check_options(options, ResourceOptions, "resource")
        self._add("resources", uri, Resource(function, uri, **options), options.get("replace", False))

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template. Clients are notified. Raises `KeyError` if there is none."""
        del self._catalog.resources[uri]
        self._catalog.publish_change("resources")

    def resource_updated(self, uri: str) -> None:
        """Notify the clients that have subscribed to a resource that its contents have changed."""
        self.changes.resource_updated(uri)

    # Prompts

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, called: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    def prompt(self, called: object = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Register a function as a prompt: `@server.prompt`, or with options, `@server.prompt("name", title="…")`.

        The function returns a text, a message (`UserMessage`, `AssistantMessage`), or several of them. Its arguments
        come as text and are converted to their types. `PromptOptions` describes the options.
        """
        return _decorate(self.add_prompt, called, options)

    def add_prompt(self, function: Callable[..., Any], **options: Unpack[PromptOptions]) -> None:
        """Register `function` as a prompt, like `@server.prompt`, at any time. Clients are notified."""
        check_options(options, PromptOptions, "prompt")
        made = Prompt(function, **options)
        self._add("prompts", made.name, made, options.get("replace", False))

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt. Clients are notified. Raises `KeyError` if there is no such prompt."""
        del self._catalog.prompts[name]
        self._catalog.publish_change("prompts")

    def _add(self, feature: Feature, name: str, item: Tool | Resource | Prompt, replace: bool) -> None:
        own: dict[str, Any] = getattr(self._catalog, feature)
        if name in own and not replace:
            raise UsageError(f"{self!r} already has {name!r} among its {feature}; replace=True replaces it")
        own[name] = item
        self._catalog.publish_change(feature)
        if isinstance(item, Tool):
            if item.output.embeds_resources:
                self._catalog.declare_resources()
        elif item.signature.choices():
            self._catalog.declare_completions()

    # Completion

    @overload
    def completion(self, function: F, /) -> F: ...
    @overload
    def completion(self, /) -> Callable[[F], F]: ...
    @overload
    def completion(self, of: str | Callable[..., Any], argument: str, /) -> Callable[[F], F]: ...
    def completion(self, of: Any = None, argument: str | None = None, /) -> Any:
        """Register a function that suggests values for an argument of a prompt, or a variable of a resource template.

        `of` is the name of the prompt, its function, or the URI of the template: `@server.completion("prompt",
        "argument")`. The function gets the text that was typed so far, and the other arguments if it takes a second
        parameter. It returns suggestions; those that do not begin with the text are left out.

        `@server.completion` or `@server.completion()` registers the function for all other requests: it gets `ref`,
        `argument` and `context`. Arguments whose type is a `Literal` or an enum need no function.
        """
        if of is None:
            return self.completion
        if argument is None:
            if isinstance(of, str):
                raise UsageError(f'completion of {of!r}: name the argument, @server.completion({of!r}, "argument")')
            self._completions.set_fallback(of)
            self._catalog.declare_completions()
            return of

        def decorate(function: F) -> F:
            self._completions.add(self._find_completed(of, argument), argument, function)
            self._catalog.declare_completions()
            return function

        return decorate

    def _find_completed(self, of: object, argument: str) -> str:
        """Return the name or URI of a prompt or template. An unknown name may be registered later."""
        items: list[Prompt | Resource] = [*self._catalog.prompts.values(), *self._catalog.resources.values()]
        for item in items:
            name = item.name if isinstance(item, Prompt) else item.uri
            if of in (name, item.signature.function):
                if not item.signature.accepts(argument):
                    raise UsageError(f"completion of {name!r}: it has no argument {argument!r}")
                return name
        if isinstance(of, str):
            return of
        raise UsageError(f"completion of {of!r}: it is neither a prompt nor a resource of this server")

    # Middleware, mounting

    def middleware(self, function: Middleware) -> Middleware:
        """Register a function around every request: `async def f(ctx, params, call_next)`, which returns the result.

        The first one is the outermost. Exceptions of inner functions pass through the outer ones. `ctx.method` is the
        method of the request.
        """
        check_middleware(function)
        self._middleware.append(function)
        return function

    def mount(self, server: Server, prefix: str = "") -> None:
        """Add the tools, resources and prompts of another server, now and whenever they change.

        Its tools and prompts are `prefix_name` here, its resources `scheme://prefix/…`. Its own middleware runs for its
        requests, inside the middleware of this server, and its lifespan inside the lifespan of this server.
        """
        if not isinstance(cast(object, server), Server):
            raise UsageError(f"only a Server can be mounted, not {server!r}")
        if server is self or self in server._catalog.mounted_servers():
            raise UsageError(f"{server!r} cannot be mounted in itself")
        self._catalog.mount(server, server._catalog, prefix)

    # Checking

    def check(self) -> list[Finding]:
        """Return what clients or hosts refuse, and what a model would miss: the rules of `typedmcp check`.

        Raises `ImportError` with what to install if `typedmcp_cli` is missing.
        """
        rules = load_satellite("the check of a server", "cli.checks", "server.check()")
        features: tuple[Feature, ...] = ("tools", "prompts", "resources")
        tools, prompts, resources = ([spec for _, spec in self._specs(each)] for each in features)
        completed = [
            (name, argument, self._catalog.find_item("prompts", name) or self._catalog.resources.get(name))
            for name, argument in self._completions.targets
        ]
        items = rules.check_items(tools, prompts, resources, self._page_size, is_recommended_name)
        return [*items, *rules.check_completions(completed)]

    # Serving

    def run(
        self,
        transport: Literal["stdio", "http"] = "stdio",
        *,
        host: str | None = None,
        port: int | None = None,
        **options: Unpack[AsgiOptions],
    ) -> None:
        """Serve this server over standard input and output, or over HTTP. `typedmcp.serve` describes the options."""
        serve(self, transport, host=host, port=port, **options)

    def __server_config__(self) -> ServerDefaults:
        """Return the defaults for the options of `typedmcp.ServerConfig`."""
        return {
            "info": self.info,
            "instructions": self.instructions,
            "changes": self.changes,
            "capabilities": self.capabilities,
            "lifespans": self._lifespans,
            "input_schema_of": self._input_schema_of,
            "task_support_of": self._task_support_of,
            "extensions": self.extensions,
            "handle": self._handle,
            "call_tool": self._call_tool,
        }

    def _lifespans(self) -> dict[object, Lifespan]:
        """Return the lifespans of this server and of mounted servers, by server."""
        servers = (self, *self._catalog.mounted_servers())
        return {server: server._lifespan for server in servers if server._lifespan is not None}

    def _input_schema_of(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool: empty for an unknown one, None for one that middleware may have.

        Middleware is not asked about the other tools: it may need what a call does not have.
        """
        tool: Tool | MountedItem[Server] | None = self._catalog.items("tools").get(name)
        if tool is not None:
            schema: Mapping[str, Any] = tool.spec.input_schema
            return schema
        return None if self._middleware else {}

    def _task_support_of(self, name: str) -> TaskSupport:
        """Return whether a tool, which may be mounted, runs as a task."""
        tool: Tool | MountedItem[Server] | None = self._catalog.items("tools").get(name)
        if isinstance(tool, Tool):
            return tool.task_support
        return "forbidden" if tool is None else tool.server._task_support_of(tool.name)

    # Requests

    def list_tools(self, params: D.PaginatedRequestParams, ctx: Context) -> MaybeAwaitable[D.ListToolsResult]:
        """Handle `tools/list`."""
        return self._handle(self._list_tools, params, ctx)

    def _list_tools(self, params: D.PaginatedRequestParams, ctx: Context) -> D.ListToolsResult:
        specs = self._specs("tools", ctx)
        if not self._adapters:
            return self._list_result(D.ListToolsResult, "tools", specs, params, ctx)
        for adapt in self._adapters:
            adapted = [(name, adapt(spec, ctx)) for name, spec in specs]
            specs = [(name, spec) for name, spec in adapted if spec is not None]
        made = self._list_result(D.ListToolsResult, "tools", specs, params, ctx)
        made.cache_scope = "private"  # the list depends on the capabilities of the client
        return made

    def call_tool(self, params: D.CallToolRequestParams, ctx: Context) -> MaybeAwaitable[ToolResult]:
        """Handle `tools/call`."""
        if self._middleware:
            return self._handle_within_middleware(self._call_tool, params, ctx)
        try:
            tool = self._tools.get(params.name)  # the fast path: `_call_tool` looks for mounted tools as well
        except AttributeError:
            raise UsageError(
                "Server.call_tool handles a request of a client; to call a tool yourself, use "
                '`async with typedmcp.connect(server) as client: await client.call_tool("name", {…})`'
            ) from None
        return self._call_tool(params, ctx) if tool is None else tool.call(params.arguments, ctx)

    def _call_tool(self, params: D.CallToolRequestParams, ctx: Context) -> MaybeAwaitable[ToolResult]:
        tool: Tool | MountedItem[Server] | None = self._catalog.items("tools").get(params.name)
        if isinstance(tool, Tool):
            return tool.call(params.arguments, ctx)
        if tool is None:
            raise InvalidParamsError(f"unknown tool: {params.name}", {"name": params.name})
        _enter(ctx, tool.server)
        return tool.server.call_tool(params.__replace__(name=tool.name), ctx)

    def list_resources(self, params: D.PaginatedRequestParams, ctx: Context) -> MaybeAwaitable[D.ListResourcesResult]:
        """Handle `resources/list`."""
        return self._handle(self._list_resources, params, ctx)

    def _list_resources(self, params: D.PaginatedRequestParams, ctx: Context) -> D.ListResourcesResult:
        specs = [(uri, spec) for uri, spec in self._specs("resources", ctx) if isinstance(spec, D.Resource)]
        return self._list_result(D.ListResourcesResult, "resources", specs, params, ctx)

    def list_resource_templates(
        self, params: D.PaginatedRequestParams, ctx: Context
    ) -> MaybeAwaitable[D.ListResourceTemplatesResult]:
        """Handle `resources/templates/list`."""
        return self._handle(self._list_resource_templates, params, ctx)

    def _list_resource_templates(self, params: D.PaginatedRequestParams, ctx: Context) -> D.ListResourceTemplatesResult:
        specs = [(uri, spec) for uri, spec in self._specs("resources", ctx) if isinstance(spec, D.ResourceTemplate)]
        return self._list_result(D.ListResourceTemplatesResult, "resource_templates", specs, params, ctx)

    def read_resource(self, params: D.ReadResourceRequestParams, ctx: Context) -> MaybeAwaitable[ReadResult]:
        """Handle `resources/read`."""
        return self._handle(self._read_resource, params, ctx)

    async def _read_resource(self, params: D.ReadResourceRequestParams, ctx: Context) -> ReadResult:
        result = await self._read_own(params.uri, ctx)
        return await self._read_mounted(params, ctx) if result is None else result

    async def _read_own(self, uri: str, ctx: Context) -> ReadResult | None:
        """Read a resource of this server. None if no resource matches."""
        found = self._catalog.find_resource(uri)
        if found is None:
            return None
        resource, values = found
        return await self._await_item(resource.read(uri, values, ctx), ctx, f"resource {uri!r}")

    async def _read_mounted(self, params: D.ReadResourceRequestParams, ctx: Context) -> ReadResult:
        for server, catalog, prefix in self._catalog.mounts:
            inner = remove_prefix(params.uri, prefix)
            if inner is None or catalog.find_item("resources", inner) is None:
                continue
            _enter(ctx, server)
            inner_params = params.__replace__(uri=inner)
            result: ReadResult = await await_if_needed(server.read_resource(inner_params, ctx))
            if not isinstance(result, D.ReadResourceResult):
                return result
            contents = [part.__replace__(uri=add_prefix(part.uri, prefix)) for part in result.contents]
            return result.__replace__(contents=contents)
        raise ResourceNotFoundError(params.uri)

    def authorize_subscriptions(
        self, params: D.SubscriptionsListenRequestParams, ctx: Context
    ) -> MaybeAwaitable[D.SubscriptionFilter]:
        """Return the part of the wanted subscriptions that the middleware lets through: all of it without middleware.

        The middleware is left before the first change is sent.
        """
        return self._handle(self._authorize_subscriptions, params, ctx)

    async def _authorize_subscriptions(
        self, params: D.SubscriptionsListenRequestParams, ctx: Context
    ) -> D.SubscriptionFilter:
        """Return the wanted subscriptions that the scopes of the token and the mounted servers grant."""
        wanted, owner = params.notifications, ctx.owner
        granted = [uri for uri in wanted.resource_subscriptions or () if self._may_subscribe(uri, ctx)]
        for server, _, prefix in self._catalog.mounts:
            inner = {uri: name for uri in granted if (name := remove_prefix(uri, prefix)) is not None}
            if not inner:
                continue
            asked = D.SubscriptionFilter(resource_subscriptions=[*inner.values()])
            _enter(ctx, server)
            try:
                inner_params = params.__replace__(notifications=asked)
                answer = await await_if_needed(server.authorize_subscriptions(inner_params, ctx))
            finally:
                ctx.owner = owner
            allowed = {*(answer.resource_subscriptions or ())}
            granted = [uri for uri in granted if uri not in inner or inner[uri] in allowed]
        return wanted.__replace__(resource_subscriptions=granted)

    def _may_subscribe(self, uri: str, ctx: Context) -> bool:
        """Return whether the token has the scopes of a resource of this server.

        `resources/subscribe` is about one resource, so that its client can be told which scopes are missing.
        """
        found = self._catalog.find_resource(uri) if self._catalog.needs_scopes("resources") else None
        if found is None or ctx.has_scopes(*found[0].scopes):
            return True
        if ctx.method == "resources/subscribe":
            ctx.require_scopes(*found[0].scopes)
        return False

    def list_prompts(self, params: D.PaginatedRequestParams, ctx: Context) -> MaybeAwaitable[D.ListPromptsResult]:
        """Handle `prompts/list`."""
        return self._handle(self._list_prompts, params, ctx)

    def _list_prompts(self, params: D.PaginatedRequestParams, ctx: Context) -> D.ListPromptsResult:
        return self._list_result(D.ListPromptsResult, "prompts", self._specs("prompts", ctx), params, ctx)

    def get_prompt(self, params: D.GetPromptRequestParams, ctx: Context) -> MaybeAwaitable[PromptResult]:
        """Handle `prompts/get`."""
        return self._handle(self._get_prompt, params, ctx)

    def _get_prompt(self, params: D.GetPromptRequestParams, ctx: Context) -> MaybeAwaitable[PromptResult]:
        prompt: Prompt | MountedItem[Server] | None = self._catalog.items("prompts").get(params.name)
        if isinstance(prompt, Prompt):
            return self._await_item(prompt.get(params.arguments or {}, ctx), ctx, f"prompt {params.name!r}")
        if prompt is None:
            raise InvalidParamsError(f"unknown prompt: {params.name}", {"name": params.name})
        _enter(ctx, prompt.server)
        return prompt.server.get_prompt(params.__replace__(name=prompt.name), ctx)

    def complete(self, params: D.CompleteRequestParams, ctx: Context) -> MaybeAwaitable[D.CompleteResult]:
        """Handle `completion/complete`."""
        return self._handle(self._complete, params, ctx)

    async def _complete(self, params: D.CompleteRequestParams, ctx: Context) -> D.CompleteResult:
        is_prompt = isinstance(params.ref, D.PromptReference)
        name: str = params.ref.name if isinstance(params.ref, D.PromptReference) else params.ref.uri
        items = self._catalog.items("prompts" if is_prompt else "resources")
        item: Prompt | Resource | MountedItem[Server] | None = items.get(name)
        if isinstance(item, MountedItem):
            ref = params.ref.__replace__(**{"name" if is_prompt else "uri": item.name})
            _enter(ctx, item.server)
            return await await_if_needed(item.server.complete(params.__replace__(ref=ref), ctx))
        if item is None and not self._completions.has_function_for(name):
            raise InvalidParamsError(f"unknown {'prompt' if is_prompt else 'resource'}: {name}")
        if item is not None:
            ctx.require_scopes(*item.scopes)
        choices: dict[str, list[str]] = {} if item is None else item.signature.choices()
        suggested = await self._completions.suggest(name, params, ctx, choices)
        return to_complete_result(suggested, params.argument.value)

    def explain_unsendable(self, result: Any, error: Exception, ctx: Context) -> Any:
        """Return the result of a failed call in place of one that cannot be encoded, and report its function.

        Raises `RemoteError` for other requests.
        """
        if (feature := _RETURNING.get(ctx.method)) is None:
            raise error
        name = ctx.params.uri if feature == "resources" else ctx.params.name
        item = self._catalog.find_item(feature, name)
        if isinstance(item, Tool):
            return item.reject_result(error, result, ctx)
        if item is None:  # middleware has answered
            raise error
        failure = unsendable(item.signature.function, result, error)
        raise RemoteError(INTERNAL_ERROR, self._visible_text(failure, ctx, f"{feature.removesuffix('s')} {name!r}"))

    async def _await_item(self, made: Awaitable[T], ctx: Context, what: str) -> T:
        """Await a resource or a prompt. Convert exceptions to errors whose text clients may see."""
        try:
            return await made
        except (RemoteError, InputUnavailableError):
            raise
        except Exception as error:
            raise RemoteError(INTERNAL_ERROR, self._visible_text(error, ctx, what)) from error

    def _visible_text(self, error: Exception, ctx: Context, what: str) -> str:
        """Return the text of an exception for clients. Exceptions that they may not see are reported."""
        if isinstance(error, (ToolError, *self._errors)):
            return str(error)
        if isinstance(error, ReturnTypeError):  # its text has the place, which the traceback does not show
            text, error = f"{what} failed: {error}", error.with_traceback(None)
        else:
            text = f"{what} failed: {describe_failure(error)}"
        ctx.report(text, error)
        return text if self.debug else f"internal error in {ctx.method}"

    # Lists

    def _specs(self, feature: Feature, ctx: Context | None = None) -> list[tuple[str, Any]]:
        """Return the items of a feature in lists: all, or those whose scopes the token of a request has."""
        if ctx is None or not self._catalog.needs_scopes(feature):
            return self._catalog.specs(feature)
        items = self._catalog.items(feature).items()
        return [(name, item.spec) for name, item in items if ctx.has_scopes(*item.scopes)]

    def _list_result(
        self,
        kind: Callable[..., T],
        member: Feature | Literal["resource_templates"],
        specs: list[tuple[str, Any]],
        params: D.PaginatedRequestParams,
        ctx: Context,
    ) -> T:
        if params.cursor == "":
            ctx.tolerate("params.cursor: empty, but the first page has no cursor")
        page, next_cursor = paginate(specs, params.cursor or None, self._page_size)
        feature: Feature = "resources" if member == "resource_templates" else member
        cache_scope = "private" if self._catalog.needs_scopes(feature) else self._cache_scope
        made: Any = kind(ttl_ms=int(self._ttl * 1000), cache_scope=cache_scope, **{member: page})
        if next_cursor is not None:
            made.next_cursor = next_cursor
        elif params.cursor is None and not self._catalog.needs_scopes(feature) and self._is_list_own(ctx):
            ctx.encodings = self._encodings.setdefault(kind, EncodedList())
        return cast(T, made)

    def _is_list_own(self, ctx: Context) -> bool:
        """Return whether a list goes to the client as it is: no code of the author can change it, or an item in it."""
        name = ctx.method_codec.handler_name
        function: Any = ctx.config.functions.get(name)
        is_own = getattr(function, "__self__", None) is self and function.__func__ is getattr(Server, name)
        return is_own and not self._middleware and not self._adapters

    # Middleware

    def _handle(self, handle: RequestHandler[P, T], params: P, ctx: Context) -> MaybeAwaitable[T]:
        if self._middleware:
            return self._handle_within_middleware(handle, params, ctx)
        return handle(params, ctx)

    async def _handle_within_middleware(self, handle: RequestHandler[P, T], params: P, ctx: Context) -> T:
        """Handle a request within the middleware, whose exceptions are shown to clients like those of a tool."""
        try:
            return await run_middleware(self._middleware, handle, params, ctx)
        except (RemoteError, InputUnavailableError):
            raise
        except Exception as error:
            if isinstance(error, (ToolError, *self._errors)) and isinstance(params, D.CallToolRequestParams):
                return cast(T, error_result_of(error))
            raise RemoteError(INTERNAL_ERROR, self._visible_text(error, ctx, ctx.method)) from error


def _check_list_options(page: int | None, ttl: float) -> None:
    if page is not None:
        check_integer("page", page)
        if page < 1:
            raise UsageError(f"page must be at least 1, not {page}")
    check_seconds("ttl", ttl)
    if not 0 <= ttl < inf:
        raise UsageError(f"ttl must be at least 0 seconds, not {ttl:g}")


def _decorate(add: Callable[..., None], called: object, options: Any) -> Any:
    """Register a function at once, or return a decorator that does so. `called` is the function, a name, or None."""
    if callable(called):
        add(called, **options)
        return called
    if called is not None:
        if not isinstance(called, str):
            raise UsageError(f"expected a function or a name, not {called!r}")
        if options.setdefault("name", called) != called:
            raise UsageError(f"two names are given: {called!r} and {options['name']!r}")

    def decorate(function: F) -> F:
        add(function, **options)
        return function

    return decorate


def _enter(ctx: Context, server: Server) -> None:
    """Switch the context to a mounted server, which handles the request from now on."""
    ctx.owner = server
