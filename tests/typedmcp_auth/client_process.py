"""A client that must not ask a person: `client_process.py URL FOLDER CALLS` uses the tokens of a folder."""

from __future__ import annotations

import asyncio
import sys

import typedmcp
import typedmcp_auth as auth


async def main(url: str, folder: str, calls: int) -> None:
    option = auth.OAuth(sign_in=auth.BrowserSignIn(lambda _: False), storage=auth.FileStorage(folder))
    async with typedmcp.connect(url, auth=option, timeout=20) as client:
        for _ in range(calls):
            print(await client.call_tool("read", result_type=str), flush=True)
            await asyncio.sleep(0.8)  # so that tokens expire in between


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
