"""The command line of typedmcp, recordings, and tests with recordings.

`Recorder` writes the messages of servers and clients to a file, `replay_server` answers from one, and
`compare_with_server` sends one to a server again. A name is imported when it is first used, since the command should
start fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_cli.pytest_plugin import Cassette
    from typedmcp_cli.recording.masks import SECRET_NAMES
    from typedmcp_cli.recording.recorder import Recorder
    from typedmcp_cli.replay import ReplayDifference, ReplayHandler, compare_with_server, replay_server
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".pytest_plugin": ["Cassette"],
        ".recording.recorder": ["Recorder"],
        ".replay": ["ReplayDifference", "ReplayHandler", "compare_with_server", "replay_server"],
        ".recording.masks": ["SECRET_NAMES"],
    })  # fmt: skip

__all__ = [
    "SECRET_NAMES", "Cassette", "Recorder", "ReplayDifference", "ReplayHandler", "compare_with_server", "replay_server",
]  # fmt: skip
