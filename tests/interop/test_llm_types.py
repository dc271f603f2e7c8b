"""Declarations of tools and results of calls fit the types of the APIs' own SDKs."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

import typedmcp
from tests.interop.install import python
from tests.paths import ROOT
from tests.server.scripted import run
from tests.typedmcp_hosts.test_llm import APIS, HINTS, PARTS, make_server, server_of
from typedmcp_hosts import call_for, tools_for

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not python("llm").exists(), reason="the SDKs are not installed: tests/interop/install.py llm"),
]


def errors_of(values: list[tuple[str, Any]]) -> list[str]:
    script = ROOT / "tests" / "interop" / "llm_types.py"
    done = subprocess.run(
        [python("llm"), script], input=json.dumps(values), capture_output=True, text=True, check=True, timeout=120
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_declarations_and_results_fit_the_types_of_the_sdks() -> None:
    values: list[tuple[str, Any]] = []

    async def main() -> None:
        for hint in HINTS:
            async with typedmcp.connect(server_of(hint)) as client:
                values.extend([(f"{api} tool", tool) for api in APIS for tool in await tools_for(client, api)])
        async with typedmcp.connect(make_server()) as client:
            for api in APIS:
                values.extend([(f"{api} tool", tool) for tool in await tools_for(client, api)])
                for name, arguments in (("math_add", {"a": 1, "b": 2}), ("draw", {}), ("fail", {}), ("absent", {})):
                    values.append((f"{api} result", await call_for(client, api, PARTS[api](name, arguments))))

    run(main)
    assert len(values) > len(HINTS) * len(APIS)
    assert errors_of(values) == []


def test_other_dicts_do_not_fit() -> None:
    assert (
        len(errors_of([(f"{api} {what}", {"name": 1, "role": 2}) for api in APIS for what in ("tool", "result")])) == 8
    )
