"""The catalog of a server: its tools, resources and prompts, with those of mounted servers, and pages of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, assert_never
from weakref import WeakSet, ref
from zlib import crc32

from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.app.prompts import Prompt
from typedmcp.app.resources import Resource
from typedmcp.app.templates import normalize_uri
from typedmcp.app.tools import Tool
from typedmcp.errors import InvalidParamsError
from typedmcp.protocol.garbage import collector_paused
from typedmcp.protocol.notifications import Change
from typedmcp.server.changes import Changes, Listener

__all__ = ["Catalog", "Feature", "MountedItem", "add_prefix", "paginate", "remove_prefix"]

D = dialect.structs
OwnerT = TypeVar("OwnerT")

Feature: TypeAlias = Literal["tools", "resources", "prompts"]

_FEATURES: tuple[Feature, ...] = ("tools", "resources", "prompts")


class MountedItem(NamedTuple, Generic[OwnerT]):
    """A tool, resource or prompt of a mounted server."""

    server: OwnerT
    name: str
    """Its name, or URI, in that server."""
    spec: Any
    """The item in lists, under its name in the outer server."""
    scopes: tuple[str, ...]
    """The scopes that it needs."""


class Mount(NamedTuple, Generic[OwnerT]):
    """A server that is mounted in another one."""

    server: OwnerT
    catalog: Catalog[OwnerT]
    prefix: str


class Catalog(Generic[OwnerT]):
    """The tools, resources and prompts of a server. Publishes changes here and in the servers that mount it."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.prompts: dict[str, Prompt] = {}
        self.changes: Changes = Changes()
        self.capabilities: D.ServerCapabilities = D.ServerCapabilities(logging={})
        """The server's capabilities. The object stays the same and grows with the first tool, resource or prompt."""
        self.mounts: list[Mount[OwnerT]] = []
        self._parents: WeakSet[Catalog[OwnerT]] = WeakSet()
        self._items: dict[Feature, dict[str, Any]] = {}
        """All items of a feature, with mounted ones, until something changes."""
        self._specs: dict[Feature, list[tuple[str, Any]]] = {}
        """The names of these items, and what lists have of them."""
        self._needs_scopes: dict[Feature, bool] = {}
        """Whether one of them needs scopes, until something changes."""

    def items(self, feature: Feature) -> dict[str, Any]:
        """Return the items of a feature by name or URI; the items of mounted servers are `MountedItem`s."""
        items = self._items.get(feature)
        if items is None:
            own: dict[str, Any] = getattr(self, feature)
            items = self._items[feature] = {**own}
            for server, catalog, prefix in self.mounts:
                for name, item in catalog.items(feature).items():
                    spec = _with_prefix(item.spec, prefix, feature)
                    items.setdefault(_prefix_name(name, prefix, feature), MountedItem(server, name, spec, item.scopes))
        return items

    def specs(self, feature: Feature) -> list[tuple[str, Any]]:
        """Return the items of a feature as lists have them, with their names. Do not change the list."""
        if (specs := self._specs.get(feature)) is None:
            with collector_paused():  # looking for cycles in schemas would take a third of the time
                specs = self._specs[feature] = [(name, item.spec) for name, item in self.items(feature).items()]
        return specs

    def needs_scopes(self, feature: Feature) -> bool:
        """Return whether an item of a feature needs scopes, so that its list depends on the token."""
        items = self.items(feature)
        needs = self._needs_scopes.get(feature)
        if needs is None:
            needs = self._needs_scopes[feature] = any(item.scopes for item in items.values())
        return needs

    def publish_change(self, feature: Feature) -> None:
        """Declare the capability for a feature, and publish that its list has changed."""
        self._items.pop(feature, None)
        self._specs.pop(feature, None)
        self._needs_scopes.pop(feature, None)
        if feature == "tools":
            self.capabilities.tools = D.ServerCapabilitiesTools(list_changed=True)
            self.changes.tools_changed()
        elif feature == "prompts":
            self.capabilities.prompts = D.ServerCapabilitiesPrompts(list_changed=True)
            self.changes.prompts_changed()
        elif feature == "resources":
            self.declare_resources()
            self.changes.resources_changed()
        else:
            assert_never(feature)
        for parent in self._parents:
            parent.publish_change(feature)

    def declare_completions(self) -> None:
        """Declare the capability for completions."""
        self.capabilities.completions = {}
        for parent in self._parents:
            parent.declare_completions()

    def declare_resources(self) -> None:
        """Declare the capability for resources, for a server that has none but embeds some in results of its tools."""
        if self.capabilities.resources is None:
            self.capabilities.resources = D.ServerCapabilitiesResources(list_changed=True, subscribe=True)
        for parent in self._parents:
            parent.declare_resources()

    def mount(self, server: OwnerT, catalog: Catalog[OwnerT], prefix: str) -> None:
        """Add the items of another server, now and whenever they change."""
        self.mounts.append(Mount(server, catalog, prefix))
        catalog._parents.add(self)
        catalog.changes.listen(_forward_updates(ref(self), prefix))
        for feature in _FEATURES:
            if catalog.items(feature):
                self.publish_change(feature)
        if catalog.capabilities.completions is not None:
            self.declare_completions()
        if catalog.capabilities.resources is not None:
            self.declare_resources()

    def mounted_servers(self) -> Iterator[OwnerT]:
        """Yield the mounted servers, and the servers mounted in those."""
        for mount in self.mounts:
            yield mount.server
            yield from mount.catalog.mounted_servers()

    def find_resource(self, uri: str) -> tuple[Resource, dict[str, str]] | None:
        """Return the resource of this server with a URI, and the values of its variables, or None.

        A resource without variables takes precedence over templates.
        """
        exact = self.resources.get(uri)
        if exact is not None and exact.template is None:
            return exact, {}
        uri = normalize_uri(uri)
        for resource in self.resources.values():
            if resource.template is None and resource.normal_uri == uri:
                return resource, {}
        for resource in self.resources.values():
            if (values := resource.match(uri)) is not None:
                return resource, values
        return None

    def find_item(self, feature: Feature, name: str) -> Any:
        """Return the tool, resource or prompt that a name or a URI means, here or in a mounted server, or None."""
        found = self.find_resource(name) if feature == "resources" else None
        item: Any = getattr(self, feature).get(name) if found is None else found[0]
        for _, catalog, prefix in self.mounts:
            short = name.removeprefix(f"{prefix}_" * bool(prefix))
            inner = remove_prefix(name, prefix) if feature == "resources" else short
            item = item or (None if inner is None else catalog.find_item(feature, inner))
        return item


