"""The command line of typedmcp, recordings, and tests with recordings.

`Recorder` writes the messages of servers and clients to a file, `replay_server` answers from one, and
`compare_with_server` sends one to a server again. A name is imported when it is first used, since the command should
start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp_cli.pytest_plugin import Cassette
    from typedmcp_cli.recording.masks import SECRET_NAMES
    from typedmcp_cli.recording.recorder import Recorder
    from typedmcp_cli.replay import ReplayDifference, ReplayHandler, compare_with_server, replay_server

_MODULES = {
    "Cassette": "pytest_plugin",
    "Recorder": "recording.recorder",
    "ReplayDifference": "replay",
    "ReplayHandler": "replay",
    "SECRET_NAMES": "recording.masks",
    "compare_with_server": "replay",
    "replay_server": "replay",
}

__all__ = [
    "SECRET_NAMES", "Cassette", "Recorder", "ReplayDifference", "ReplayHandler", "compare_with_server", "replay_server",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
