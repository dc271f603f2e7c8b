"""A custom transport: a compressed TCP connection, with the five members that every transport has.

Run `python custom_transport.py`.
"""

import asyncio
import zlib
from contextlib import suppress

import typedmcp
from typedmcp import Server, text_of

server = Server("library", version="1.0")


@server.tool
async def verses(number: int) -> str:
    """Return verses of a long song."""
    return "\n".join(f"{bottles} green bottles, hanging on the wall" for bottles in range(number, 0, -1))


class CompressedTransport:
    """Carries bytes both ways, in pieces of any size."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unpack, self._pack = zlib.decompressobj(), zlib.compressobj()
        self.received = 0

    async def read(self) -> bytes:
        """Return the next bytes, or none at the end. Raise `OSError` if the connection breaks."""
        while data := await self._reader.read(65_536):
            self.received += len(data)
            try:
                plain = self._unpack.decompress(data)
            except zlib.error as error:
                raise OSError(f"not compressed: {error}") from error
            if plain:
                return plain
        return b""

    def write(self, data: bytes) -> None:
        """Queue bytes without waiting."""
        self._writer.write(self._pack.compress(data) + self._pack.flush(zlib.Z_SYNC_FLUSH))

    @property
    def is_congested(self) -> bool:
        """True while so much is queued that the caller should await `drain` before it writes more."""
        transport = self._writer.transport
        return transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]

    async def drain(self) -> None:
        """Wait until the queue is short. Return at once if the connection has ended."""
        with suppress(OSError):
            await self._writer.drain()

    async def close(self) -> None:
        """Send the queued bytes and close the connection."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await typedmcp.serve_async(server, CompressedTransport(reader, writer))


async def main() -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        transport = CompressedTransport(*await asyncio.open_connection(*listener.sockets[0].getsockname()))
        async with typedmcp.connect(transport) as client:
            text = text_of(await client.call_tool("verses", {"number": 1000}))
            print(text.splitlines()[0])
            print(f"{len(text)} characters arrived in {transport.received} bytes")


if __name__ == "__main__":
    asyncio.run(main())
