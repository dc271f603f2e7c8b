"""Many servers as one: what they have in one list, and each call to the server that it is for."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET

from typedmcp import dialect
from typedmcp.client.client import CallOptions, Client
from typedmcp.client.config import Config, ServerEntry, entries_of
from typedmcp.errors import Error, InvalidParams, MethodNotFound, ResourceNotFound, UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from typedmcp.client.arguments import Arguments

__all__ = ["ClientGroup", "connect_all"]

D = dialect.structs
T = TypeVar("T")

_Feature: TypeAlias = Literal["tools", "prompts", "resources", "resource_templates"]
_Named: TypeAlias = Literal["tools", "prompts"]

_log = logging.getLogger("typedmcp")

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_SHOWN: Final = 20
"""How many names an error lists."""


def connect_all(
    config: Config,
    *,
    separator: str = "_",
    on_failure: Callable[[str, Exception], object] | None = None,
    **options: Any,
) -> ClientGroup:
    """Clients of many servers, to be entered with `async with`, or opened with `await` and closed with `close()`.

    `config` is a file or a mapping as `load_config` takes it, or a mapping of names to anything that `connect` takes.
    Servers that are disabled are left out. Where there are several, tools and prompts are called `server_name`, with
    this `separator`.

    All servers are connected to at once. One that fails is in `failures`, and the others go on without it;
    `on_failure` is told its name and the error, then and later, or else the log `typedmcp` is.

    `options` are those of `typedmcp.connect`, for every server; `headers`, `auth` and the like for every URL.
    Raises `UsageError` for a configuration that cannot be read.
    """
    found = entries_of(config, options.get("on_report"))
    entries = {name: entry for name, entry in found.items() if not entry.disabled}
    return ClientGroup(entries, separator=separator, on_failure=on_failure, options=options)


class ClientGroup:
    """Connections to many servers. Made by `connect_all`, which says what its options mean."""

    def __init__(
        self,
        entries: Mapping[str, ServerEntry],
        *,
        separator: str,
        on_failure: Callable[[str, Exception], object] | None,
        options: Mapping[str, Any],
    ) -> None:
        self.clients: Mapping[str, Client] = {}
        """The clients of the servers that are connected to, by name, in order."""
        self.failures: dict[str, Exception] = {}
        """Why servers could not be connected to."""
        self._entries = entries
        self._on_failure = on_failure
        self._options = options
        names = sorted(entries, key=len, reverse=True)
        self._prefixes = {name: f"{name}{separator}" if len(names) > 1 else "" for name in names}
        """What the names of each server's tools begin with. The longest comes first: it is the one that is meant."""
        self._opening: dict[str, Client] | None = None
        self._closed = False
        self._known: dict[_Feature, dict[str, frozenset[str]]] = {}
        """What each server has listed: names, URIs, templates."""

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
        """Connect to all servers. Cancelled, it closes those that it has connected to. Twice is once."""
        if self._closed:
            raise UsageError("the group has been closed")
        if self._opening is not None:
            return
        self._opening = dict(self._made())
        try:
            async with asyncio.TaskGroup() as tasks:
                for name, client in self._opening.items():
                    tasks.create_task(self._open(name, client))
        except BaseException:
            await self.close()
            raise
        self.clients = {name: client for name, client in self._opening.items() if name not in self.failures}

    def _made(self) -> Iterator[tuple[str, Client]]:
        for name, entry in self._entries.items():
            try:
                yield name, entry.connect(**entry.fitting(self._options))
            except Error as error:
                self._fail(name, error)

    async def _open(self, name: str, client: Client) -> None:
        try:
            await client.open()
        except Exception as error:
            self._fail(name, error)
            await self._close(name, client)

    def _fail(self, name: str, error: Exception) -> None:
        self.failures[name] = error
        self._report(name, error)

    def _report(self, name: str, error: Exception) -> None:
        if self._on_failure is None:
            _log.warning("server %r: %s", name, error)
            return
        try:
            self._on_failure(name, error)
        except Exception:
            _log.exception("on_failure failed")

    async def close(self) -> None:
        """End all connections. One that does not end well is reported, and the others are closed all the same."""
        self._closed = True
        await asyncio.gather(*(self._close(name, client) for name, client in (self._opening or {}).items()))

    async def _close(self, name: str, client: Client) -> None:
        try:
            await client.close()
        except Exception as error:
            self._report(name, error)

    # Lists

    async def list_tools(self, **options: Unpack[CallOptions]) -> list[D.Tool]:
        """The tools of all servers. One that fails is reported and left out."""
        return await self._list_named("tools", options)

    async def list_prompts(self, **options: Unpack[CallOptions]) -> list[D.Prompt]:
        """The prompts of all servers. One that fails is reported and left out."""
        return await self._list_named("prompts", options)

    async def list_resources(self, **options: Unpack[CallOptions]) -> list[D.Resource]:
        """The resources of all servers. One that fails is reported and left out."""
        return [item for _, items in await self._list("resources", "uri", options) for item in items]

    async def list_resource_templates(self, **options: Unpack[CallOptions]) -> list[D.ResourceTemplate]:
        """The resource templates of all servers. One that fails is reported and left out."""
        return [item for _, items in await self._list("resource_templates", "uri_template", options) for item in items]

    async def tools(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Tool]:
        """The same as an iterator."""
        for tool in await self.list_tools(**options):
            yield tool

    async def _list_named(self, feature: _Named, options: CallOptions) -> list[Any]:
        made: list[Any] = []
        for server, items in await self._list(feature, "name", options):
            for item in items:
                shown = self._prefixes[server] + item.name
                meant, _ = self._route(feature, shown)
                if meant == server:
                    made.append(msgspec.structs.replace(item, name=shown))
                else:
                    self._report(
                        server, UsageError(f"{item.name!r} of its {feature} is left out: {meant} has {shown!r}")
                    )
        return made

    async def _list(self, feature: _Feature, key: str, options: CallOptions) -> list[tuple[str, list[Any]]]:
        """What each server has, and a note of that, by this attribute."""
        lists = await asyncio.gather(*(self._list_of(name, feature, options) for name in self.clients))
        found = [(name, items) for name, items in zip(self.clients, lists, strict=True) if items is not None]
        self._known.setdefault(feature, {}).update(
            {name: frozenset(getattr(item, key) for item in items) for name, items in found}
        )
        return found

    async def _list_of(self, name: str, feature: _Feature, options: CallOptions) -> list[Any] | None:
        """All that a server has, None where it fails."""
        client = self.clients[name]
        if not _has(client, "resources" if feature == "resource_templates" else feature):
            return []
        try:
            return [item async for item in getattr(client, feature)(**options)]
        except MethodNotFound:  # who has resources need not have templates
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
    ) -> D.CallToolResult: ...

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
        """Call a tool of one of the servers, by the name that the group has for it. See `Client.call_tool`.

        Raises `UsageError` for a name that is no server's.
        """
        server, own = self._route("tools", name)
        return await self._client(server).call_tool(
            own, arguments, result_type=result_type, raise_on_error=raise_on_error, **options
        )

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> D.GetPromptResult:
        """A prompt of one of the servers, with its arguments in it."""
        server, own = self._route("prompts", name)
        return await self._client(server).get_prompt(own, arguments, **options)

    async def read_resource(
        self, uri: str, server: str | None = None, **options: Unpack[CallOptions]
    ) -> D.ReadResourceResult:
        """What is at a URI: of this server, or of the one that listed it, or of the first that finds it.

        Servers that listed a template which the URI fits are asked before others. Raises `ResourceNotFound` where
        nobody finds it, or the error of a server that failed.
        """
        listed = next((name for name, uris in self._known.get("resources", {}).items() if uri in uris), None)
        only = server or listed
        if only is not None:
            return await self._client(only).read_resource(uri, **options)
        failed: Error | None = None
        for name in self._readers(uri):
            try:
                return await self.clients[name].read_resource(uri, **options)
            except UsageError:
                raise
            except (InvalidParams, MethodNotFound):
                continue
            except Error as error:
                failed = failed or error
        raise failed or ResourceNotFound(uri)

    def _readers(self, uri: str) -> list[str]:
        """The servers that may have a resource: first those with a template for it, the most exact one at first."""
        templates = self._known.get("resource_templates", {})
        there = [name for name, client in self.clients.items() if _has(client, "resources")]
        best = {name: max((_fit(uri, each) for each in templates.get(name, ())), default=-1) for name in there}
        return sorted(there, key=lambda name: -best[name])

    def _route(self, feature: _Named, name: str) -> tuple[str, str]:
        """The server that a name is of, and the name there: one that is listed, or else as it begins."""
        known = self._known.get(feature, {})
        meant = [
            (server, name.removeprefix(prefix))
            for server, prefix in self._prefixes.items()
            if name.startswith(prefix) and name != prefix
        ]
        listed = [(server, own) for server, own in meant if own in known.get(server, ())]
        for found in (*listed, *meant):
            return found
        raise UsageError(f"no server has {name!r} among its {feature}; {self._there(feature)}")

    def _there(self, feature: _Named) -> str:
        known = self._known.get(feature, {})
        names = [self._prefixes[server] + own for server in known for own in sorted(known[server])]
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            return f"there are {', '.join(names[:_SHOWN])}{more}"
        return f"names begin with {' or '.join(self._prefixes.values())}" if self._prefixes else "there are no servers"

    def _client(self, name: str) -> Client:
        client = self.clients.get(name)
        if client is not None:
            return client
        if (failure := self.failures.get(name)) is not None:
            raise UsageError(f"the server {name!r} is not connected: {failure}") from failure
        raise UsageError(f"there is no server {name!r}; there are: {', '.join(self.clients) or 'none'}")


def _has(client: Client, capability: Literal["tools", "prompts", "resources"]) -> bool:
    return getattr(client.server.capabilities, capability) is not UNSET


def _fit(uri: str, template: str) -> int:
    """How many characters of a template a URI has, where it may be one of the template's; -1 where it is none.

    Templates are the servers' and not trusted: no pattern is made of them, which could take long.
    """
    first, *between = _EXPRESSION.split(template)
    last = between.pop() if between else ""
    at = len(first)
    if not uri.startswith(first) or not uri.endswith(last):
        return -1
    for literal in between:
        found = uri.find(literal, at)
        if found < 0:
            return -1
        at = found + len(literal)
    fits = at + len(last) <= len(uri)
    return len(first) + len(last) + sum(map(len, between)) if fits else -1
