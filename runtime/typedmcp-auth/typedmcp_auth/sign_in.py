"""The ways for a person to sign in: in a browser on this machine, or elsewhere, by pasting a URL."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, Protocol
from urllib.parse import urlsplit

from typedmcp.building import is_awaitable, run_in_daemon_thread
from typedmcp.errors import SignInError, UsageError

__all__ = ["BrowserSignIn", "ConsoleSignIn", "Redirect", "SignIn"]

_MAX_HEAD_BYTES: Final = 1 << 15
"""Bytes of a request to the redirect URI."""

_REQUEST_TIMEOUT: Final = 10.0
"""Seconds in which a request to the redirect URI must arrive."""

_HEADERS: Final = (
    b"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    b"Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
)


class Redirect(Protocol):
    """A redirect URI for one sign-in."""

    uri: str

    async def visit(self, url: str, accept: Callable[[str], bool]) -> None:
        """Send the person to a URL, and wait until `accept` returns True for the query of a redirect."""
        ...


class SignIn(Protocol):
    """A way for a person to sign in."""

    def open_redirect(self, registered: str | None) -> AbstractAsyncContextManager[Redirect]:
        """Provide a redirect URI: the registered one if possible. It is released at the end."""
        ...


class BrowserSignIn:
    """Opens a browser, and listens on a loopback address for its redirect.

    `open` gets the URL. It is a function, plain or async; False means that there is no browser. `redirect_uri` sets
    host, port and path; without it the port is chosen when the client registers. `timeout` is in seconds.
    """

    def __init__(
        self,
        open: Callable[[str], object | Awaitable[object]] | None = None,
        *,
        redirect_uri: str | None = None,
        timeout: float = 300.0,
    ) -> None:
        self._open = webbrowser.open if open is None else open
        self._timeout = timeout
        self._redirect_uri = redirect_uri
        parts = urlsplit(redirect_uri or "http://127.0.0.1/callback")
        if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise UsageError(f"redirect_uri must be http://127.0.0.1:port/path or localhost, not {redirect_uri!r}")

    @asynccontextmanager
    async def open_redirect(self, registered: str | None) -> AsyncGenerator[Redirect]:
        """Listen on a loopback address."""
        listener = LoopbackListener(self._open, self._timeout)
        await listener.start(self._redirect_uri or registered, is_fixed=self._redirect_uri is not None)
        try:
            yield listener
        finally:
            await listener.close()


class LoopbackListener:
    """A small HTTP server that waits for one redirect."""

    def __init__(self, open: Callable[[str], object | Awaitable[object]], timeout: float) -> None:
        self.uri: str = ""
        self._open = open
        self._timeout = timeout
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._accept: Callable[[str], bool] = lambda _: False
        self._done = asyncio.Event()

    async def start(self, uri: str | None, *, is_fixed: bool) -> None:
        """Listen at a URI. If it is not fixed and its port is in use, take another port."""
        parts = urlsplit(uri or "http://127.0.0.1/callback")
        host, path = parts.hostname or "127.0.0.1", parts.path or "/"
        self._path = path
        try:
            self._server = await asyncio.start_server(self._serve, host, parts.port or 0, limit=_MAX_HEAD_BYTES)
        except OSError as error:
            if is_fixed:
                raise SignInError(f"cannot listen at {uri}: {error.strerror or error}") from None
            self._server = await asyncio.start_server(self._serve, host, 0, limit=_MAX_HEAD_BYTES)
        port = self._server.sockets[0].getsockname()[1]
        self.uri = f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"

    async def visit(self, url: str, accept: Callable[[str], bool]) -> None:
        """Open the browser, and wait for an accepted redirect."""
        self._accept = accept
        opened = await run_in_daemon_thread(self._open, url)
        if (await opened if is_awaitable(opened) else opened) is False:
            raise SignInError("no browser could be opened; use auth=OAuth(sign_in=ConsoleSignIn())")
        try:
            async with asyncio.timeout(self._timeout):
                await self._done.wait()
        except TimeoutError:
            raise SignInError(f"nobody signed in within {self._timeout:g} s") from None

    async def close(self) -> None:
        """Close the listener and its connections. A response that is being sent gets its time."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=1)
            for task in late:
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_REQUEST_TIMEOUT):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        finally:
            self._tasks.discard(task)
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        path, _, query = target.partition("?")
        if path != self._path:
            return _page("404 Not Found", "There is nothing here.")
        if method != "GET" or not self._accept(query):
            return _page("400 Bad Request", "This is not the redirect of the sign-in that is in progress.")
        self._done.set()
        return _page("200 OK", "You can close this page, and return to the program.")


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><title>Sign-in</title><p>{text}</p>".encode()
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status.encode(), _HEADERS, len(body), body)


def _show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  # standard output may belong to a protocol


class ConsoleSignIn:
    """Shows the URL, and asks for the URL of the redirect, for machines without a browser.

    The person opens the URL elsewhere, signs in, and copies the address of the page that could not be loaded. `show`
    and `ask` get a text; `ask` returns the answer. They are functions, plain or async.
    """

    def __init__(
        self,
        *,
        show: Callable[[str], object | Awaitable[object]] = _show,
        ask: Callable[[str], str | Awaitable[str]] = input,
        redirect_uri: str = "http://127.0.0.1:8765/callback",
    ) -> None:
        self._show = show
        self._ask = ask
        self.uri: str = redirect_uri

    @asynccontextmanager
    async def open_redirect(self, registered: str | None) -> AsyncGenerator[Redirect]:  # noqa: ARG002  # always the same
        """Provide the redirect URI, at which nothing listens."""
        yield self

    async def visit(self, url: str, accept: Callable[[str], bool]) -> None:
        """Show the URL, and ask for that of the redirect."""
        shown = await run_in_daemon_thread(self._show, f"Open this URL, and sign in:\n{url}")
        if is_awaitable(shown):
            await shown
        try:
            answered = await run_in_daemon_thread(self._ask, "URL of the page after that: ")
            pasted = (await answered if is_awaitable(answered) else str(answered)).strip()
        except EOFError:
            raise SignInError("nobody can be asked for the URL, since standard input has ended") from None
        if not accept(urlsplit(pasted).query if "?" in pasted else pasted):
            raise SignInError("the pasted URL does not belong to this sign-in")
