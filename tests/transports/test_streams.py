"""A transport over pipes: large messages, and chunks that pass its reader by."""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from typedmcp.transports import tap
from typedmcp.transports.files import FileTransport
from typedmcp.transports.streams import StreamTransport

if sys.platform == "linux":
    import fcntl
    import termios
else:
    pytest.skip("only Linux lets a process change the size of a pipe", allow_module_level=True)

LARGE = 500_000
"""Bytes of a message: more than a new pipe holds, and fewer than the system allows by default."""


def test_a_message_that_does_not_fit_into_a_pipe_enlarges_it() -> None:
    async def main(transport: StreamTransport, source: int, sink: int) -> None:
        transport.write(b"x")
        first_size = _pipe_size(sink)
        transport.write(b"y" * LARGE)
        if _pipe_size(sink) == first_size:
            pytest.skip("the system does not allow it")
        assert _unread_bytes(source) == 1 + LARGE, "all is sent before anything is read"

    _run(main)


def test_small_messages_leave_a_pipe_as_it_is() -> None:
    async def main(transport: StreamTransport, source: int, sink: int) -> None:
        first_size = _pipe_size(sink)
        for _ in range(100):
            transport.write(b"x" * 100)
        assert await transport.read() == b"x" * 10_000
        assert _pipe_size(source) == first_size

    _run(main)


def test_a_pipe_blocks_as_before_once_the_transport_is_closed() -> None:
    async def main() -> None:
        pipes = os.pipe()
        try:
            transport = StreamTransport(*pipes)
            assert [os.get_blocking(descriptor) for descriptor in pipes] == [False, False]
            await transport.close()
            assert [os.get_blocking(descriptor) for descriptor in pipes] == [True, True]
        finally:
            for descriptor in pipes:
                os.close(descriptor)

    asyncio.run(main())


def test_a_full_pipe_is_enlarged_by_its_reader() -> None:
    async def main(transport: StreamTransport, source: int, sink: int) -> None:
        first_size = _pipe_size(source)
        os.write(sink, b"x" * first_size)
        assert await transport.read() == b"x" * first_size
        if _pipe_size(source) == first_size:
            pytest.skip("the system does not allow it")
        os.write(sink, b"y" * LARGE)
        assert await transport.read() == b"y" * LARGE, "one chunk"

    _run(main)


def test_a_tap_gets_chunks_until_it_wants_no_more_and_the_reader_gets_the_rest() -> None:
    async def main(transport: StreamTransport, source: int, sink: int) -> None:
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            assert asyncio.current_task() is None
            taken.append(data)
            return len(taken) < 2

        tap(transport, take)
        reading = asyncio.create_task(transport.read())
        for count in (1, 2):
            os.write(sink, b"%d" % count)
            while len(taken) < count:
                await asyncio.sleep(0)
        assert not reading.done()
        os.write(sink, b"3")
        assert await reading == b"3"
        assert taken == [b"1", b"2"]

    _run(main)


def test_a_tap_leaves_what_has_arrived_before_to_the_reader_and_does_not_get_the_end() -> None:
    async def main(transport: StreamTransport, source: int, sink: int) -> None:
        taken: list[bytes] = []
        os.write(sink, b"1")
        assert await transport.read() == b"1"  # from now on it reads ahead
        os.write(sink, b"2")
        while not transport._chunks:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)
        tap(transport, lambda data: not taken.append(data))  # type: ignore[func-returns-value]
        assert await transport.read() == b"2"
        await transport.close()
        assert await transport.read() == b""
        assert taken == []

    _run(main)


def test_threads_of_files_close_what_they_use_though_the_loop_has_ended() -> None:
    async def main() -> None:
        reader, writer = FileTransport(source, source), FileTransport(full_sink, full_sink)
        reading = asyncio.create_task(reader.read())
        writer.write(b"x" * LARGE)
        await asyncio.sleep(0)
        reading.cancel()
        await reader.close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.close(), 0.01)

    before = _descriptors()
    (source, sink), (full_source, full_sink) = os.pipe(), os.pipe()
    asyncio.run(main())
    threads = [thread for thread in threading.enumerate() if thread.name in ("typedmcp _read", "typedmcp _write")]
    for descriptor in (source, sink, full_source, full_sink):
        os.close(descriptor)
    for thread in threads:
        thread.join()
    assert len(threads) == 2
    assert _descriptors() == before


def _descriptors() -> set[str]:
    listing = Path("/proc/self/fd")
    return {os.readlink(entry) for entry in listing.iterdir() if entry.exists()}


def _run(main: Callable[[StreamTransport, int, int], Coroutine[Any, Any, None]]) -> None:
    """Run a function with a transport that reads what it writes, and with the ends of its pipe."""

    async def with_transport() -> None:
        source, sink = os.pipe()
        transport = StreamTransport(source, sink)
        try:
            await main(transport, source, sink)
        finally:
            while _unread_bytes(source):
                os.read(source, LARGE)
            await transport.close()
            os.close(source)
            os.close(sink)

    asyncio.run(with_transport())


def _pipe_size(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)


def _unread_bytes(descriptor: int) -> int:
    found: int = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0]
    return found
