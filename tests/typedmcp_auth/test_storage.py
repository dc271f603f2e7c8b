"""Storage of tokens: files that may be damaged, unreadable or planted by others, and the keyring of the system."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import pytest

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import protected, sign_in
from tests.typedmcp_auth.test_sign_in import call


def test_a_value_is_stored_replaced_and_removed(tmp_path: Path) -> None:
    async def main(storage: auth.TokenStorage) -> None:
        assert await storage.load("key") is None
        await storage.save("key", None)
        for value in (b"one", b"\x00\xff"):
            await storage.save("key", value)
            assert await storage.load("key") == value
        assert await storage.load("other") is None
        await storage.save("key", None)
        assert await storage.load("key") is None

    for storage in (auth.MemoryStorage(), auth.FileStorage(tmp_path)):
        asyncio.run(main(storage))


DAMAGE = {
    "empty": b"",
    "half a document": b'{"issuer": "http',
    "another kind": b"[]",
    "another version": b'{"issuer": 1}',
    "not UTF-8": b"\xff\xfe",
    "too deep": b"[" * 100_000,
}


@each("damage", DAMAGE)
def test_damaged_files_lead_to_another_sign_in(damage: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            for path in tmp_path.glob("*.json"):
                path.write_bytes(DAMAGE[damage])
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            assert server.paths().count("/register") == 2

    run(main)


async def load_and_save(storage: auth.FileStorage) -> None:
    async with storage.lock("key"):
        await storage.load("key")
        await storage.save("key", b"value")


def test_a_planted_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    async def main() -> None:
        storage = auth.FileStorage(tmp_path / "tokens")
        await storage.save("key", b"mine")
        path = next((tmp_path / "tokens").glob("*.json"))
        target = tmp_path / "target"
        target.write_bytes(b"of somebody else")
        target.chmod(0o600)
        path.unlink()
        path.symlink_to(target)
        with pytest.raises(typedmcp.UsageError, match="symbolic link"):
            await storage.load("key")
        await storage.save("key", b"mine")
        assert (await storage.load("key"), target.read_bytes()) == (b"mine", b"of somebody else")
        lock = path.with_suffix(".lock")
        lock.symlink_to(target)
        with pytest.raises(typedmcp.UsageError, match="symbolic link"):
            await load_and_save(storage)

    run(main)


def test_what_is_not_a_file_is_rejected_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        storage = auth.FileStorage(tmp_path)
        await storage.save("key", b"value")
        path = next(tmp_path.glob("*.json"))
        path.unlink()
        os.mkfifo(path, 0o600)
        with pytest.raises(typedmcp.UsageError, match="is not a file"):
            await asyncio.wait_for(storage.load("key"), 60)

    run(main)


def test_a_folder_in_which_others_may_write_is_rejected(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(typedmcp.UsageError, match="0700"):
        asyncio.run(load_and_save(auth.FileStorage(tmp_path)))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make files of another user")
def test_files_of_other_users_are_rejected(tmp_path: Path) -> None:
    async def main() -> None:
        storage = auth.FileStorage(tmp_path)
        await storage.save("key", b"value")
        os.chown(next(tmp_path.glob("*.json")), 12345, 12345)
        with pytest.raises(typedmcp.UsageError, match="another user"):
            await storage.load("key")

    run(main)


def test_a_home_that_cannot_be_written_is_an_error_with_a_remedy_and_costs_no_token() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            option = sign_in(storage=auth.FileStorage("/dev/null/tokens"))
            with pytest.raises(typedmcp.UsageError, match=r"/dev/null/tokens.*MemoryStorage\(\)"):
                await call(url, option)
            assert server.requests == []

    run(main)


def test_a_waiting_lock_can_be_cancelled(tmp_path: Path) -> None:
    async def main(storage: auth.TokenStorage) -> None:
        async def wait() -> None:
            async with storage.lock("key"):
                pass

        async with storage.lock("key"):
            task = asyncio.create_task(wait())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.wait_for(wait(), 60)

    for storage in (auth.MemoryStorage(), auth.FileStorage(tmp_path)):
        asyncio.run(main(storage))


# The keyring of the system, which a test cannot have: a backend in its place


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A keyring in this process. `problem` is raised by each call."""

    priority: Any = 1

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.problem: Exception | None = None

    def get_password(self, service: str, username: str) -> str | None:
        if self.problem is not None:
            raise self.problem
        return self.values.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.values[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.values[service, username]


@pytest.fixture
def memory_keyring() -> Generator[MemoryKeyring]:
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_a_keyring_keeps_tokens_for_other_processes(memory_keyring: MemoryKeyring, tmp_path: Path) -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            for _ in range(2):
                await call(url, sign_in(storage=auth.KeyringStorage("my app", tmp_path)))
            assert script.seen.count("") == 1
            server.tokens.clear()
            storage = auth.KeyringStorage("my app", tmp_path)
            options = [sign_in(storage=storage) for _ in range(3)]
            await asyncio.gather(*[call(url, option) for option in options])
            assert server.reused == []

    run(main)
    assert {service for service, _ in memory_keyring.values} == {"my app"}
    assert all(b"access-" not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_keyring_removes_values_and_ignores_foreign_ones(memory_keyring: MemoryKeyring, tmp_path: Path) -> None:
    async def main() -> None:
        storage = auth.KeyringStorage(folder=tmp_path)
        await storage.save("key", None)
        await storage.save("key", b"\x00\xff")
        assert await storage.load("key") == b"\x00\xff"
        await storage.save("key", None)
        assert await storage.load("key") is None
        assert memory_keyring.values == {}
        await storage.save("key", b"value")
        memory_keyring.values = dict.fromkeys(memory_keyring.values, "not ours")
        assert await storage.load("key") is None

    run(main)


def test_a_locked_or_missing_keyring_is_an_error_with_a_remedy(memory_keyring: MemoryKeyring, tmp_path: Path) -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            option = sign_in(storage=auth.KeyringStorage(folder=tmp_path))
            memory_keyring.problem = keyring.errors.KeyringLocked("the person \x1b[31mdeclined")
            with pytest.raises(typedmcp.UsageError, match=r"x1b\[31mdeclined; FileStorage\(\)"):
                await call(url, option)
            memory_keyring.problem = keyring.errors.NoKeyringError()
            with pytest.raises(typedmcp.UsageError, match="NoKeyringError"):
                await call(url, option)
            assert server.requests == []

    run(main)


def test_a_missing_library_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(typedmcp.UsageError, match=r"typedmcp\[keyring\]"):
        asyncio.run(auth.KeyringStorage(folder=tmp_path).load("key"))


def test_options_of_the_storages_are_shown_without_contents(tmp_path: Path) -> None:
    assert repr(auth.KeyringStorage("my app")) == "KeyringStorage('my app')"
    assert repr(auth.FileStorage(tmp_path)) == f"FileStorage({str(tmp_path)!r})"
