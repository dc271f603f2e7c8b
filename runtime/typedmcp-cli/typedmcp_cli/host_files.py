"""Merges the entry of a server into the configuration file of a host, without a loss."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from typedmcp.building import is_object, replace_file
from typedmcp.errors import UsageError
from typedmcp_cli.status import FAILED, CommandExit
from typedmcp_hosts import load_config

__all__ = ["render", "write_entry"]

_MARK = uuid4().hex
_NUMBER = re.compile(rf'"{_MARK}([^"]*)"')
"""A number while the file is in memory."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Characters that a file has as escapes only."""
_LOCK_SECONDS: Final = 10.0
"""Seconds to wait for another run that writes a file in the same folder."""
_LOCK_PAUSE: Final = 0.02
_INDENT = re.compile(r"\A\s*\{\s*?\n([ \t]+)")
_LOCATORS = ("type", "transport", "command", "args", "cwd", "env", "url", "httpUrl", "serverUrl", "headers")
"""The members of an entry that say how to reach a server. A new entry replaces them, and keeps all others."""


def render(value: object, indent: str | int = 2) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def write_entry(file: Path, member: str, name: str, entry: Mapping[str, Any]) -> Path | None:
    """Add a server to a configuration file, or replace it. Return the copy of the old file, if there was one.

    The file is replaced at once, so that no reader sees a part of it. Raises `CommandExit` for a file that cannot be
    changed without a loss, which it leaves as it is.
    """
    file = Path(os.path.realpath(file))  # a link stays one
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file.parent):
            return _write_entry(file, member, name, entry)
    except OSError as error:
        raise CommandExit(f"{file}: {error.strerror}", FAILED) from None


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold a lock on a folder, so that no other run writes a file in it. Windows has no such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    latest = time.monotonic() + _LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > latest:
                    text = f"{folder}: another process has held its lock for {_LOCK_SECONDS:g} s; nothing was written"
                    raise CommandExit(text, FAILED) from None
            except OSError:  # a file system without locks
                break
            time.sleep(_LOCK_PAUSE)
        yield
    finally:
        os.close(descriptor)


def _write_entry(file: Path, member: str, name: str, entry: Mapping[str, Any]) -> Path | None:
    text = _read(file)
    content = _parse(file, text)
    servers = content.setdefault(member, {})
    if not is_object(servers):
        raise CommandExit(f"{file}: {member}: expected an object, got {type(servers).__name__}", FAILED)
    servers[name] = _merge(servers.get(name), entry)
    found = _INDENT.match(text)
    new = _NUMBER.sub(r"\1", render(content, found[1] if found else 2)) + "\n"
    new = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", new)
    return None if new == text else _replace(file, new, has_old=bool(text))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandExit(f"{file}: {error.strerror if isinstance(error, OSError) else error}", FAILED) from None


def _parse(file: Path, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        content: Any = json.loads(
            text,
            object_pairs_hook=_reject_repeated,
            parse_constant=_reject_constant,
            parse_float=_keep_number,
            parse_int=_keep_number,
        )
    except (ValueError, RecursionError) as error:
        raise CommandExit(f"{file}: {_explain(file, error)}; nothing was written", FAILED) from None
    if not is_object(content):
        raise CommandExit(f"{file}: expected an object, got {type(content).__name__}; nothing was written", FAILED)
    return content


def _explain(file: Path, error: Exception) -> str:
    """Say why a file cannot be changed: it has comments, which would be lost, or it is not JSON."""
    with suppress(UsageError):
        load_config(file, on_diagnostic=lambda _: None)
        return f"it has comments or trailing commas, which would be lost ({error}); add the entry by hand"
    return f"it is not valid JSON: {error}"


def _reject_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"the member {min(repeated)!r} is repeated")
    return dict(pairs)


def _reject_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _keep_number(text: str) -> str:
    """Return a text in place of a number, which is written as it was read: Python has no 1e400."""
    return f"{_MARK}{text}"


def _merge(old: object, entry: Mapping[str, Any]) -> dict[str, Any]:
    if not is_object(old):
        return {**entry}
    kept = {name: value for name, value in old.items() if name not in _LOCATORS}
    env: Any = old.get("env")
    merged = {**entry, **kept}
    if is_object(env) and "command" in entry:
        merged["env"] = {**env, **entry.get("env", {})}
    return merged


def _replace(file: Path, text: str, *, has_old: bool) -> Path | None:
    copy = file.with_name(f"{file.name}.bak") if has_old else None
    if copy is not None:
        replace_file(copy, file.read_bytes())  # also a link, which another user may have put there
        shutil.copymode(file, copy)
    descriptor, new = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # only its owner can read it
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if has_old:
            shutil.copymode(file, new)
        os.replace(new, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
    return copy
