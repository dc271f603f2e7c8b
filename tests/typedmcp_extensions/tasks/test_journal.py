"""The journal of unfinished tasks, which processes share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from typedmcp.errors import UsageError
from typedmcp.transports.locked_files import open_lock
from typedmcp_extensions.tasks.journal import KnownTask, TaskJournal

_WORKER = """
import sys
from typedmcp_extensions.tasks.journal import KnownTask, TaskJournal
journal = TaskJournal(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(60):
    journal.save(KnownTask(f"{sys.argv[2]}-{number}", "convert"))
    if number % 2:
        journal.forget(f"{sys.argv[2]}-{number}")
"""


def test_no_task_is_lost_when_two_processes_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=60)
        assert worker.returncode == 0
    kept = {f"{name}-{number}" for name in ("a", "b") for number in range(0, 60, 2)}
    assert {task.id for task in TaskJournal(path).tasks()} == kept
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == [".tasks.json.lock", "tasks.json"]


def test_a_journal_shows_what_others_have_written(tmp_path: Path) -> None:
    one, two = TaskJournal(tmp_path / "tasks.json"), TaskJournal(tmp_path / "tasks.json")
    one.save(KnownTask("1", "convert"))
    two.save(KnownTask("2", "convert", {"name": "Ada"}))
    assert [task.id for task in one.tasks()] == ["1", "2"]
    assert one.find("2").answers == {"name": "Ada"}
    two.forget("1")
    assert [task.id for task in one.tasks()] == ["2"]


def test_a_journal_that_another_process_keeps_locked_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typedmcp_extensions.tasks.journal._LOCK_SECONDS", 0.05)
    journal = TaskJournal(tmp_path / "tasks.json")
    descriptor, try_lock = open_lock(tmp_path / ".tasks.json.lock")
    assert try_lock()
    with pytest.raises(UsageError, match=r"another process has kept the journal .* locked .* use another file"):
        journal.save(KnownTask("1"))
    os.close(descriptor)
    journal.save(KnownTask("1"))


def test_a_journal_in_memory_needs_no_file() -> None:
    journal = TaskJournal()
    journal.save(KnownTask("1"))
    journal.forget("2")
    assert [task.id for task in journal.tasks()] == ["1"]
