"""What importing the types costs, in fresh processes, beside the library alone and the official package.

Prints the table; exit status 1 where a budget is exceeded. Each figure is the least of interleaved
rounds: what else runs on the machine only adds to it.
"""

from __future__ import annotations

import os
import subprocess
import sys

ROUNDS = 15
STRUCTS_BUDGET_MS = 30.0
MODELS_BUDGET_RATIO = 0.75

_TIMED = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""

MODULES = (
    "msgspec",
    "pydantic",
    "mcpspec",
    "mcpspec.v2026_07_28.structs",
    "mcpspec.v2026_07_28.methods",
    "mcpspec.v2026_07_28.models",
    "mcp_types",
)


def measure(rounds: int) -> dict[str, float]:
    """Module → milliseconds of its import."""
    samples: dict[str, list[float]] = {module: [] for module in MODULES}
    for module in MODULES:
        _import_ms(module)  # leaves the bytecode behind
    for _ in range(rounds):
        for module in MODULES:
            samples[module].append(_import_ms(module))
    return {module: min(found) for module, found in samples.items()}


def _import_ms(module: str) -> float:
    code = _TIMED.format(module=module)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)  # noqa: S603
    return float(done.stdout) * 1000


def main() -> int:
    cost = measure(ROUNDS)
    added = {
        "structs": cost["mcpspec.v2026_07_28.structs"] - cost["msgspec"],
        "models": cost["mcpspec.v2026_07_28.models"] - cost["pydantic"],
        "mcp_types": cost["mcp_types"] - cost["pydantic"],
    }
    ratio = added["models"] / added["mcp_types"]
    print(f"{'import':<32}{'ms':>8}   beside the library alone")
    for module, ms in cost.items():
        base = cost["msgspec"] if module.endswith(("structs", "methods")) else cost["pydantic"]
        shown = "" if module in ("msgspec", "pydantic", "mcpspec") else f"{ms / base:8.2f} x"
        print(f"{module:<32}{ms:8.1f}   {shown}")
    print(f"structs add {added['structs']:.1f} ms to msgspec; budget {STRUCTS_BUDGET_MS:.0f} ms")
    print(f"models add {ratio:.2f} of what mcp_types adds to pydantic; budget {MODELS_BUDGET_RATIO}")
    return int(added["structs"] > STRUCTS_BUDGET_MS or ratio > MODELS_BUDGET_RATIO)


if __name__ == "__main__":
    sys.exit(main())
