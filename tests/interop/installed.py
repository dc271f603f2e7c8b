"""Run a script with the types of `mcpspec.compat` in place of those of the official SDK.

python installed.py SCRIPT [ARGUMENT …]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from mcpspec.compat import sdk

if __name__ == "__main__":
    sdk.install()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = ""
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
