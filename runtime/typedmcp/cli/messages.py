"""What a server says beside its answers, on standard error: log messages, progress, and what was wrong with them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from typedmcp import dialect
from typedmcp.cli.output import console, visible
from typedmcp.cli.status import complain
from typedmcp.context import LEVELS
from typedmcp.peer import Kind, Report

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Messages"]

D = dialect.structs

_TOLD = (Kind.PROBLEM, Kind.MALFORMED, Kind.BROKEN)
"""Reports that explain what is missing from an answer."""
_STYLES = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red", "alert": "red", "emergency": "red"}


class Messages:
    """Shows them. On a terminal they keep out of the way of the progress bar."""

    def __init__(self, level: str) -> None:
        self._least = LEVELS[level]
        self._console = console(stderr=True) if sys.stderr.isatty() else None
        self._bar: tuple[Progress, TaskID] | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks."""
        return self._console is not None

    def log(self, params: D.LoggingMessageNotificationParams) -> None:
        """A log message, if it is of a level that is wanted: older servers may send others."""
        if LEVELS[params.level] < self._least:
            return
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        logger = "" if params.logger is UNSET else f"{params.logger}: "
        self._write(f"{params.level}: {logger}{data}", _STYLES.get(params.level, ""))

    def report(self, report: Report) -> None:
        """Something odd."""
        if report.kind in _TOLD or self._least == 0:
            self.pause()
            complain(report.text, "warning")

    def line(self, text: str) -> None:
        """A line of the server's standard error."""
        self._write(text, "dim")

    def progress(self, params: D.ProgressNotificationParams) -> None:
        """A step of a call. Without a terminal nobody is told."""
        if self._console is None:
            return
        total = None if params.total is UNSET else params.total
        bar, task = self._bar or self._begin(total)
        message = "" if params.message is UNSET else visible(params.message).replace("\n", " ")
        bar.update(task, completed=params.progress, total=total, description=message)

    def pause(self) -> None:
        """Take the bar away; the next step brings it back."""
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None

    def _begin(self, total: float | None) -> tuple[Progress, Any]:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        )
        bar = Progress(*columns, console=self._console, transient=True)
        bar.start()
        self._bar = bar, bar.add_task("", total=total)
        return self._bar

    def _write(self, text: str, style: str) -> None:
        if self._console is None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        else:
            self._console.print(visible(text), style=style, soft_wrap=True)
