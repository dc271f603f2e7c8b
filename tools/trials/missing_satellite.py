"""Import the module that a satellite replaces, which is not installed: the error says how to install it.

Usage: `python missing_satellite.py PACKAGE`.
"""

import importlib
import sys

FORMER = {"typedmcp_otel": "typedmcp.telemetry"}
"""The modules of the core that satellites have replaced, by the package."""

package = sys.argv[1]
said = ""
try:
    importlib.import_module(FORMER[package])
except ImportError as error:
    said = str(error)
assert f"pip install 'typedmcp[{package.removeprefix('typedmcp_')}]'" in said, said
assert f"import {package}" in said, said
