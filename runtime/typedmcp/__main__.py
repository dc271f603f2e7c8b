"""`python -m typedmcp`: the command, which the distribution typedmcp-cli brings."""

import sys
from importlib.metadata import entry_points

if __name__ == "__main__":
    _found = entry_points(group="console_scripts", name="typedmcp")
    if not _found:
        from typedmcp.errors import moved

        sys.stderr.write(f"{moved('the command typedmcp', 'cli', 'typedmcp --help')}\n")
        sys.exit(2)
    next(iter(_found)).load()()
