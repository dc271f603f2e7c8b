"""Replay of recordings: as a server that answers a client, as a client that compares answers, and in tests."""

from __future__ import annotations

from typedmcp_cli.replay.client import ReplayDifference, compare_with_server
from typedmcp_cli.replay.handler import ReplayHandler, replay_server

__all__ = ["ReplayDifference", "ReplayHandler", "compare_with_server", "replay_server"]
