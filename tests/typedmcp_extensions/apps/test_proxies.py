"""The proxy and the script of a host that is a web page."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.typedmcp_extensions.apps.test_pages_of_hosts import DEFAULT, load, text
from typedmcp_extensions.apps import host_script, proxy_page

HOST = "https://host.example.com"


def test_the_proxy_has_the_policy_of_the_page_and_is_shown_by_the_host_alone() -> None:
    proxy = proxy_page(load(text("<p>")), HOST)
    assert proxy.headers["Content-Security-Policy"] == f"{DEFAULT}; frame-ancestors {HOST}"
    assert f'const HOST = "{HOST}";' in proxy.html


@each("origin", ["*", "https://*.example.com", 'https://a"', "https://a.example/b", "null"])
def test_the_host_of_a_proxy_is_an_origin(origin: str) -> None:
    page = load(text("<p>"))
    with pytest.raises(typedmcp.UsageError, match="host_origin: expected an origin, such as"):
        proxy_page(page, origin)


def test_the_proxy_gets_the_document_and_what_the_host_approved() -> None:
    ui: dict[str, Any] = {
        "csp": {"connectDomains": ["https://api.example.com", "*"]},
        "permissions": {"camera": {}, "microphone": {}},
    }
    page = load(text("<p>", ui=ui), permissions=["camera"])
    message = page.sandbox_message
    assert message["method"] == "ui/notifications/sandbox-resource-ready"
    assert message["params"] == {
        "html": page.document,
        "sandbox": "allow-scripts",
        "csp": {"connectDomains": ["https://api.example.com"]},
        "permissions": {"camera": {}},
    }
    assert load(text("<p>")).sandbox_message["params"].keys() == {"html", "sandbox"}


def test_the_script_of_the_host_is_a_module() -> None:
    assert "export function showPage(" in host_script()


def test_a_program_without_pages_loads_none_of_it_and_a_server_with_pages_no_client() -> None:
    code = """
import sys, typedmcp
typedmcp.Server, typedmcp.connect, typedmcp.serve
assert not [name for name in sys.modules if name.startswith("typedmcp_extensions.apps")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    code = """
import sys
from typedmcp_extensions.apps import AppPage, AppsServer
assert not [name for name in sys.modules if name.startswith("typedmcp.client")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
