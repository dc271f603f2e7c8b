"""Chromium for tests of pages, controlled by WebDriver."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

__all__ = ["CHROMIUM", "DRIVER", "Browser", "browser"]

_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@dataclass(frozen=True)
class Browser:
    """A browser window, controlled by WebDriver."""

    address: str

    def send(self, command: str, **body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.address}/{command}", json.dumps(body).encode(), headers)  # noqa: S310
        with urlopen(request, timeout=60) as response:  # noqa: S310
            return json.load(response)["value"]

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page, and return its value."""
        return self.send("execute/sync", script=script, args=[*arguments])

    def wait_for(self, script: str, *arguments: Any, seconds: float = 20) -> Any:
        """Wait until an expression in the page is true, and return it."""
        end = monotonic() + seconds
        while not (found := self.run(f"return {script}", *arguments)):
            assert monotonic() < end, f"{script}: not within {seconds} s\n{self.run('return document.body.innerText')}"
            sleep(0.05)
        return found

    def log(self) -> list[Any]:
        """Return what the page has written to its console since the last call: errors, blocked resources."""
        found: list[Any] = self.send("se/log", type="browser")
        return found

    def save_picture(self, path: Path) -> None:
        """Save a picture of the window."""
        with urlopen(f"{self.address}/screenshot", timeout=60) as response:  # noqa: S310
            path.write_bytes(base64.b64decode(json.load(response)["value"]))


@contextmanager
def _driver() -> Generator[str]:
    assert DRIVER is not None
    process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        try:
            assert process.stdout is not None
            ports = (re.search(r"successfully on port (\d+)", line) for line in process.stdout)
            yield f"http://127.0.0.1:{next(port for port in ports if port).group(1)}"
        finally:
            process.terminate()


@contextmanager
def browser(width: int, height: int, profile: Path) -> Generator[Browser]:
    """Open a window of an exact width. A headless browser needs emulation for that."""
    options = {
        "binary": CHROMIUM,
        "args": [*_ARGUMENTS, f"--user-data-dir={profile}"],
        "mobileEmulation": {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 1}},
    }
    wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    with _driver() as address:
        session = Browser(address).send("session", capabilities={"alwaysMatch": wanted})
        opened = Browser(f"{address}/session/{session['sessionId']}")
        try:
            yield opened
        finally:
            urlopen(Request(opened.address, method="DELETE"), timeout=60).close()  # noqa: S310
