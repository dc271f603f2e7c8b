"""Import a name of a satellite that is not installed from the core: the error says how to install it.

Usage: `python missing_satellite.py PACKAGE`.
"""

import sys

NAMES = {
    "typedmcp_auth": "JwtVerifier",
    "typedmcp_cli": "Recorder",
    "typedmcp_extensions": "apps",
    "typedmcp_gateway": "Gateway",
    "typedmcp_hosts": "tools_for",
    "typedmcp_http": "HttpProtocol",
    "typedmcp_mcp1": "ClientSession",
    "typedmcp_otel": "telemetry",
    "typedmcp_redis": "RedisStore",
}
"""A name of each satellite."""

package = sys.argv[1]
said = ""
try:
    exec(f"from typedmcp import {NAMES[package]}")  # noqa: S102
except ImportError as error:
    said = str(error)
assert f"pip install 'typedmcp[{package.removeprefix('typedmcp_')}]'" in said, said
assert package in said.partition("then")[2], said
