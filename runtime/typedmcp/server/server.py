"""Servers made of functions: each a tool, a resource or a prompt, with its types for a schema."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, Unpack, cast, overload
from weakref import WeakSet, ref

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array
from typedmcp import dialect
from typedmcp.changes import Change, Changes, Listener
from typedmcp.context import Context
from typedmcp.errors import (
    INTERNAL_ERROR,
    InputUnavailable,
    InvalidParams,
    RemoteError,
    ResourceNotFound,
    ToolError,
    UsageError,
)
from typedmcp.lifespan import Lifespan
from typedmcp.server.completion import Completions, completed
from typedmcp.server.failures import described, told
from typedmcp.server.options import CallNext, Middleware, PromptOptions, ResourceOptions, ToolOptions
from typedmcp.server.parts import check_errors, parts_of
from typedmcp.server.prompts import Prompt
from typedmcp.server.resources import Resource
from typedmcp.server.tools import Tool
from typedmcp.serving import serve

__all__ = ["Server"]

D = dialect.structs
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_PLACES = 9
"""How many digits the place in a cursor may have."""

_Feature: TypeAlias = Literal["tools", "resources", "prompts"]


class _Mount(NamedTuple):
    server: Server
    prefix: str


class _Elsewhere(NamedTuple):
    """Something of a server that is mounted in this one: its name there, and what this server says of it."""

    server: Server
    name: str
    spec: Any


class Server:
    """A server whose tools, resources and prompts are functions. It is a handler, for `serve`, `asgi` and `connect`.

    `name`, `version`, `title`, `description`, `website_url` and `icons` are who it says it is, `instructions` what
    models are told of it. `lifespan` is a function that gets the server and gives an async context manager, which is
    entered before the first request and left after the last: what it yields is `ctx.lifespan`. `debug` tells clients
    what exceptions say that they would not hear of. `errors` are exceptions whose text they may always see. `page` is
    how many items a page of a list has, `ttl` how many seconds lists may be kept, and `public` whether by everybody.

    ```python
    server = typedmcp.Server("weather")

    @server.tool
    async def forecast(city: str, days: int = 3) -> str:
        "The weather to come."
        return f"rain in {city}, for {days} days"

    server.run()
    ```
    """

    def __init__(
        self,
        name: str = "server",
        *,
        version: str = "0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[D.Icon | Mapping[str, Any] | str] | None = None,
        lifespan: Lifespan | None = None,
        middleware: Sequence[Middleware] = (),
        debug: bool = False,
        errors: tuple[type[Exception], ...] = (),
        page: int | None = None,
        ttl: float = 0.0,
        public: bool = False,
    ) -> None:
        if page is not None and page < 1:
            raise UsageError(f"page must be positive, not {page}")
        if lifespan is not None and not callable(lifespan):
            raise UsageError(f"a lifespan is a function that gives an async context manager, not {lifespan!r}")
        check_errors(f"server {name!r}", errors)
        members = parts_of(
            f"server {name!r}", title=title, description=description, website_url=website_url, icons=icons
        )
        self.info: D.Implementation = D.Implementation(name=name, version=version, **members)
        self.instructions = instructions
        self.changes: Changes = Changes()
        """The hub that clients hear from, when tools, resources or prompts come and go."""
        self.capabilities: D.ServerCapabilities = D.ServerCapabilities(logging={})
        self.debug = debug
        self._errors = errors
        self._page, self._ttl, self._scope = page, ttl, "public" if public else "private"
        self._lifespan = lifespan
        self._middleware: list[Middleware] = []
        for each in middleware:
            self.middleware(each)
        self._tools: dict[str, Tool] = {}
        self._resources: dict[str, Resource] = {}
        self._prompts: dict[str, Prompt] = {}
        self._completions: Completions = Completions()
        self._mounts: list[_Mount] = []
        self._parents: WeakSet[Server] = WeakSet()
        self._found: dict[_Feature, dict[str, Any]] = {}
        """All there is of each feature, mounted servers included, until something changes."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.info.name

    def __repr__(self) -> str:
        return f"<Server {self.name!r}>"

    # Tools

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, called: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, called: Any = None, /, **options: Any) -> Any:
        """Make a function a tool: `@server.tool`, or with options, `@server.tool("name", title="…")`.

        Its signature says what it takes, its annotation what it returns, its docstring what it is for. The function
        itself stays as it is. See `ToolOptions`. Raises `UsageError`, with the names of function and parameter, for one
        that cannot be a tool.
        """
        return _decorated(self.add_tool, called, options)

    def add_tool(self, function: Callable[..., Any], **options: Unpack[ToolOptions]) -> None:
        """The same without a decorator, at any time: clients are told that the list has changed."""
        replace = _checked(options, ToolOptions).pop("replace", False)
        made = Tool(function, debug=self.debug, shown=self._errors, **options)  # type: ignore[misc]
        self._add(self._tools, made.name, made, "tools", replace)

    def remove_tool(self, name: str) -> None:
        """Take a tool away, and tell clients. Raises `KeyError` if there is none."""
        del self._tools[name]
        self._changed("tools")

    # Resources

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Make a function a resource, or, where its URI has variables, a template of resources.

        With `@server.resource("weather://{city}/now")` it takes what is in braces.
        A text, bytes, data that becomes JSON, or a list of contents is what it may return. See `ResourceOptions` and
        `typedmcp.server.templates`. Raises `UsageError` for a function that does not fit its URI.
        """
        if callable(uri):
            raise UsageError('a resource needs a URI: @server.resource("data://…")')

        def decorate(function: F) -> F:
            self.add_resource(function, uri, **options)
            return function

        return decorate

    def add_resource(self, function: Callable[..., Any], uri: str, **options: Unpack[ResourceOptions]) -> None:
        """The same without a decorator, at any time: clients are told that the list has changed."""
        replace = _checked(options, ResourceOptions).pop("replace", False)
        self._add(self._resources, uri, Resource(function, uri, **options), "resources", replace)  # type: ignore[misc]

    def remove_resource(self, uri: str) -> None:
        """Take a resource or a template away, and tell clients. Raises `KeyError` if there is none."""
        del self._resources[uri]
        self._changed("resources")

    def resource_updated(self, uri: str) -> None:
        """Tell those clients that want to know that what is at a URI is another than before."""
        self.changes.resource_updated(uri)

    # Prompts

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, called: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    def prompt(self, called: Any = None, /, **options: Any) -> Any:
        """Make a function a prompt: `@server.prompt`, or with options, `@server.prompt("name", title="…")`.

        It returns a text, a message (`UserMessage`, `AssistantMessage`), or several. Arguments come as text; other
        types are read out of it. See `PromptOptions`.
        """
        return _decorated(self.add_prompt, called, options)

    def add_prompt(self, function: Callable[..., Any], **options: Unpack[PromptOptions]) -> None:
        """The same without a decorator, at any time: clients are told that the list has changed."""
        replace = _checked(options, PromptOptions).pop("replace", False)
        made = Prompt(function, **options)  # type: ignore[misc]
        self._add(self._prompts, made.name, made, "prompts", replace)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt away, and tell clients. Raises `KeyError` if there is none."""
        del self._prompts[name]
        self._changed("prompts")

    # Completion

    @overload
    def completion(self, function: F, /) -> F: ...
    @overload
    def completion(self, of: str | Callable[..., Any], argument: str, /) -> Callable[[F], F]: ...
    def completion(self, of: Any, argument: str | None = None, /) -> Any:
        """Make a function suggest values for an argument of a prompt, or a variable of a resource template.

        `@server.completion("prompt", "argument")`, or with the prompt's function, or the template's URI, in the place
        of its name: the function gets what was typed so far, and, if it takes another parameter, the arguments that
        are known already. It returns suggestions, of which those that begin otherwise are left out.

        `@server.completion` alone gets `ref`, `argument` and `context` of every request that no other takes. Arguments
        whose type is `Literal` or an enum are completed without any.
        """
        if argument is None:
            if isinstance(of, str):
                raise UsageError(f'completion of {of!r}: which argument? @server.completion({of!r}, "argument")')
            self._completions.fall_back(of)
            self._changed_completions()
            return of

        def decorate(function: F) -> F:
            self._completions.add(self._completed_by(of, argument), argument, function)
            self._changed_completions()
            return function

        return decorate

    def _completed_by(self, of: Any, argument: str) -> str:
        """What an argument is one of, by its name or URI. What a name stands for may come later."""
        there: list[Prompt | Resource] = [*self._prompts.values(), *self._resources.values()]
        for found in there:
            name = found.name if isinstance(found, Prompt) else found.uri
            if of in (name, found.signature.function):
                if not found.signature.takes(argument):
                    raise UsageError(f"completion of {name!r}: it has no argument {argument!r}")
                return name
        if isinstance(of, str):
            return of
        raise UsageError(f"completion of {of!r}: it is neither a prompt nor a resource of this server")

    def _changed_completions(self) -> None:
        self.capabilities.completions = {}
        for parent in self._parents:
            parent._changed_completions()

    # Middleware, mounting

    def middleware(self, function: Middleware) -> Middleware:
        """Put a function around every request: `async def f(ctx, params, call_next)`, which gives the result.

        The first one added is the outermost. What raises inside is seen outside; `ctx.method` says what it is about.
        """
        if not _takes_three(function):
            raise UsageError(f"{function!r} is no middleware: an async function of (ctx, params, call_next) is")
        self._middleware.append(function)
        return function

    def mount(self, server: Server, prefix: str = "") -> None:
        """Show what another server has as this one's.

        Its tools and prompts are `prefix_name` here, its resources `scheme://prefix/…`. It stays what it is: what comes
        and goes there, comes and goes here. Its middleware is around its own requests, within this server's, and its
        lifespan within this one's.
        """
        if not isinstance(cast(Any, server), Server):
            raise UsageError(f"{server!r} cannot be mounted: it is no Server")
        if server is self or self in server._all_mounted():
            raise UsageError(f"{server!r} cannot be mounted in itself")
        self._mounts.append(_Mount(server, prefix))
        server._parents.add(self)
        server.changes.listen(_outwards(ref(self), prefix))
        for feature in ("tools", "resources", "prompts"):
            if server._everything(feature):
                self._changed(feature)
        if server.capabilities.completions is not UNSET:
            self._changed_completions()

    def _all_mounted(self) -> list[Server]:
        return [inner for mount in self._mounts for inner in (mount.server, *mount.server._all_mounted())]

    # Serving

    def run(self, transport: Literal["stdio", "http"] = "stdio", **options: Any) -> None:
        """Serve it, until it is told to end: over standard input and output, or `"http"`. See `typedmcp.serve`."""
        serve(self, transport, **options)

    def __service__(self) -> dict[str, Any]:
        """What serves it, unless it is told otherwise. See `typedmcp.Service`."""
        return {
            "info": self.info,
            "instructions": self.instructions,
            "changes": self.changes,
            "capabilities": self.capabilities,
            "lifespans": self._lifespans,
        }

    def _lifespans(self) -> dict[object, Lifespan]:
        """Its lifespan and those of what is mounted in it, by server."""
        found: dict[object, Lifespan] = {}
        for server in (self, *self._all_mounted()):
            if server._lifespan is not None:
                found[server] = server._lifespan
        return found

    # What is there

    def _add(self, to: dict[str, Any], name: str, item: Any, feature: _Feature, replace: bool) -> None:
        if name in to and not replace:
            raise UsageError(f"{self!r} has {name!r} among its {feature} already; replace=True takes its place")
        to[name] = item
        if isinstance(item, Prompt | Resource) and item.signature.choices():
            self._changed_completions()
        self._changed(feature)

    def _changed(self, feature: _Feature) -> None:
        self._found.pop(feature, None)
        if feature == "tools":
            self.capabilities.tools = D.ServerCapabilitiesTools(list_changed=True)
            self.changes.tools_changed()
        elif feature == "prompts":
            self.capabilities.prompts = D.ServerCapabilitiesPrompts(list_changed=True)
            self.changes.prompts_changed()
        else:
            self.capabilities.resources = D.ServerCapabilitiesResources(list_changed=True, subscribe=True)
            self.changes.resources_changed()
        for parent in self._parents:
            parent._changed(feature)

    def _everything(self, feature: _Feature) -> dict[str, Any]:
        """All there is of a feature, by name or URI."""
        found = self._found.get(feature)
        if found is None:
            own: dict[str, Any] = getattr(self, f"_{feature}")
            found = self._found[feature] = {**own}
            for server, prefix in self._mounts:
                for name, item in server._everything(feature).items():
                    shown = _shown_as(name, prefix, feature)
                    found.setdefault(shown, _Elsewhere(server, name, _shown(item.spec, prefix, feature)))
        return found

    # Requests

    def list_tools(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """`tools/list`."""
        return self._through(self._list_tools, params, ctx)

    def _list_tools(self, params: D.PaginatedRequestParams, _: Context) -> D.ListToolsResult:
        items, more = self._paged([*self._everything("tools").items()], params.cursor)
        return self._list(D.ListToolsResult, more, tools=items)

    def call_tool(self, params: D.CallToolRequestParams, ctx: Context) -> Any:
        """`tools/call`."""
        if self._middleware:
            return self._around(self._call_tool, params, ctx)
        tool = self._tools.get(params.name)  # the hot path: what is mounted is looked for below
        return self._call_tool(params, ctx) if tool is None else tool.call(params.arguments, ctx)

    def _call_tool(self, params: D.CallToolRequestParams, ctx: Context) -> Any:
        tool = self._everything("tools").get(params.name)
        if isinstance(tool, Tool):
            return tool.call(params.arguments, ctx)
        if tool is None:
            raise InvalidParams(f"unknown tool: {params.name}", {"name": params.name})
        _enter(ctx, tool.server)
        return tool.server.call_tool(msgspec.structs.replace(params, name=tool.name), ctx)

    def list_resources(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """`resources/list`."""
        return self._through(self._list_resources, params, ctx)

    def _list_resources(self, params: D.PaginatedRequestParams, _: Context) -> D.ListResourcesResult:
        items, more = self._paged(self._of_kind(D.Resource), params.cursor)
        return self._list(D.ListResourcesResult, more, resources=items)

    def list_resource_templates(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """`resources/templates/list`."""
        return self._through(self._list_resource_templates, params, ctx)

    def _list_resource_templates(self, params: D.PaginatedRequestParams, _: Context) -> D.ListResourceTemplatesResult:
        items, more = self._paged(self._of_kind(D.ResourceTemplate), params.cursor)
        return self._list(D.ListResourceTemplatesResult, more, resource_templates=items)

    def _of_kind(self, kind: type) -> list[tuple[str, Any]]:
        return [(uri, item) for uri, item in self._everything("resources").items() if isinstance(item.spec, kind)]

    def read_resource(self, params: D.ReadResourceRequestParams, ctx: Context) -> Any:
        """`resources/read`."""
        return self._through(self._read_resource, params, ctx)

    async def _read_resource(self, params: D.ReadResourceRequestParams, ctx: Context) -> Any:
        found = await self._contents(params, ctx)
        if not is_array(found):
            return found
        return D.ReadResourceResult(contents=found, ttl_ms=0, cache_scope="private", result_type="complete")

    async def _contents(self, params: D.ReadResourceRequestParams, ctx: Context) -> Any:
        uri = params.uri
        exact = self._resources.get(uri)
        if exact is not None and exact.template is None:
            return await self._told(exact.read(uri, {}, ctx), ctx, f"resource {uri!r}")
        for resource in self._resources.values():
            if (values := resource.match(uri)) is not None:
                return await self._told(resource.read(uri, values, ctx), ctx, f"resource {uri!r}")
        for server, prefix in self._mounts:
            inner = _unprefixed(uri, prefix)
            if inner is None or not server._has_resource(inner):
                continue
            _enter(ctx, server)
            result = await server.read_resource(msgspec.structs.replace(params, uri=inner), ctx)
            if not isinstance(result, D.ReadResourceResult):
                return result
            shown = [msgspec.structs.replace(part, uri=_prefixed(part.uri, prefix)) for part in result.contents]
            return msgspec.structs.replace(result, contents=shown)
        raise ResourceNotFound(uri)

    def _has_resource(self, uri: str) -> bool:
        return (
            uri in self._resources
            or any(resource.match(uri) is not None for resource in self._resources.values())
            or any(
                (inner := _unprefixed(uri, prefix)) is not None and server._has_resource(inner)
                for server, prefix in self._mounts
            )
        )

    def list_prompts(self, params: D.PaginatedRequestParams, ctx: Context) -> Any:
        """`prompts/list`."""
        return self._through(self._list_prompts, params, ctx)

    def _list_prompts(self, params: D.PaginatedRequestParams, _: Context) -> D.ListPromptsResult:
        items, more = self._paged([*self._everything("prompts").items()], params.cursor)
        return self._list(D.ListPromptsResult, more, prompts=items)

    def get_prompt(self, params: D.GetPromptRequestParams, ctx: Context) -> Any:
        """`prompts/get`."""
        return self._through(self._get_prompt, params, ctx)

    def _get_prompt(self, params: D.GetPromptRequestParams, ctx: Context) -> Any:
        prompt = self._everything("prompts").get(params.name)
        if isinstance(prompt, Prompt):
            return self._told(prompt.get(params.arguments or {}, ctx), ctx, f"prompt {params.name!r}")
        if prompt is None:
            raise InvalidParams(f"unknown prompt: {params.name}", {"name": params.name})
        _enter(ctx, prompt.server)
        return prompt.server.get_prompt(msgspec.structs.replace(params, name=prompt.name), ctx)

    def complete(self, params: D.CompleteRequestParams, ctx: Context) -> Any:
        """`completion/complete`."""
        return self._through(self._complete, params, ctx)

    async def _complete(self, params: D.CompleteRequestParams, ctx: Context) -> Any:
        is_prompt = isinstance(params.ref, D.PromptReference)
        name: str = params.ref.name if isinstance(params.ref, D.PromptReference) else params.ref.uri
        there = self._everything("prompts" if is_prompt else "resources")
        item: Prompt | Resource | _Elsewhere | None = there.get(name)
        if isinstance(item, _Elsewhere):
            ref = msgspec.structs.replace(params.ref, **{"name" if is_prompt else "uri": item.name})
            _enter(ctx, item.server)
            return await _awaited(item.server.complete(msgspec.structs.replace(params, ref=ref), ctx))
        if item is None and not self._completions.knows(name):
            raise InvalidParams(f"nothing to complete: there is no {'prompt' if is_prompt else 'resource'} {name!r}")
        choices: dict[str, list[str]] = {} if item is None else item.signature.choices()
        return completed(await self._completions.suggest(name, params, ctx, choices), params.argument.value)

    async def _told(self, made: Awaitable[T], ctx: Context, what: str) -> T:
        """What a resource or a prompt gives; where it fails, with what clients may know of that."""
        try:
            return await made
        except (RemoteError, InputUnavailable):
            raise
        except Exception as error:
            raise RemoteError(INTERNAL_ERROR, self._said(error, ctx, what)) from error

    def _said(self, error: Exception, ctx: Context, what: str) -> str:
        """What a client hears of an exception; the operator hears of those that it should not know."""
        if isinstance(error, (ToolError, *self._errors)):
            return str(error)
        ctx.report(f"{what} failed: {described(error)}", error)
        return f"{what} failed: {described(error)}" if self.debug else f"internal error in {ctx.method}"

    # Lists

    def _paged(self, items: list[tuple[str, Any]], cursor: Any) -> tuple[list[Any], str | None]:
        """A page of a list. A cursor is a place in it, and the name of the item before that."""
        start = 0
        if isinstance(cursor, str):
            place, _, name = cursor.partition(":")
            if not place.isdecimal() or len(place) > _PLACES:
                raise InvalidParams("the cursor leads nowhere: begin again without one", {"cursor": cursor})
            names = [name for name, _ in items]
            # Where that item is gone, others of its page may be, too: better named twice than not at all.
            start = names.index(name) + 1 if name in names else max(0, int(place) - (self._page or 0))
        end = len(items) if self._page is None else start + self._page
        return [item.spec for _, item in items[start:end]], f"{end}:{items[end - 1][0]}" if end < len(items) else None

    def _list(self, kind: Callable[..., T], more: str | None, **items: Any) -> T:
        made: Any = kind(ttl_ms=int(self._ttl * 1000), cache_scope=self._scope, result_type="complete", **items)
        if more is not None:
            made.next_cursor = more
        return cast(T, made)

    # Middleware

    def _through(self, inner: Callable[[Any, Context], Any], params: Any, ctx: Context) -> Any:
        return self._around(inner, params, ctx) if self._middleware else inner(params, ctx)

    async def _around(self, inner: Callable[[Any, Context], Any], params: Any, ctx: Context) -> Any:
        """A request, with all middleware around it. What may be told of an exception there, is told as of a tool's."""
        try:
            return await self._step(0, inner, params, ctx)
        except (RemoteError, InputUnavailable):
            raise
        except Exception as error:
            if isinstance(error, (ToolError, *self._errors)) and isinstance(params, D.CallToolRequestParams):
                return told(error)
            raise RemoteError(INTERNAL_ERROR, self._said(error, ctx, ctx.method)) from error

    async def _step(self, index: int, inner: Callable[[Any, Context], Any], params: Any, ctx: Context) -> Any:
        if index == len(self._middleware):
            return await _awaited(inner(params, ctx))

        def call_next(changed: Any = None) -> Any:
            return self._step(index + 1, inner, params if changed is None else changed, ctx)

        return await _awaited(self._middleware[index](ctx, params, cast(CallNext, call_next)))


def _decorated(add: Callable[..., None], name: Any, options: dict[str, Any]) -> Any:
    """A decorator that was given options, or the function at once."""
    if callable(name):
        add(name, **options)
        return name
    if name is not None:
        if not isinstance(name, str):
            raise UsageError(f"a function or a name, not {name!r}")
        if options.setdefault("name", name) != name:
            raise UsageError(f"two names: {name!r} and {options['name']!r}")

    def decorate(function: Any) -> Any:
        add(function, **options)
        return function

    return decorate


def _checked(options: Any, kind: Any) -> Any:
    """Options, all of which there are. Raises `UsageError` for others."""
    if unknown := sorted(options.keys() - kind.__annotations__.keys()):
        known = ", ".join(sorted(kind.__annotations__))
        what = kind.__name__.removesuffix("Options").lower()
        raise UsageError(f"a {what} has no option {unknown[0]!r}; there are {known}")
    return options


def _takes_three(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        return False
    return True


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _outwards(parent: ref[Server], prefix: str) -> Listener:
    """Has an outer server tell of resources that change in one that is mounted in it."""

    def hear(change: Change, uri: str | None) -> None:
        outer = parent()
        if change == "resource" and uri is not None and outer is not None:
            outer.changes.resource_updated(_prefixed(uri, prefix))

    return hear


def _enter(ctx: Context, server: Server) -> None:
    """A request goes on to a server that is mounted: what is its own is what the context has from now on."""
    ctx.owner = server


def _shown_as(name: str, prefix: str, feature: _Feature) -> str:
    if not prefix:
        return name
    return _prefixed(name, prefix) if feature == "resources" else f"{prefix}_{name}"


def _shown(spec: Any, prefix: str, feature: _Feature) -> Any:
    """What is said of something that is mounted: the same, under its name here."""
    member = "uri" if isinstance(spec, D.Resource) else "uri_template"
    if feature != "resources":
        member = "name"
    return msgspec.structs.replace(spec, **{member: _shown_as(getattr(spec, member), prefix, feature)})


def _prefixed(uri: str, prefix: str) -> str:
    scheme, separator, rest = _split(uri)
    return f"{scheme}{separator}{prefix}/{rest}" if prefix else uri


def _unprefixed(uri: str, prefix: str) -> str | None:
    """A URI as it is in a server that is mounted; None for one that is not there."""
    if not prefix:
        return uri
    scheme, separator, rest = _split(uri)
    return f"{scheme}{separator}{rest.removeprefix(prefix + '/')}" if rest.startswith(f"{prefix}/") else None


def _split(uri: str) -> tuple[str, str, str]:
    """A URI before, at and behind what ends its scheme."""
    return uri.partition("://" if "://" in uri else ":")
