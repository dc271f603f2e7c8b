"""A transport of one's own: a TCP connection that is compressed. Server and client are given the same five members.

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
    """Verses of a song that does not end."""
    return "\n".join(f"{bottles} green bottles, hanging on the wall" for bottles in range(number, 0, -1))


class Compressed:
    """Bytes both ways, however they are cut. This is all that a transport is."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unpack, self._pack = zlib.decompressobj(), zlib.compressobj()
        self.sent = 0
        self.received = 0

    async def read(self) -> bytes:
        """The next bytes; empty at the end, and only there. `OSError` is for a connection that broke."""
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
        """Queue bytes; never wait."""
        packed = self._pack.compress(data) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        self.sent += len(packed)
        self._writer.write(packed)

    @property
    def congested(self) -> bool:
        """Whether so much is queued that nobody should write before `drain` returns."""
        transport = self._writer.transport
        return transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]

    async def drain(self) -> None:
        """Wait until that is no longer so; at the end of the connection at once."""
        with suppress(OSError):
            await self._writer.drain()

    async def close(self) -> None:
        """Send what is queued, and end the connection."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await typedmcp.serve_async(server, Compressed(reader, writer))


async def main() -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        transport = Compressed(*await asyncio.open_connection(*listening.sockets[0].getsockname()))
        async with typedmcp.connect(transport) as client:
            text = text_of(await client.call_tool("verses", {"number": 1000}))
            print(text.splitlines()[0])
            print(f"{len(text)} characters came in {transport.received} bytes")


if __name__ == "__main__":
    asyncio.run(main())
