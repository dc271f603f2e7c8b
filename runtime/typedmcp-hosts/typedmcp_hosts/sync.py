"""Blocking groups of clients, for scripts and notebooks: `typedmcp.sync` for several servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from typedmcp import ConnectOptions
from typedmcp.client import ServerDescription
from typedmcp.sync import BlockingClient, blocking, blocking_iterator, in_loop
from typedmcp_hosts import group
from typedmcp_hosts.config import Config
from typedmcp_hosts.group import ClientGroup

__all__ = ["SyncClientGroup", "connect_all"]


def connect_all(
    config: Config,
    *,
    separator: str = "_",
    on_failure: Callable[[str, Exception], object] | None = None,
    wait_seconds: float = 30.0,
    **options: Unpack[ConnectOptions],
) -> SyncClientGroup:
    """Return a blocking group of clients for several servers. Enter it with `with`, or use `open()` and `close()`.

    Takes the configurations and options of `typedmcp_hosts.connect_all`. `on_failure` runs in the event loop of the
    group, and must neither wait nor use the group.
    """
    make = partial(group.connect_all, config, separator=separator, on_failure=on_failure, wait_seconds=wait_seconds)
    return SyncClientGroup(make, options)


class SyncClientGroup(BlockingClient[ClientGroup]):
    """Blocking clients of several servers, with the methods of `ClientGroup`. `connect_all` makes it."""

    @property
    def failures(self) -> Mapping[str, Exception]:
        """The error of each server that could not be connected to, as in `ClientGroup.failures`."""
        return self.async_client.failures

    @property
    def servers(self) -> Mapping[str, ServerDescription]:
        """The descriptions of the connected servers by name, in order."""
        return {name: client.server for name, client in self.async_client.clients.items()}

    if not TYPE_CHECKING:
        call_tool = blocking(ClientGroup.call_tool)

    report: Final = in_loop(ClientGroup.report)
    list_tools: Final = blocking(ClientGroup.list_tools)
    list_prompts: Final = blocking(ClientGroup.list_prompts)
    list_resources: Final = blocking(ClientGroup.list_resources)
    list_resource_templates: Final = blocking(ClientGroup.list_resource_templates)
    read_resource: Final = blocking(ClientGroup.read_resource)
    get_prompt: Final = blocking(ClientGroup.get_prompt)

    tools: Final = blocking_iterator(ClientGroup.tools)
