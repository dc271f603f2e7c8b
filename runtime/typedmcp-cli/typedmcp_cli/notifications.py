"""Display of log messages, progress, diagnostics and the server's standard error, all on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from mcpspec.features import LOG_LEVELS
from typedmcp import Diagnostic, DiagnosticKind, types
from typedmcp.building import escape_controls, visible
from typedmcp.types import LoggingLevel as LoggingLevel
from typedmcp_cli.output import make_console
from typedmcp_cli.status import print_error

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from mcpspec.ext.tasks.structs import GetTaskResult

__all__ = ["NotificationDisplay"]


_SHOWN_DIAGNOSTICS = (DiagnosticKind.INVALID_DATA, DiagnosticKind.MALFORMED, DiagnosticKind.CONNECTION_ERROR)
"""Diagnostics that explain why a result is incomplete. The others are shown with `--log-level debug`."""
_TASK_TEXT = 300
"""Characters of a line about a task."""
_STYLES = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red", "alert": "red", "emergency": "red"}


class NotificationDisplay:
    """Shows everything but the result on standard error. On a terminal, printed lines hide the progress bar."""

    def __init__(self, level: LoggingLevel) -> None:
        self._min_level = LOG_LEVELS.index(level)
        self._console = make_console(stderr=True) if sys.stderr.isatty() else None
        self._bar: tuple[Progress, TaskID] | None = None

    @property
    def is_terminal(self) -> bool:
        """True if standard error is a terminal."""
        return self._console is not None

    def show_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Print a log message of the chosen level or above. Older servers may send others, too."""
        if LOG_LEVELS.index(params.level) < self._min_level:
            return
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        logger = "" if params.logger is None else f"{params.logger}: "
        self._print_line(f"{params.level}: {logger}{data}", _STYLES.get(params.level, ""))

    def show_diagnostic(self, diagnostic: Diagnostic) -> None:
        """Print a diagnostic as a warning, if it matters to the user."""
        if diagnostic.kind in _SHOWN_DIAGNOSTICS or self._min_level == 0:
            self.hide_progress()
            print_error(diagnostic.text, "warning")

    def show_server_line(self, text: str) -> None:
        """Print a line that the server wrote to its standard error."""
        self._print_line(text, "dim")

    def show_progress(self, params: types.ProgressNotificationParams) -> None:
        """Show progress as a bar. Without a terminal, show nothing."""
        if self._console is None:
            return
        bar, task = self._bar or self._start_bar(params.total)
        message = visible(params.message or "")
        bar.update(task, completed=params.progress, total=params.total, description=message)

    def show_task(self, task: GetTaskResult) -> None:
        """Show the state of the task that a call has become: as a bar, or without a terminal as a line."""
        if task.status in ("completed", "failed", "cancelled"):
            return
        text = visible(": ".join(filter(None, (f"task {task.task_id}", task.status, task.status_message))), _TASK_TEXT)
        if self._console is None:
            self._print_line(text, "")
        else:
            bar, shown = self._bar or self._start_bar(None)
            bar.update(shown, description=text)

    def hide_progress(self) -> None:
        """Remove the progress bar until the next progress notification."""
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None

    def _start_bar(self, total: float | None) -> tuple[Progress, TaskID]:
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

    def _print_line(self, text: str, style: str) -> None:
        text = escape_controls(text, keep_lines=True)
        if self._console is None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        else:
            self._console.print(text, style=style, soft_wrap=True)
