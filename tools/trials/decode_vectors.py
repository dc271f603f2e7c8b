"""Decode and encode the vectors of every revision with the installed types.

Usage: `python decode_vectors.py structs|models VECTORS`.
"""

import importlib.util
import json
import sys
from pathlib import Path

import mcpspec

backend, vectors = sys.argv[1], Path(sys.argv[2])
has_pydantic = importlib.util.find_spec("pydantic") is not None
assert has_pydantic == (backend == "models")
done = 0
for version in mcpspec.VERSIONS:
    revision = mcpspec.revision(version)
    types = getattr(revision, backend)
    prefix = "models_" if has_pydantic else ""
    getattr(revision, f"{prefix}methods"), getattr(revision, f"{prefix}handlers")  # pyright: ignore[reportUnusedExpression]
    for path in sorted((vectors / version).glob("*.json")):
        kind = getattr(types, path.stem)
        for case, value in json.loads(path.read_text(encoding="utf-8"))["valid"].items():
            decoded = types.decode(json.dumps(value), kind)
            assert types.decode(types.encode(decoded), kind) == decoded, (path, case)
            done += 1
assert done > 1000, done
if not has_pydantic:
    hint = ""
    try:
        getattr(mcpspec.revision(mcpspec.LATEST), "models")  # noqa: B009
    except ModuleNotFoundError as error:
        hint = str(error)
    assert "pip install 'mcpspec[pydantic]'" in hint, hint