def _forward_updates(outer: ref[Catalog[OwnerT]], prefix: str) -> Listener:
    """Return a listener that publishes updates of a mounted server's resources in the outer catalog."""

    def on_change(change: Change, uri: str | None) -> None:
        catalog = outer()
        if change == "resource" and uri is not None and catalog is not None:
            catalog.changes.resource_updated(add_prefix(uri, prefix))

    return on_change


# Prefixes


def _prefix_name(name: str, prefix: str, feature: Feature) -> str:
    if not prefix:
        return name
    return add_prefix(name, prefix) if feature == "resources" else f"{prefix}_{name}"


def _with_prefix(spec: Any, prefix: str, feature: Feature) -> Any:
    """Return a tool, resource or prompt of a list under its name in the outer server."""
    member = "uri" if isinstance(spec, D.Resource) else "uri_template"
    if feature != "resources":
        member = "name"
    changes: dict[str, Any] = {member: _prefix_name(getattr(spec, member), prefix, feature)}
    if feature == "tools" and spec.meta and prefix:
        changes["meta"] = _prefix_page(spec.meta, prefix)
    return spec.__replace__(**changes)


def _prefix_page(meta: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """Return the `_meta` of a tool whose page, if it has one, is a resource of a mounted server.

    https://modelcontextprotocol.io/extensions/apps/overview
    """
    page: Any = meta.get("ui")
    uri: Any = page.get("resourceUri") if is_object(page) else None
    return {**meta, "ui": {**page, "resourceUri": add_prefix(uri, prefix)}} if isinstance(uri, str) else meta


def add_prefix(uri: str, prefix: str) -> str:
    """Add the prefix to a URI of a mounted server: `data://a` becomes `data://prefix/a`."""
    scheme, separator, rest = _split_scheme(uri)
    return f"{scheme}{separator}{prefix}/{rest}" if prefix else uri


def remove_prefix(uri: str, prefix: str) -> str | None:
    """Remove the prefix from a URI, or return None if the URI does not belong to the mounted server."""
    if not prefix:
        return uri
    scheme, separator, rest = _split_scheme(uri)
    return f"{scheme}{separator}{rest.removeprefix(prefix + '/')}" if rest.startswith(f"{prefix}/") else None


def _split_scheme(uri: str) -> tuple[str, str, str]:
    return uri.partition("://" if "://" in uri else ":")


T = TypeVar("T")


def paginate(items: Sequence[tuple[str, T]], cursor: object, page_size: int | None) -> tuple[list[T], str | None]:
    """Return one page of named items, and the cursor of the next page.

    A cursor has the name of the item before the page. If that item has been removed, others may have been, too. Then
    the list begins again: an item may be listed twice, but none is missed.
    """
    start = 0
    if isinstance(cursor, str):
        _, _, last = cursor.partition(":")
        if cursor != _cursor_after(last):
            raise InvalidParamsError("invalid cursor: list again from the start, without a cursor", {"cursor": cursor})
        start = next((index for index, (name, _) in enumerate(items, 1) if name == last), 0)
    end = len(items) if page_size is None else start + page_size
    return [item for _, item in items[start:end]], _cursor_after(items[end - 1][0]) if end < len(items) else None


def _cursor_after(name: str) -> str:
    """Return the cursor of the page after an item, with a checksum, so that other texts are no cursors."""
    return f"{crc32(name.encode()):x}:{name}"
