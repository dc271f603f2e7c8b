"""A watchdog process that ends a child process whose parent was killed.

Linux's "parent death signal" is no substitute: it is sent when the thread that started the child ends.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys

__all__ = ["Watchdog"]

_log = logging.getLogger("typedmcp")

_SCRIPT = """
trap '' HUP INT TERM
if read -r group; then
    read -r _
else
    for link in /proc/[0-9]*/fd/0; do
        if [ "$(readlink "$link")" = "pipe:[$1]" ]; then
            leader=${link#/proc/}
            leader=${leader%%/*}
            kill -s 0 -- "-$leader" && group=$leader
        fi
    done
fi
[ "$group" ] || exit
sleep 1
kill -s TERM -- "-$group" || exit
sleep 1
kill -s KILL -- "-$group"
"""
"""Waits for the end of its input, which is the end of the parent, and ends the process group of the child.

The input of the child has ended by then. The child has a second to react to that, and a second to react to SIGTERM.

If the parent was killed after it started the child and before it wrote the id of the group, the script finds the
child by its standard input (on Linux). The child has that input already: the watchdog's own input does not end before
the child has closed what it inherited.
"""

_open_pipes: set[int] = set()


def _close_pipes() -> None:
    """Close the pipes to the watchdogs in a fork of this process, which must not keep the children alive."""
    for pipe in _open_pipes:
        os.close(pipe)
    _open_pipes.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_pipes)


class Watchdog:
    """A shell that waits for the end of a pipe which only this process holds open.

    A shell starts in 1 ms, and a frozen application may have no Python interpreter to start. Without a shell on the
    system, children are not guarded.
    """

    def __init__(self) -> None:
        self._source, self._sink = os.pipe()
        _open_pipes.add(self._sink)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, stdin: int) -> None:
        """Start the shell. Until `guard` is called, the shell identifies the child by its standard input."""
        try:
            self._process = subprocess.Popen(  # noqa: S603  # constant but for a number
                ["/bin/sh", "-c", _SCRIPT, "watchdog", str(os.fstat(stdin).st_ino)],
                stdin=self._source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            _log.warning("a child will outlive this process if this process is killed: %s", error)

    def guard(self, group: int) -> None:
        """Pass the process group to end together with this process."""
        os.write(self._sink, b"%d\n" % group)

    def close(self) -> None:
        """Stop guarding. The shell is killed first, since to the shell a closed pipe means the end of this process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        _open_pipes.discard(self._sink)
        os.close(self._sink)
        os.close(self._source)
