"""Migrate the imports of a file with the installed command."""

import subprocess
import sys
from pathlib import Path

file = Path("uses_the_sdk.py")
file.write_text("from mcp.types import Tool\n", encoding="utf-8")
subprocess.run([sys.executable, "-W", "error", "-m", "mcpspec_codegen", "migrate", "--write", file], check=True)  # noqa: S603
assert file.read_text(encoding="utf-8") == "from mcpspec.compat import Tool\n"
