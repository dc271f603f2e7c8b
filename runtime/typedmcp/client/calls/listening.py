"""Serving subscriptions: requests for changes, repeated after each restart of the server.

A modern server sends changes in answer to `subscriptions/listen`. A legacy server sends changes of lists to every
session, and changes of the resources that the session has subscribed to.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from typedmcp import dialect
from typedmcp.client.calls.runner import CallRunner
from typedmcp.client.connection.manager import STABLE_SECONDS, ConnectionManager
from typedmcp.client.requests.encoder import META_PLACEHOLDER
from typedmcp.client.session.session import ClientSession
from typedmcp.client.session.subscriptions import Subscription
from typedmcp.errors import ConnectionLostError, HttpStatusError, ServerBusyError, UsageError
from typedmcp.revisions.features import FEATURES

__all__ = ["SubscriptionRunner"]

D = dialect.structs

_FIRST_DELAY: Final = 0.25
"""Seconds before a broken subscription is requested again. Doubled with each failure."""

_MAX_DELAY: Final = 5.0

_UNSUBSCRIBE_TIMEOUT: Final = 60.0
"""Seconds for `resources/unsubscribe`, if calls have no timeout."""


class SubscriptionRunner:
    """Keeps the subscriptions of a client open, across restarts of the server.

    `subscriptions` is the set of open subscriptions, to which the client passes changes.
    """

    def __init__(self, connection: ConnectionManager, calls: CallRunner, subscriptions: set[Subscription]) -> None:
        self._connection = connection
        self._calls = calls
        self._subscriptions = subscriptions
        self._subscribed_uris: set[str] = set()
        """The resources that the session of a legacy server is subscribed to."""

    def reset(self) -> None:
        """Forget the subscriptions of the last session."""
        self._subscribed_uris.clear()

    async def run(self, subscription: Subscription) -> None:
        """Serve a subscription until it ends, across restarts of the server."""
        self._subscriptions.add(subscription)
        failures = 0
        try:
            while True:
                session = await self._connection.connect()
                start = asyncio.get_running_loop().time()
                try:
                    if FEATURES[self._connection.server.revision].has_listen:
                        await self._listen(session, subscription)
                        return
                    await self._subscribe(session, subscription)
                except ConnectionLostError as error:
                    can_reconnect = not self._connection.is_closed and self._connection.can_reconnect(session)
                    if not subscription.is_established or not can_reconnect:
                        raise
                    is_stable = asyncio.get_running_loop().time() - start > STABLE_SECONDS
                    failures = 1 if is_stable else failures + 1
                    await self._wait_before_retry(session, failures, error)
                    subscription.add_all()
        finally:
            self._subscriptions.discard(subscription)

    async def _wait_before_retry(self, session: ClientSession, failures: int, error: ConnectionLostError) -> None:
        """Wait before requesting a broken stream again. Reopening a session that has ended has a delay of its own.

        Raises the error if another request would get the same response, or after too many failures.
        """
        reconnects = self._connection.reconnects
        if reconnects is None or session.has_ended:
            return
        is_rejected = isinstance(error, HttpStatusError) and error.status < 500 and error.status != 429
        if is_rejected or failures > reconnects:
            raise error
        delay = error.retry_after if isinstance(error, ServerBusyError) else None
        await asyncio.sleep(min(_FIRST_DELAY * 2**failures, _MAX_DELAY) if delay is None else delay)

    async def _listen(self, session: ClientSession, subscription: Subscription) -> None:
        call = session.start_call("subscriptions/listen", timeout=None)
        subscription.call = call
        encoder = self._connection.encoder
        wanted: Any = subscription.filter
        if subscription.members:
            wanted = {**D.to_builtins(wanted), **subscription.members}
        params = D.SubscriptionsListenRequestParams(meta=META_PLACEHOLDER, notifications=wanted)
        await session.exchange(
            call, encoder.params(call.method, params, encoder.meta(encoder.members(subscription.options)))
        )

    async def _subscribe(self, session: ClientSession, subscription: Subscription) -> None:
        """Subscribe to the resources that have no subscription yet, and wait until the session has ended."""
        if subscription.members:
            names = ", ".join(subscription.members)
            raise UsageError(f"listen: {names}: the revision of the server has no filters of extensions")
        if subscription.uris:
            self._connection.check_declared("resources/subscribe")
        for uri in subscription.uris - self._subscribed_uris:
            self._subscribed_uris.add(uri)
            await self._calls.exchange(session, "resources/subscribe", {"uri": uri}, {})
        await session.wait_for_server_messages()
        subscription.establish(None)
        try:
            await session.end_event.wait()
            raise ConnectionLostError("the connection ended")
        finally:
            if not session.has_ended:
                self._unsubscribe(session, subscription)

    def _unsubscribe(self, session: ClientSession, subscription: Subscription) -> None:
        others = {uri for other in self._subscriptions - {subscription} for uri in other.uris}
        for uri in subscription.uris - others:
            self._subscribed_uris.discard(uri)
            timeout = self._connection.timeout or _UNSUBSCRIBE_TIMEOUT
            session.exchange_in_background("resources/unsubscribe", {"uri": uri}, timeout)
