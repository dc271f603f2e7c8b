"""The sessions of requests over HTTP that belong to no session.

One serves all clients on a modern revision. A request on a legacy revision has one of its own, if the server keeps no
sessions: its client cannot be asked for input.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from typedmcp.protocol.notifications import Change
from typedmcp.server.context import Context
from typedmcp.server.handshake import Handshake
from typedmcp.server.home import SessionHome
from typedmcp.server.http.channel import LEGACY_STATUSES, MODERN_STATUSES, PostTarget
from typedmcp.server.http.header_checks import MirroredNames
from typedmcp.server.http.state import AppState
from typedmcp.server.metadata import RequestMetadata
from typedmcp.server.session import Session

__all__ = ["StatelessSession", "legacy_target"]


class StatelessSession(SessionHome):
    """The home of requests whose ids may be equal, since they are of different clients.

    `revision` is that of the requests on the fast path, by default the newest. `in_flight` are the requests of another
    session, with which they are limited together.
    """

    __slots__ = ("_state", "loop", "session", "target")

    is_shared = True

    def __init__(
        self,
        state: AppState,
        revision: str | None = None,
        *,
        in_flight: dict[Any, Context] | None = None,
        handshake: Handshake | None = None,
    ) -> None:
        self._state = state
        self.loop: asyncio.AbstractEventLoop = state.loop
        self.session: Session = Session(state.engine, self, handshake)
        self.session.metadata.share()
        if in_flight is not None:
            self.session.in_flight = in_flight
        if revision is not None:
            self.session.use_revision(revision)
        calls, frames, names = self.session.calls, self.session.open_frames, MirroredNames(self.revision.encode())
        self.target: PostTarget = PostTarget(calls, state, MODERN_STATUSES, names, frames)

    @property
    def revision(self) -> str:
        """The revision of the requests on the fast path."""
        return self.session.codec.revision

    def listen(self) -> Callable[[], None]:
        """Listen to changes, which come through the application's store. Return the function that stops it."""
        return self._state.listen(self)

    def on_change(self, number: int, change: Change, uri: str | None) -> None:  # noqa: ARG002  # sessions need it
        """Deliver a change to the subscriptions."""
        self.session.subscriptions.publish(change, uri)


def legacy_target(state: AppState, revision: str | None) -> PostTarget:
    """Return the target of one request on a legacy revision; None for a handshake, which begins no session."""
    handshake = Handshake(state.config, has_session=False) if revision is None else None
    session = StatelessSession(state, handshake=handshake).session
    if revision is not None:
        session.open(RequestMetadata.anonymous(revision))
    return PostTarget(session.calls, state, LEGACY_STATUSES, None, session.open_frames)
