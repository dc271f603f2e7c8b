"""Groups: the tools, prompts and resources of several servers in one list, and calls routed to their server."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, Unpack, overload

import msgspec

from typedmcp import CallOptions, Client, ConnectOptions, Diagnostic
from typedmcp.building import check_seconds, deliver_diagnostic, log_failure, visible
from typedmcp.client import Arguments
from typedmcp.dialect import structs
from typedmcp.errors import Error, InvalidParamsError, MethodNotFoundError, ResourceNotFoundError, UsageError
from typedmcp_hosts.config import Config, ServerEntry, load_entries

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["ClientGroup", "connect_all"]

T = TypeVar("T")

_Feature: TypeAlias = Literal["tools", "prompts", "resources", "resource_templates"]
_Named: TypeAlias = Literal["tools", "prompts"]

_log = logging.getLogger("typedmcp")

_TEMPLATE_EXPRESSION = re.compile(r"\{[^{}]*\}")
_LISTED_NAMES: Final = 20
"""Names that an error lists."""


def connect_all(
    config: Config,
    *,
    separator: str = "_",
    on_failure: Callable[[str, Exception], object] | None = None,
    wait_seconds: float = 30.0,
    **options: Unpack[ConnectOptions],
) -> ClientGroup:
    """Return clients for several servers. Enter them with `async with`, or use `await` and `close()`.

    `config` is a file or a mapping as for `load_config`, or a mapping of names to targets of `connect`. Disabled
    servers are left out. With more than one server, tools and prompts are called `server_name`, with this `separator`.

    The group connects to all servers at once. A server that fails is in `failures`, and the others work without it.
    `on_failure` gets its name and the error, at the start and later. Without it, failures are logged. The group waits
    at most `wait_seconds`. A server that takes longer is reported, and joins the group when it is connected.

    `options` are those of `connect`, for every server; options for URLs apply to every URL. Raises `UsageError` for a
    configuration without servers; an entry that is not valid is a server that fails.
    """
    check_seconds("wait_seconds", wait_seconds)
    entries = load_entries(config, options.get("on_diagnostic"))
    enabled = {name: entry for name, entry in entries.items() if not entry.disabled}
    return ClientGroup(enabled, separator=separator, on_failure=on_failure, wait_seconds=wait_seconds, options=options)


class ClientGroup:
    """Clients of several servers. `connect_all` makes it."""

    def __init__(
        self,
        entries: Mapping[str, ServerEntry],
        *,
        separator: str,
        on_failure: Callable[[str, Exception], object] | None,
        wait_seconds: float,
        options: ConnectOptions,
    ) -> None:
        self.clients: Mapping[str, Client] = {}
        """The clients of the connected servers by name, in order. Replaced when a server joins later."""
        self.failures: dict[str, Exception] = {}
        """The error of each server that could not be connected to."""
        self._entries = entries
        self._on_failure = on_failure
        self._wait_seconds = wait_seconds
        self._options = options
        names = sorted(entries, key=len, reverse=True)
        self._prefixes = {name: f"{name}{separator}" if len(names) > 1 else "" for name in names}
        """The prefix of each server's names. The longest comes first, since it is the most specific."""
        self._all_clients: dict[str, Client] | None = None
        self._opening: dict[str, asyncio.Task[None]] = {}
        """The connections that are being opened."""
        self._is_closed = False
        self._listed: dict[_Feature, dict[str, frozenset[str]]] = {}
        """The names, URIs or templates that each server has listed."""

    # Opening and closing

    async def __aenter__(self) -> ClientGroup:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, ClientGroup]:
        return self.__aenter__().__await__()

    async def open(self) -> None:
        """Connect to all servers, unless that is done already. If it is cancelled, all connections are closed."""
        if self._is_closed:
            raise UsageError("the group has been closed; connect again")
        if self._all_clients is not None:
            return
        self._all_clients = dict(self._connect_entries())
        loop = asyncio.get_running_loop()
        self._opening = {name: loop.create_task(self._open(name, each)) for name, each in self._all_clients.items()}
        try:
            if self._opening:
                await asyncio.wait(self._opening.values(), timeout=self._wait_seconds)
        except BaseException:
            await self.close()
            raise
        for name in self._opening:
            text = f"not connected within {self._wait_seconds:g} s (wait_seconds); it joins the group when it is"
            self._report(name, Error(text))

    def _connect_entries(self) -> Iterator[tuple[str, Client]]:
        for name, entry in self._entries.items():
            try:
                yield name, entry.connect(**entry.select_options(self._options))
            except Error as error:
                self._fail(name, error)

    async def _open(self, name: str, client: Client) -> None:
        try:
            await client.open()
            connected = {*self.clients, name}
            self.clients = {each: one for each, one in (self._all_clients or {}).items() if each in connected}
        except Exception as error:
            self._fail(name, error)
            await self._close(name, client)
        finally:
            del self._opening[name]

    def _fail(self, name: str, error: Exception) -> None:
        self.failures[name] = error
        self._report(name, error)

    def _report(self, name: str, error: Exception) -> None:
        if self._on_failure is None:
            _log.warning("server %r: %s", name, visible(str(error)))
            return
        try:
            self._on_failure(name, error)
        except Exception as failure:
            log_failure(logging.ERROR, "on_failure failed", failure)

    async def close(self) -> None:
        """End all connections. Failures are reported."""
        self._is_closed = True
        for task in (opening := [*self._opening.values()]):
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.gather(*(self._close(name, client) for name, client in (self._all_clients or {}).items()))

    async def _close(self, name: str, client: Client) -> None:
        try:
            await client.close()
        except Exception as error:
            self._report(name, error)

    # Lists

    async def list_tools(self, **options: Unpack[CallOptions]) -> list[structs.Tool]:
        """Return the tools of all servers. A server that fails is reported and left out."""
        return await self._list_named("tools", options)

    async def list_prompts(self, **options: Unpack[CallOptions]) -> list[structs.Prompt]:
        """Return the prompts of all servers. A server that fails is reported and left out."""
        return await self._list_named("prompts", options)

    async def list_resources(self, **options: Unpack[CallOptions]) -> list[structs.Resource]:
        """Return the resources of all servers. A server that fails is reported and left out."""
        return [item for _, items in await self._list("resources", "uri", options) for item in items]

    async def list_resource_templates(self, **options: Unpack[CallOptions]) -> list[structs.ResourceTemplate]:
        """Return the resource templates of all servers. A server that fails is reported and left out."""
        return [item for _, items in await self._list("resource_templates", "uri_template", options) for item in items]

    async def tools(self, **options: Unpack[CallOptions]) -> AsyncIterator[structs.Tool]:
        """Iterate over the tools of all servers, as `list_tools` returns them."""
        for tool in await self.list_tools(**options):
            yield tool

    async def _list_named(self, feature: _Named, options: CallOptions) -> list[Any]:
        """Return tools or prompts under their names in the group. Leave out names that belong to another server."""
        listed: list[Any] = []
        for server, items in await self._list(feature, "name", options):
            for item in items:
                name = self._prefixes[server] + item.name
                owner, _ = self._route(feature, name)
                if owner == server:
                    listed.append(msgspec.structs.replace(item, name=name))
                else:
                    text = f"{feature}: {item.name!r} is left out, since {owner} has {name!r}"
                    self._report(server, UsageError(text))
        return listed

    async def _list(self, feature: _Feature, key: str, options: CallOptions) -> list[tuple[str, list[Any]]]:
        """Return the list of each server. `key` is the attribute by which items are routed."""
        lists = await asyncio.gather(*(self._list_one(name, feature, options) for name in self.clients))
        found = [(name, items) for name, items in zip(self.clients, lists, strict=True) if items is not None]
        self._listed.setdefault(feature, {}).update(
            {name: frozenset(getattr(item, key) for item in items) for name, items in found}
        )
        return found

    async def _list_one(self, name: str, feature: _Feature, options: CallOptions) -> list[Any] | None:
        """Return the list of one server, or None if the server fails."""
        client = self.clients[name]
        if not _has(client, "resources" if feature == "resource_templates" else feature):
            return []
        try:
            off = self._entries[name].disabled_tools if feature == "tools" else frozenset[str]()
            return [item async for item in getattr(client, feature)(**options) if getattr(item, "name", "") not in off]
        except MethodNotFoundError:  # a server with resources need not have templates
            return []
        except Exception as error:
            self._report(name, error)
            return None

    # Calls

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: None = None,
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> structs.CallToolResult: ...

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: TypeForm[T],
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> T: ...

    async def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: Any = None,
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a tool by its name in the group. See `Client.call_tool`.

        Raises `UsageError` for an unknown name, and for a tool that the configuration switches off.
        """
        server, own_name = self._route("tools", name)
        if own_name in self._entries[server].disabled_tools:
            raise UsageError(f"tools: {name!r} is switched off by disabledTools of the server {server!r}")
        return await self._client(server).call_tool(
            own_name, arguments, result_type=result_type, raise_on_error=raise_on_error, **options
        )

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`, or log it, as is done with those of the client itself.

        It is for libraries that build on the client.
        """
        deliver_diagnostic(diagnostic, self._options.get("on_diagnostic"))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> structs.GetPromptResult:
        """Get a prompt by its name in the group. See `Client.get_prompt`."""
        server, own_name = self._route("prompts", name)
        return await self._client(server).get_prompt(own_name, arguments, **options)

    async def read_resource(
        self, uri: str, server: str | None = None, **options: Unpack[CallOptions]
    ) -> structs.ReadResourceResult:
        """Read a resource: from `server`, or the server that listed it, or the first server that finds it.

        Servers with a template that fits the URI are tried before others. Raises `ResourceNotFoundError` if no server
        finds it, or the error of a server that failed.
        """
        listed = next((name for name, uris in self._listed.get("resources", {}).items() if uri in uris), None)
        only = server or listed
        if only is not None:
            return await self._client(only).read_resource(uri, **options)
        first_error: Error | None = None
        for name in self._rank_servers(uri):
            try:
                return await self.clients[name].read_resource(uri, **options)
            except UsageError:
                raise
            except (InvalidParamsError, MethodNotFoundError):
                continue
            except Error as error:
                first_error = first_error or error
        raise first_error or ResourceNotFoundError(uri)

    def _rank_servers(self, uri: str) -> list[str]:
        """Return the servers with resources. Those with the most specific template for the URI come first."""
        templates = self._listed.get("resource_templates", {})
        servers = [name for name, client in self.clients.items() if _has(client, "resources")]
        scores = {
            name: max((_match_template(uri, each) for each in templates.get(name, ())), default=-1) for name in servers
        }
        return sorted(servers, key=lambda name: -scores[name])

    def _route(self, feature: _Named, name: str) -> tuple[str, str]:
        """Return the server of a name, and the name on that server. Listed names take precedence over prefixes."""
        listed = self._listed.get(feature, {})
        candidates = [
            (server, name.removeprefix(prefix))
            for server, prefix in self._prefixes.items()
            if name.startswith(prefix) and name != prefix
        ]
        in_lists = [(server, own_name) for server, own_name in candidates if own_name in listed.get(server, ())]
        for route in (*in_lists, *candidates):
            return route
        raise UsageError(f"{feature}: unknown name {name!r}; {self._describe_names(feature)}")

    def _describe_names(self, feature: _Named) -> str:
        listed = self._listed.get(feature, {})
        names = [self._prefixes[server] + own_name for server in listed for own_name in sorted(listed[server])]
        if names:
            more = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
            return f"known: {', '.join(names[:_LISTED_NAMES])}{more}"
        if self._prefixes:
            return f"names begin with {' or '.join(self._prefixes.values())}"
        return "the group has no servers"

    def _client(self, name: str) -> Client:
        client = self.clients.get(name)
        if client is not None:
            return client
        if (failure := self.failures.get(name)) is not None:
            raise UsageError(f"the server {name!r} is not connected: {failure}") from failure
        if name in self._opening:
            raise UsageError(f"the server {name!r} is not connected yet")
        raise UsageError(f"unknown server {name!r}; known: {', '.join(self.clients) or 'none'}")


def _has(client: Client, capability: Literal["tools", "prompts", "resources"]) -> bool:
    return getattr(client.server.capabilities, capability) is not None


def _match_template(uri: str, template: str) -> int:
    """Return the number of literal characters of a template that a URI matches, or -1 if it does not match.

    Templates come from servers and are not trusted. A pattern made of one could take too long.
    """
    first, *between = _TEMPLATE_EXPRESSION.split(template)
    last = between.pop() if between else ""
    position = len(first)
    if not uri.startswith(first) or not uri.endswith(last):
        return -1
    for literal in between:
        index = uri.find(literal, position)
        if index < 0:
            return -1
        position = index + len(literal)
    is_match = position + len(last) <= len(uri)
    return len(first) + len(last) + sum(map(len, between)) if is_match else -1
