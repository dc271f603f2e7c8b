"""What `import typedmcp` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import typedmcp


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
