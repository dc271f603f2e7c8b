"""The page of `typedmcp dev` answers the browser that has its address, and nothing else."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cases import each
from tests.typedmcp_cli.dev.serving import DevPage, dev_page

OWN_FILES = ["", "style.css", "page.js", "forms.js", "text.js"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "stderr"


@pytest.fixture(scope="module")
def page(folder: Path, log: Path) -> Generator[DevPage]:
    with dev_page("server.py", cwd=folder, log=log) as found:
        yield found


@each("name", OWN_FILES)
def test_the_address_gives_the_files_of_the_page_with_strict_headers(page: DevPage, name: str) -> None:
    response = page.request(path=name)
    assert response.status == 200
    assert response.body
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in response.headers


@each("path", ["/", "/events", "/index.html", "/" + "x" * 43 + "/", "/" + "x" * 43 + "/events", "/%C3%A9/"])
def test_without_the_token_nothing_is_served(page: DevPage, path: str) -> None:
    response = page.request(path=path)
    assert response.status == 403
    assert b"open the address that typedmcp dev printed" in response.body


@each(
    "headers, status",
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
    ],
)
@each("path", ["", "events"])
def test_other_hosts_and_origins_are_refused(page: DevPage, headers: dict[str, str], status: int, path: str) -> None:
    assert page.request(path=path, **headers).status == status


def test_both_names_of_this_machine_are_accepted(page: DevPage) -> None:
    assert page.request(Host=f"localhost:{page.port}").status == 200
    assert page.request(Origin=f"http://127.0.0.1:{page.port}", Sec_Fetch_Site="same-origin").status == 200


@each("path", ["../access.py", "%2e%2e/access.py", "__init__.py", "static/page.js"])
def test_other_files_are_not_found(page: DevPage, path: str) -> None:
    assert page.request(path=path).status == 404


@each(
    "body, kind, status",
    [
        ('{"action":"clear"}', "application/json", 204),
        ('{"action":"clear"}', "text/plain", 415),
        ('{"action":"quit"}', "application/json", 400),
        ('{"action":"connect","revision":"1999-01-01"}', "application/json", 200),
        ('{"action":"answer","id":"9","answer":{}}', "application/json", 200),
        ("[" * 5000, "application/json", 400),
        ("x" * (9 << 20), "application/json", 413),
    ],
    ids=lambda value: str(value)[:40],
)
def test_actions_are_json_of_a_known_form(page: DevPage, body: str, kind: str, status: int) -> None:
    assert page.request("POST", "actions", body, Content_Type=kind).status == status


def test_other_methods_are_not_allowed(page: DevPage) -> None:
    assert page.request("DELETE", "events").status == 405
    assert page.request("POST", "events", "{}").status == 405


def test_the_token_is_in_no_log(page: DevPage, log: Path) -> None:
    token = urlsplit(page.url).path.strip("/")
    assert len(token) >= 43
    assert page.request(path="nowhere").status == 404
    assert token not in log.read_text(encoding="utf-8")


def test_two_pages_have_different_tokens(page: DevPage, folder: Path) -> None:
    with dev_page("server.py", cwd=folder) as other:
        assert urlsplit(other.url).path != urlsplit(page.url).path
        assert other.request(path=urlsplit(page.url).path).status == 403


def test_a_port_that_is_in_use_is_an_error_in_one_line(page: DevPage, folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with dev_page("server.py", "--port", str(page.port), cwd=folder, log=log) as other:
        assert other.url == ""
        assert other.process.wait(20) == 2
    assert "cannot listen at 127.0.0.1" in log.read_text(encoding="utf-8")
