"""Loading of generated code as a module."""

from __future__ import annotations

import importlib.util
import sys
import uuid
from pathlib import Path
from types import ModuleType

__all__ = ["load"]


def load(code: str, folder: Path) -> ModuleType:
    """Write code to a file, and import it under a name of its own."""
    name = f"generated_{uuid.uuid4().hex}"
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
