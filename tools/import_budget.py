"""What importing costs in fresh processes, beside the library alone and the official package; and starting a server.

Prints the table; exit status 1 where a budget is exceeded. Each figure is the least of interleaved
rounds: what else runs on the machine only adds to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.suites.imports import first_answer, imported

ROUNDS = 15
RETRIES = 3
"""How often a figure over budget is measured again before it counts: machines are shared."""
STRUCTS_BUDGET_MS = 30.0
MODELS_BUDGET_RATIO = 0.75
RUNTIME_BUDGET_MS = 60.0
FIRST_ANSWER_BUDGET_MS = 200.0

SERVER = Path(__file__).resolve().parents[1] / "examples" / "server.py"
FIRST_ANSWER = "a server's first answer"
NEWEST = "mcpspec.v2026_07_28"
MODULES = {
    "msgspec": "",
    "asyncio": "",
    "pydantic": "",
    "mcpspec": "",
    f"{NEWEST}.structs": "msgspec",
    f"{NEWEST}.methods": "msgspec",
    f"{NEWEST}.models": "pydantic",
    "mcp_types": "pydantic",
    "typedmcp": "msgspec",
    "typedmcp.serving": "msgspec",
}
"""What is imported, and the library that it is compared with."""


def measure(rounds: int) -> dict[str, float]:
    """Module → milliseconds of its import; and of a server's first answer."""
    samples: dict[str, list[float]] = {module: [] for module in [*MODULES, FIRST_ANSWER]}
    for module in MODULES:
        _import_ms(module)  # leaves the bytecode behind
    for _ in range(rounds):
        for module in MODULES:
            samples[module].append(_import_ms(module))
        samples[FIRST_ANSWER].append(first_answer([sys.executable, str(SERVER)]))
    return {module: min(found) for module, found in samples.items()}


def _import_ms(module: str) -> float:
    # `typedmcp` alone loads nothing: it is measured with the library that it is compared with.
    return imported(f"msgspec, {module}" if module == "typedmcp" else module)["ms"]


def main() -> int:
    cost = measure(ROUNDS)
    for _ in range(RETRIES):
        if not over_budget(cost):
            break
        cost = {module: min(ms, cost[module]) for module, ms in measure(ROUNDS).items()}
    print_table(cost)
    return int(over_budget(cost))


def added(cost: dict[str, float], module: str, base: str) -> float:
    return cost[module] - cost[base]


def models_ratio(cost: dict[str, float]) -> float:
    """What our models add to Pydantic, of what the official package adds."""
    return added(cost, f"{NEWEST}.models", "pydantic") / added(cost, "mcp_types", "pydantic")


def over_budget(cost: dict[str, float]) -> bool:
    return (
        added(cost, f"{NEWEST}.structs", "msgspec") > STRUCTS_BUDGET_MS
        or added(cost, "typedmcp", "msgspec") > RUNTIME_BUDGET_MS
        or models_ratio(cost) > MODELS_BUDGET_RATIO
        or cost[FIRST_ANSWER] > FIRST_ANSWER_BUDGET_MS
    )


def print_table(cost: dict[str, float]) -> None:
    print(f"{'import':<32}{'ms':>8}   beside the library alone")
    for module, base in MODULES.items():
        print(f"{module:<32}{cost[module]:8.1f}   " + (f"{cost[module] / cost[base]:8.2f} x" if base else ""))
    structs = added(cost, f"{NEWEST}.structs", "msgspec")
    print(f"structs add {structs:.1f} ms to msgspec; budget {STRUCTS_BUDGET_MS:.0f} ms")
    print(f"models add {models_ratio(cost):.2f} of what mcp_types adds to pydantic; budget {MODELS_BUDGET_RATIO}")
    runtime = added(cost, "typedmcp", "msgspec")
    print(f"typedmcp, with msgspec, adds {runtime:.1f} ms to msgspec; budget {RUNTIME_BUDGET_MS:.0f} ms")
    serving = added(cost, "typedmcp.serving", "msgspec") - cost["asyncio"]
    print(f"all that serving needs adds {serving:.1f} ms to msgspec and asyncio")
    print(f"{FIRST_ANSWER} comes {cost[FIRST_ANSWER]:.0f} ms after its start; budget {FIRST_ANSWER_BUDGET_MS:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
