"""What `import typedmcp` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mcpspec
import typedmcp
from typedmcp.edge.revisions import LEGACY, is_modern, methods


@pytest.mark.parametrize("name", typedmcp.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(typedmcp, name) is getattr(typedmcp, name)
    assert name in dir(typedmcp)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'typedmcp' has no attribute 'Servr'"):
        getattr(typedmcp, "Servr")  # noqa: B009  # written so that type checkers do not see it


def test_importing_the_package_loads_neither_types_nor_an_event_loop() -> None:
    code = "import sys, typedmcp; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "msgspec", "pydantic", "mcpspec.v2026_07_28.structs"} & set(loaded)


def test_serving_structs_does_not_load_pydantic() -> None:
    code = "import sys, typedmcp; typedmcp.serve; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "pydantic" not in loaded


def test_the_older_revisions_are_those_with_a_handshake() -> None:
    with_handshake = [version for version in mcpspec.VERSIONS if "initialize" in methods(version).METHODS]
    assert sorted(LEGACY) == with_handshake
    assert [version for version in mcpspec.VERSIONS if not is_modern(version)] == with_handshake


def test_a_server_loads_the_types_of_a_revision_when_somebody_speaks_it() -> None:
    handler = "type('Handler', (), {'call_tool': lambda self, params, ctx: None})()"
    code = f"import sys, typedmcp; typedmcp.Service({handler}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.endswith(".structs") and "mcpspec.v" in name] == [
        "mcpspec.v2026_07_28.structs"
    ]
