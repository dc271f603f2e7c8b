"""Storage of tokens and registrations: in memory, in files that processes share, and in the system's keyring."""

from __future__ import annotations

import asyncio
import binascii
import errno
import hashlib
import os
import stat
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from typedmcp.building import open_lock, replace_file, run_in_daemon_thread, visible
from typedmcp.errors import UsageError, missing_extra

__all__ = ["FileStorage", "KeyringStorage", "MemoryStorage", "TokenStorage"]

_FIRST_POLL: Final = 0.005
_LAST_POLL: Final = 0.1
"""Seconds between attempts to get a lock that another task, thread or process holds."""


class TokenStorage(Protocol):
    """Stores the tokens of servers, and the client's registrations. The values are secrets.

    `lock` is exclusive among all users of the same storage: tasks, threads and processes.
    """

    async def load(self, key: str) -> bytes | None:
        """Return the value of a key, or None."""
        ...

    async def save(self, key: str, value: bytes | None) -> None:
        """Store a value, or remove the key with None."""
        ...

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a key. A client that renews a token holds it until the new one is stored."""
        ...


async def _acquire(try_lock: Callable[[], bool]) -> None:
    delay = _FIRST_POLL
    while not try_lock():
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LAST_POLL)


class MemoryStorage:
    """Keeps tokens in this process. Clients in several threads and event loops may share one."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._locks: dict[str, threading.Lock] = {}

    async def load(self, key: str) -> bytes | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    async def save(self, key: str, value: bytes | None) -> None:
        """Store a value, or remove the key with None."""
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """Hold the lock of a key."""
        lock = self._locks.setdefault(key, threading.Lock())
        await _acquire(lambda: lock.acquire(blocking=False))
        try:
            yield
        finally:
            lock.release()


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _find_folder(folder: str | os.PathLike[str] | None) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "typedmcp" / "tokens" if folder is None else Path(folder)


class FileStorage:
    """Keeps tokens in a folder that only the user can read: one file for each key, with a file to lock it.

    Files are replaced as a whole. Default: `typedmcp/tokens` in `$XDG_STATE_HOME`, or in `~/.local/state`. Its methods
    raise `UsageError` if the folder or a file cannot be used, or belongs to another user.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = _find_folder(folder)

    def __repr__(self) -> str:
        return f"FileStorage({str(self._folder)!r})"

    def _path(self, key: str, suffix: str) -> Path:
        return self._folder / f"{_hash(key)}{suffix}"

    async def load(self, key: str) -> bytes | None:
        """Return the value of a key, or None. Raises `UsageError` if others may read the file."""
        path = self._path(key, ".json")
        with _naming(path):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                return None
            with os.fdopen(descriptor, "rb") as file:
                _check_private(path, os.fstat(descriptor))
                return file.read()

    async def save(self, key: str, value: bytes | None) -> None:
        """Store a value, or remove the key with None."""
        path = self._path(key, ".json")
        with _naming(path):
            if value is None:
                path.unlink(missing_ok=True)
            else:
                _make_folder(self._folder)
                replace_file(path, value)

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """Hold the lock of a key. The system releases it if the process ends."""
        path = self._path(key, ".lock")
        with _naming(path):
            _make_folder(self._folder)
            descriptor, try_lock = _open_lock(path)
        try:
            await _acquire(try_lock)
            yield
        finally:
            os.close(descriptor)


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Raise `UsageError` with the path for an error of the file system."""
    try:
        yield
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
        text = (
            f"{path} cannot be used for tokens: {reason}; choose a folder with FileStorage(folder), or MemoryStorage()"
        )
        raise UsageError(text) from None


def _check_private(path: Path, status: os.stat_result) -> None:
    """Raise `UsageError` unless a file is the user's own, and no other user may read or write it."""
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path} should hold tokens, and is not a file; remove it")
    if status.st_uid != os.geteuid():
        raise UsageError(f"{path} belongs to another user, who may have written it; remove it")
    if status.st_mode & 0o077:
        raise UsageError(f"{path} holds tokens, and other users may read it; expected the mode 0600")


def _make_folder(folder: Path) -> None:
    """Make the folder, with the mode 0700. Raises `UsageError` if other users may write in an existing one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise UsageError(f"other users may write in {folder}, where tokens are kept; expected the mode 0700")


def _open_lock(path: Path) -> tuple[int, Callable[[], bool]]:
    """Open a file to lock. Raises `UsageError` where the system has no such locks."""
    try:
        return open_lock(path)
    except ImportError:
        raise UsageError("tokens in files need file locks, which this system does not have") from None


class KeyringStorage:
    """Keeps tokens in the keyring of the system, such as GNOME Keyring, KWallet or the macOS Keychain.

    `service` is the name under which the keyring shows them. Keyrings have no locks, so `folder` has files to lock,
    which hold no secrets; the default is that of `FileStorage`. Its methods raise `UsageError` without the extra
    `keyring`, or if the system has no keyring.
    """

    def __init__(self, service: str = "typedmcp", folder: str | os.PathLike[str] | None = None) -> None:
        self._service = service
        self._files = FileStorage(folder)

    def __repr__(self) -> str:
        return f"KeyringStorage({self._service!r})"

    async def load(self, key: str) -> bytes | None:
        """Return the value of a key, or None. The system may ask the user to unlock the keyring."""
        value = await run_in_daemon_thread(_call_keyring, "get_password", self._service, _hash(key))
        try:
            return None if value is None else b64decode(value, validate=True)
        except binascii.Error:  # changed by another program
            return None

    async def save(self, key: str, value: bytes | None) -> None:
        """Store a value, or remove the key with None."""
        name = _hash(key)
        if value is not None:
            await run_in_daemon_thread(_call_keyring, "set_password", self._service, name, b64encode(value).decode())
        elif await self.load(key) is not None:
            await run_in_daemon_thread(_call_keyring, "delete_password", self._service, name)

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a key. The system releases it if the process ends."""
        return self._files.lock(key)


def _call_keyring(name: str, *arguments: str) -> str | None:
    """Call a function of the library `keyring`."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise UsageError(missing_extra("KeyringStorage", "keyring")) from None
    try:
        value: str | None = getattr(keyring, name)(*arguments)
    except KeyringError as error:
        reason = visible(str(error), 300) or type(error).__name__
        raise UsageError(f"the keyring cannot be used: {reason}; FileStorage() needs none") from None
    return value
