"""Checks the budgets for imports and for the start of a server, in fresh processes.

Prints a table, and exits with 1 if a budget is exceeded. Each figure is the minimum of interleaved rounds, because
other load on the machine only adds to it.
"""

from __future__ import annotations

import sys

from bench.suites.imports import ASYNCIO_ALONE, DECORATED, measure_import, time_first_response

ROUNDS = 15
RETRIES = 3
"""Repetitions of all measurements if a figure is over budget, since machines are shared."""
STRUCTS_BUDGET_MS = 15.0
MODELS_BUDGET_RATIO = 0.5
USED_MODELS_BUDGET_RATIO = 0.7
RUNTIME_BUDGET_MS = 60.0
FIRST_RESPONSE_BUDGET_MS = 115.0
"""Milliseconds that a server adds to Python with asyncio, until its first response."""

FIRST_RESPONSES = {
    "the first response of asyncio alone": ASYNCIO_ALONE.command,
    "the first response of a server": DECORATED.command,
}
ALONE, SERVER = FIRST_RESPONSES
NEWEST = "mcpspec.v2026_07_28"
REQUEST = (
    rb'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "_meta": {'
    rb'"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}'
)
RESULT = (
    rb'{"resultType": "complete", "ttlMs": 0, "cacheScope": "public", '
    rb'"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}'
)
USED_MODELS = f"{NEWEST}.models, first use"
USED_OFFICIAL = "mcp_types, first use"
FIRST_USES = {
    USED_MODELS: f"{NEWEST}.models as models\n"
    f"models.decode({REQUEST!r}, models.CallToolRequest)\n"
    f"models.decode({RESULT!r}, models.ListToolsResult)",
    USED_OFFICIAL: "mcp_types\n"
    f"mcp_types.CallToolRequest.model_validate_json({REQUEST!r})\n"
    f"mcp_types.ListToolsResult.model_validate_json({RESULT!r})",
}
"""An import, and the first request and result that are decoded: code after the word `import`."""
MODULES = {
    "msgspec": "",
    "asyncio": "",
    "pydantic": "",
    "mcpspec": "",
    f"{NEWEST}.structs": "msgspec",
    f"{NEWEST}.methods": "msgspec",
    f"{NEWEST}.models": "pydantic",
    "mcp_types": "pydantic",
    USED_MODELS: "pydantic",
    USED_OFFICIAL: "pydantic",
    "typedmcp": "msgspec",
    "typedmcp.server.run": "msgspec",
}
"""The imported modules, and the library that each is compared with."""


def measure(rounds: int) -> dict[str, float]:
    """Return the milliseconds of each import, and of the first responses of servers."""
    samples: dict[str, list[float]] = {module: [] for module in [*MODULES, *FIRST_RESPONSES]}
    for module in MODULES:
        _import_ms(module)  # caches the bytecode
    for _ in range(rounds):
        for module in MODULES:
            samples[module].append(_import_ms(module))
        for name, command in FIRST_RESPONSES.items():
            samples[name].append(time_first_response(command))
    return {module: min(found) for module, found in samples.items()}


def _import_ms(module: str) -> float:
    # `typedmcp` alone loads nothing, so it is measured together with msgspec.
    code = f"msgspec, {module}" if module == "typedmcp" else FIRST_USES.get(module, module)
    return measure_import(code)["ms"]


def main() -> int:
    cost = measure(ROUNDS)
    for _ in range(RETRIES):
        if not is_over_budget(cost):
            break
        cost = {module: min(ms, cost[module]) for module, ms in measure(ROUNDS).items()}
    print_table(cost)
    return int(is_over_budget(cost))


def compute_added_ms(cost: dict[str, float], module: str, base: str) -> float:
    """Return what a module costs in addition to another one."""
    return cost[module] - cost[base]


def compute_models_ratio(cost: dict[str, float], models: str, official: str) -> float:
    """Return what the models add to Pydantic, relative to what the official package adds."""
    return compute_added_ms(cost, models, "pydantic") / compute_added_ms(cost, official, "pydantic")


def compute_ratios(cost: dict[str, float]) -> tuple[float, float]:
    """Return the ratio of an import, and of an import with a first use."""
    return (
        compute_models_ratio(cost, f"{NEWEST}.models", "mcp_types"),
        compute_models_ratio(cost, USED_MODELS, USED_OFFICIAL),
    )


def is_over_budget(cost: dict[str, float]) -> bool:
    imported, used = compute_ratios(cost)
    return (
        compute_added_ms(cost, f"{NEWEST}.structs", "msgspec") > STRUCTS_BUDGET_MS
        or compute_added_ms(cost, "typedmcp", "msgspec") > RUNTIME_BUDGET_MS
        or imported > MODELS_BUDGET_RATIO
        or used > USED_MODELS_BUDGET_RATIO
        or compute_added_ms(cost, SERVER, ALONE) > FIRST_RESPONSE_BUDGET_MS
    )


def print_table(cost: dict[str, float]) -> None:
    print(f"{'import':<40}{'ms':>8}   relative to the library alone")
    for module, base in MODULES.items():
        print(f"{module:<40}{cost[module]:8.1f}   " + (f"{cost[module] / cost[base]:8.2f} x" if base else ""))
    structs = compute_added_ms(cost, f"{NEWEST}.structs", "msgspec")
    print(f"structs add {structs:.1f} ms to msgspec; budget {STRUCTS_BUDGET_MS:.0f} ms")
    imported, used = compute_ratios(cost)
    print(f"models add {imported:.2f} times what mcp_types adds to pydantic; budget {MODELS_BUDGET_RATIO}")
    print(f"models and their first use add {used:.2f} times what mcp_types does; budget {USED_MODELS_BUDGET_RATIO}")
    runtime = compute_added_ms(cost, "typedmcp", "msgspec")
    print(f"typedmcp adds {runtime:.1f} ms to msgspec; budget {RUNTIME_BUDGET_MS:.0f} ms")
    serving = compute_added_ms(cost, "typedmcp.server.run", "msgspec") - cost["asyncio"]
    print(f"serving adds {serving:.1f} ms to msgspec and asyncio")
    print(f"{SERVER} takes {cost[SERVER]:.0f} ms, {ALONE} {cost[ALONE]:.0f} ms")
    print(f"a server adds {compute_added_ms(cost, SERVER, ALONE):.0f} ms; budget {FIRST_RESPONSE_BUDGET_MS:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
