"""Another name for `typedmcp_redis`, or without it an error that says what to install."""

import sys

from typedmcp.satellites import load_satellite

__all__: list[str] = []

sys.modules[__name__] = load_satellite("typedmcp.server.store.redis", "redis")
