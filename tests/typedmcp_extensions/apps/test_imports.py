"""A server with pages loads nothing of clients, and a host neither the decorators nor the server."""

from __future__ import annotations

import subprocess
import sys

from tests.cases import each

_LOADED = "import sys, {0}; [print(name) for name in sys.modules]"


@each(
    "modules, forbidden",
    [
        ("typedmcp_extensions.apps.server", ("typedmcp.client", "typedmcp.sync")),
        (
            "typedmcp_extensions.apps.host, typedmcp_extensions.apps.bridge, typedmcp_extensions.apps.proxy",
            ("typedmcp.app", "typedmcp.server"),
        ),
    ],
    ids=["server", "host"],
)
def test_one_side_of_apps_does_not_load_the_other(modules: str, forbidden: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED.format(modules)], capture_output=True, text=True, timeout=30, check=True
    )
    loaded = done.stdout.split()
    assert [
        name for name in loaded if name in forbidden or name.startswith(tuple(f"{each}." for each in forbidden))
    ] == []
