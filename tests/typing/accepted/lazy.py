"""Checkers see through the modules that are imported on first use."""

from __future__ import annotations

from types import ModuleType
from typing import Literal, assert_type

import mcpspec
import mcpspec.ext.tasks


def a_revision_of_the_package(raw: bytes) -> None:
    tool = mcpspec.v2026_07_28.structs.decode(raw, mcpspec.v2026_07_28.structs.Tool)
    assert_type(tool, mcpspec.v2026_07_28.structs.Tool)
    model = mcpspec.v2024_11_05.models.decode(raw, mcpspec.v2024_11_05.models.Tool)
    assert_type(model, mcpspec.v2024_11_05.models.Tool)


def modules_of_a_revision() -> None:
    assert_type(mcpspec.v2025_11_25.methods.TOOLS_CALL.name, str)
    assert_type(mcpspec.v2025_11_25.models_methods.TOOLS_CALL.name, str)
    assert_type(mcpspec.v2025_03_26.handlers.UnimplementedMethodError("x").code, Literal[-32601])
    assert_type(mcpspec.v2025_06_18.models_handlers.UnimplementedMethodError("x").method, str)


def an_extension() -> None:
    assert_type(
        mcpspec.ext.tasks.structs.GetTaskRequestParams(task_id="1"),
        mcpspec.ext.tasks.structs.GetTaskRequestParams,
    )


def a_revision_by_its_version(version: str) -> None:
    assert_type(mcpspec.revision(version), ModuleType)


def versions() -> None:
    assert_type(mcpspec.VERSIONS[0], Literal["2024-11-05"])
    latest: str = mcpspec.LATEST
    mcpspec.revision(latest)
