"""The page of `typedmcp dev` in Chromium, at the widths of a desktop and a phone.

Pictures of it go to the folder in the variable `TYPEDMCP_PICTURES`, if that is set (`make pictures`).
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser import CHROMIUM, DRIVER, Browser, browser
from tests.spoken import SUPPORTED
from tests.typedmcp_cli.dev.serving import dev_page

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the path"),
]

SERVER = '''
import asyncio
from base64 import b64decode
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from typedmcp import Audio, Context, Image, Server

server = Server("weather", version="1.0", instructions="Check for alerts before you recommend going outside.")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass
class Place:
    name: str
    latitude: float
    height: int | None = None


@dataclass
class Day:
    day: str
    rain: float
    wind: int


@server.tool
def forecast(
    city: str, days: Annotated[int, Meta(ge=1, le=7)] = 3, unit: Literal["C", "F"] = "C", about: list[str] = []
) -> list[Day]:
    """Forecast the weather of a city.

    Args:
        city: The name of the city.
        days: How many days, starting today.
        about: What else to include, such as wind.
    """
    return [Day(f"day {number}", number * 1.5, 3 + number) for number in range(days)]


@server.tool
def compare(places: list[Place], best: Place, detailed: bool = False, options: dict[str, int] = {}) -> str:
    """Compare the weather of several places."""
    return f"{places} {best} {detailed} {options}"


@server.tool
async def measure(ctx: Context) -> str:
    """Query all stations, one after the other."""
    await ctx.progress(1, total=3, message="station 1")
    await ctx.log("warning", "station 2 is frozen", "stations")
    await asyncio.sleep(1000)
    return ""


@server.tool
async def book(ctx: Context) -> str:
    """Book a boat trip."""
    fields = {
        "name": {"type": "string", "minLength": 2, "description": "The name on the ticket."},
        "people": {"type": "integer", "minimum": 1, "default": 2},
        "meal": {"type": "string", "enum": ["fish", "vegetables"]},
    }
    answer = await ctx.elicit("Who is coming?", {"type": "object", "properties": fields, "required": ["name"]})
    return f"{answer.action} {answer.content}"


@server.tool
async def summarize(ctx: Context) -> str:
    """Ask a model for a summary."""
    answer = await ctx.sample("Summarize <b>this</b>.", max_tokens=50)
    return f"{answer.model}: {answer.content.text}"


@server.tool
def map(city: str) -> list[str | Image | Audio]:
    """Draw a map of the clouds, with the sound of the rain."""
    return [f"The clouds over {city}:", Image(data=b64decode(PIXEL), format="png"), Audio(data=b"RIFF", format="wav")]


@server.resource("weather://{city}/now")
def now(city: str) -> str:
    """Get the current weather."""
    return f"Rain in {city}."


@server.prompt
def packing(city: str, days: int = 3) -> str:
    """Ask for a packing list."""
    return f"I am going to {city} for {days} days. What do I pack?"
'''

HOSTILE = r"""
import json
import sys

NAME = "<img src=x onerror=document.title='broken'>\u202egnp.exe\u0007\x1b[2J"
PAGE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    result = None
    if method == "server/discover":
        result = {**PAGE, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "instructions": NAME,
                  "_meta": {"io.modelcontextprotocol/serverInfo": {"name": NAME, "version": NAME}}}
    elif method == "tools/list":
        field = {"type": "string", "description": NAME, "enum": [NAME, "b"]}
        schema = {"type": "object", "properties": {NAME: field, "__proto__": {"$ref": "#/properties/__proto__"}}}
        result = {**PAGE, "tools": [{"name": NAME, "title": NAME, "description": NAME, "inputSchema": schema}]}
    elif method == "tools/call":
        blocks = [
            {"type": "text", "text": NAME},
            {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"},
            {"type": "image", "data": "\" onerror=\"x", "mimeType": "image/png"},
            {"type": "resource_link", "name": NAME, "uri": "javascript:document.title='broken'"},
        ]
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": 3, "data": NAME}}))
        result = {**PAGE, "content": blocks, "structuredContent": {"a": 12345678901234567890, "<b>": NAME}}
    if result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

_CHOOSE = """
const [name] = arguments;
[...document.querySelectorAll("#lists button")].find(one => one.querySelector(".name").textContent === name).click();
"""
_FILL = """
const [name, value, place] = arguments;
const all = [...document.querySelectorAll("form.card .field")];
const fields = all.filter(one => one.querySelector("label").textContent === name);
const input = fields[place].querySelector("input:not([type=checkbox]), select, textarea");
input.value = value;
input.dispatchEvent(new Event("input", {bubbles: true}));
"""
_PRESS = """
const [label] = arguments;
const shown = [...document.querySelectorAll("button")].filter(one => one.offsetParent !== null);
shown.find(one => one.textContent === label).click();
"""
_SPEAK = """
const box = document.querySelector("#revision");
box.value = arguments[0];
box.dispatchEvent(new Event("change"));
"""
_LAST = 'document.querySelector("#calls .call")'
_RESULT = """
(card => {
  if (!card || card.dataset.isRead || !card.querySelector(".outcome").textContent.startsWith(arguments[0])) return null;
  card.dataset.isRead = "yes";
  return [card.querySelector(".body").innerText];
})(document.querySelector("#calls .call"))
"""


@dataclass(frozen=True)
class Page:
    """The page in a window."""

    window: Browser
    width: int

    def choose(self, name: str) -> None:
        """Open the form of a feature."""
        self.show("features")
        self.window.wait_for(
            '[...document.querySelectorAll("#lists .name")].some(one => one.textContent === arguments[0])', name
        )
        self.window.run(_CHOOSE, name)

    def show(self, view: str) -> None:
        self.window.run("document.body.dataset.view = arguments[0]", view)

    def fill(self, name: str, value: str, place: int = 0) -> None:
        self.window.run(_FILL, name, value, place)

    def press(self, label: str) -> None:
        self.window.run(_PRESS, label)

    def result(self, outcome: str = "done") -> str:
        """Wait for the end of a call whose result was not read yet, and return its text."""
        [text] = self.window.wait_for(_RESULT.strip(), outcome)
        return str(text)

    def picture(self, name: str) -> None:
        """Check that nothing is wider than the window, and save a picture."""
        widest, room = self.window.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert widest <= room == self.width
        if folder := os.environ.get("TYPEDMCP_PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.window.save_picture(Path(folder) / f"dev-{name}-{self.width}.png")


@pytest.fixture(scope="module", params=[1280, 360])
def window(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Browser, int]]:
    width: int = request.param
    with browser(width, 800, tmp_path_factory.mktemp("profile")) as opened:
        yield opened, width


at_one_width = pytest.mark.parametrize("window", [1280], indirect=True, ids=str)
"""Runs a test whose page looks the same as in others once."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


@pytest.fixture
def page(window: tuple[Browser, int], file: Path) -> Generator[Page]:
    with dev_page(str(file), cwd=file.parent) as served:
        opened = Page(*window)
        opened.window.send("url", url=served.url)
        opened.window.wait_for('document.querySelector("#state.connected") && document.querySelector("#lists button")')
        yield opened
        assert opened.window.log() == []
        opened.window.send("url", url="about:blank")


def test_a_form_becomes_a_call_and_the_messages_are_shown_as_valid(page: Page) -> None:
    page.choose("forecast")
    page.fill("city", "Bergen")
    page.fill("days", "2")
    page.press("Call")
    assert "day 1" in page.result()
    page.picture("call")
    page.show("traffic")
    page.picture("messages")
    sent = page.window.run('return [...document.querySelectorAll("#frames .sent .what")].map(one => one.textContent)')
    assert sent[0].startswith("server/discover")
    assert sent[-1].startswith("tools/call")
    assert page.window.run('return document.querySelectorAll("#frames .invalid").length') == 0
    page.window.run('document.querySelector("#frames li:last-child summary").click()')
    detail = page.window.wait_for('document.querySelector("#frames li:last-child .detail")?.innerText')
    assert f"Valid in {SUPPORTED[0]}" in detail
    assert '"structuredContent": {' in detail


def test_nested_objects_arrays_and_json_are_filled_in_and_errors_are_beside_their_field(page: Page) -> None:
    page.choose("compare")
    page.press("+ Add item")
    page.fill("name", "Bergen")
    page.fill("latitude", "north")
    page.press("Call")
    error = page.window.wait_for('document.querySelector(".field > .error:not([hidden])")?.textContent')
    assert error == "expected a number"
    page.fill("latitude", "60.39")
    page.fill("name", "Oslo", 1)
    page.fill("latitude", "59.9", 1)
    page.fill("height", "12345678901234567890", 1)
    page.fill("options", '{"a": 1}')
    page.picture("nested-form")
    page.press("Call")
    text = page.result()
    assert "[Place(name='Bergen', latitude=60.39, height=None)]" in text
    assert "Place(name='Oslo', latitude=59.9, height=12345678901234567890) False {'a': 1}" in text


@at_one_width
def test_a_form_can_be_edited_as_json(page: Page) -> None:
    page.choose("forecast")
    page.fill("city", "Oslo")
    page.press("Edit as JSON")
    assert page.window.run('return document.querySelector(".raw").value') == '{\n  "city": "Oslo"\n}'
    page.window.run('document.querySelector(".raw").value = arguments[0]', '{"city": "Oslo", "days": 1}')
    page.press("Call")
    text = page.result()
    assert "day 0" in text
    assert "day 1" not in text


def test_progress_is_shown_and_a_call_can_be_cancelled(page: Page) -> None:
    page.choose("measure")
    page.press("Call")
    assert page.window.wait_for(f'{_LAST}?.querySelector("progress")?.value') == 1
    assert "1 of 3 · station 1" in page.window.run(f"return {_LAST}.innerText")
    page.window.wait_for('document.querySelector("#frames .warning")?.textContent.includes("station 2 is frozen")')
    page.picture("progress")
    page.press("Cancel")
    assert "cancelled" in page.result("failed")


def test_a_question_of_the_server_is_answered_on_the_page(page: Page) -> None:
    page.choose("book")
    page.press("Call")
    page.window.wait_for('document.querySelector(".question")')
    page.fill("name", "A")
    page.picture("question")
    page.press("Accept")
    fault = page.window.wait_for('document.querySelector(".question > .error").textContent')
    assert fault == "name: expected at least 2 characters"
    page.fill("name", "Ada")
    page.fill("people", "4")
    page.press("Accept")
    assert page.result() == "accept {'name': 'Ada', 'people': 4}"
    page.press("Call")
    page.window.wait_for('document.querySelector(".question")')
    page.press("Decline")
    page.window.wait_for('!document.querySelector(".question")')
    assert page.result().startswith("decline")


def test_a_sampling_request_is_answered_on_the_page(page: Page) -> None:
    page.choose("summarize")
    page.press("Call")
    page.window.wait_for('document.querySelector("#sampling-answer")')
    assert "Summarize <b>this</b>." in page.window.run('return document.querySelector(".question").innerText')
    page.window.run('document.querySelector("#sampling-answer").value = "It rains."')
    page.picture("sampling")
    page.press("Send")
    assert page.result() == "a person: It rains."


@at_one_width
def test_pictures_sound_resources_and_prompts_are_shown(page: Page) -> None:
    page.choose("map")
    page.fill("city", "Oslo")
    page.press("Call")
    assert "The clouds over Oslo:" in page.result()
    assert page.window.wait_for(f'{_LAST}.querySelector("img")?.naturalWidth') == 1
    assert page.window.run(f'return {_LAST}.querySelector("audio").src').startswith("data:audio/wav;base64,")
    page.choose("weather://{city}/now")
    page.fill("city", "Sankt Gallen")
    page.press("Read")
    assert "Rain in Sankt" in page.result()
    page.choose("packing")
    page.fill("city", "Rome")
    page.press("Get")
    assert "I am going to Rome for 3 days." in page.result()


@at_one_width
@pytest.mark.parametrize("revision", SUPPORTED)
def test_the_revision_can_be_changed_and_the_messages_are_valid_in_it(page: Page, revision: str) -> None:
    page.window.run(_SPEAK, revision)
    page.window.wait_for(
        'document.querySelector("#server-version").textContent.includes(arguments[0]) && '
        'document.querySelector("#frames").innerText.includes("Connection 2")', revision,
    )  # fmt: skip
    page.choose("packing")
    page.fill("city", "Rome")
    page.press("Get")
    assert "Rome" in page.result()
    assert page.window.run('return document.querySelectorAll("#frames .invalid").length') == 0


def test_a_change_of_the_file_connects_again_and_an_error_in_it_is_shown(page: Page, file: Path) -> None:
    page.choose("forecast")
    file.write_text(SERVER.replace("def forecast(", "def outlook("), encoding="utf-8")
    page.choose("outlook")
    assert "server.py changed" in page.window.run('return document.querySelector("#frames").textContent')
    file.write_text("1 / 0", encoding="utf-8")
    page.window.wait_for('document.querySelector("#state.failed") && !document.querySelector("#problem").hidden')
    page.window.wait_for('document.querySelector("#frames").textContent.includes("ZeroDivisionError")')
    page.picture("failed")
    file.write_text(SERVER, encoding="utf-8")
    page.choose("forecast")


@at_one_width
def test_a_page_that_is_opened_again_shows_the_same(page: Page) -> None:
    page.choose("packing")
    page.fill("city", "Rome")
    page.press("Get")
    page.result()
    before: Any = page.window.run('return document.querySelectorAll("#frames li").length')
    page.window.send("refresh")
    assert "Rome" in page.result()
    assert page.window.wait_for('document.querySelectorAll("#frames li").length') == before


def test_text_of_a_hostile_server_is_shown_and_never_run(window: tuple[Browser, int], tmp_path: Path) -> None:
    (tmp_path / "hostile.txt").write_text(HOSTILE, encoding="utf-8")
    with dev_page("--", "python3", "hostile.txt", cwd=tmp_path) as served:
        page = Page(*window)
        page.window.send("url", url=served.url)
        page.window.wait_for('document.querySelector("#lists button")')
        page.window.run('document.querySelector("#lists button").click()')
        page.show("work")
        page.press("Call")
        text = page.result()
        assert "<img src=x onerror=document.title='broken'>\\u202egnp.exe\\u0007\\u001b[2J" in text
        assert "12345678901234567890" in text
        assert "image/svg+xml" in text
        page.picture("hostile")
        shown = page.window.run("return document.body.textContent")
        assert not {"\u202e", "\x07", "\x1b"} & {*shown}
        assert page.window.run("return [document.images.length, document.querySelectorAll('a').length]") == [0, 0]
        assert "broken'" in page.window.run("return document.title")
        page.window.wait_for('document.querySelector("#faults").textContent === "1 invalid"')
        page.show("traffic")
        page.window.run('document.querySelector("#frames .invalid summary").click()')
        detail = page.window.wait_for('document.querySelector("#frames .invalid .detail")?.innerText')
        assert "params.level" in detail
        page.picture("invalid")
        assert page.window.log() == []
        page.window.send("url", url="about:blank")


@at_one_width
def test_another_page_cannot_use_the_address(window: tuple[Browser, int], file: Path, tmp_path: Path) -> None:
    with dev_page(str(file), cwd=file.parent) as served, dev_page(str(file), cwd=file.parent) as other:
        page = Page(*window)
        page.window.send("url", url=other.url)
        script = """
            const done = arguments[1], body = '{"action":"clear"}';
            const answer = (url, options) => fetch(url, options).then(got => got.status, () => "refused");
            Promise.all([answer(arguments[0] + "events"),
                         answer(arguments[0] + "actions", {method: "POST", mode: "no-cors", body})]).then(done);
        """
        assert page.window.send("execute/async", script=script, args=[served.url]) == ["refused", "refused"]
        assert served.request("GET", "events", Origin=other.url.rpartition("/")[0]).status == 403
        assert page.window.log() != []  # the browser says what its policy refused
        page.window.send("url", url="about:blank")
