"""Made-up results with everything that a report must handle."""

from __future__ import annotations

from typing import Literal

from bench.results import FORMAT, Environment, Figures, Results, Row, Table

HOSTILE = "<script>alert('&')</script>"
REFERENCE = "official Python, low level"


def table(
    name: str,
    columns: list[str],
    rows: dict[str, list[list[float] | None]],
    unit: str = "s",
    better: Literal["lower", "higher"] = "lower",
    reference: str = REFERENCE,
) -> Table:
    """Make a table from rounds by contender, in the order of the columns."""
    made = [
        Row(
            contender,
            {column: Figures(rounds) for column, rounds in zip(columns, each, strict=True) if rounds is not None},
            note=f"a note about {contender}",
        )
        for contender, each in rows.items()
    ]
    return Table(name, f"Title of {name}", f"What {name} measures.", unit, better, reference, columns, made)


def environment(machine: str = "vm-2", load: float = 0.1) -> Environment:
    versions = {"msgspec": "0.20.0", "mcp": "2.3.0"}
    return Environment(
        machine, "A Processor", 2, 7.8, "Linux 6.1", "3.11.7", "55c1d9e", load, "2026-01-02 03:04", versions
    )


def results(tables: list[Table] | None = None, *, quick: bool = False, load: float = 0.1) -> Results:
    found = [codecs(), stdio(), http(), memory()] if tables is None else tables
    return Results(FORMAT, "make bench", quick, environment(load=load), found)


def codecs() -> Table:
    """A table in which lower is better, one contender lacks two columns, and contenders check different things."""
    made = table(
        "codecs/tools-call",
        ["decode", "encode", "round trip"],
        {
            "structs": [[1.0e-6, 1.1e-6, 1.2e-6], [0.6e-6, 0.6e-6, 0.7e-6], [1.8e-6, 1.8e-6, 1.9e-6]],
            REFERENCE: [[8.0e-6, 8.8e-6, 9.6e-6], [6.6e-6, 6.6e-6, 6.7e-6], [15e-6, 15e-6, 16e-6]],
            "fastmcp": [[9.0e-6, 9.1e-6, 9.2e-6], None, None],
        },
    )
    made.rows[0].checks = "all of the schema"
    made.rows[1].checks = made.rows[2].checks = "nothing"
    return made


def stdio() -> Table:
    """A table in which higher is better."""
    rows: dict[str, list[list[float] | None]] = {
        "typedmcp": [[12300, 12100, 12500, 12200, 12350]],
        REFERENCE: [[1650, 1600, 1700, 1640, 1660]],
        "TypeScript": [[5400, 5300, 5500, 5420, 5380]],
    }
    return table("stdio/echo", ["one at a time"], rows, unit="calls/s", better="higher")


def http() -> Table:
    """A table with long and hostile names everywhere."""
    rows: dict[str, list[list[float] | None]] = {
        "typedmcp": [[7100, 7000, 7200], [6500, 6400, 6600]],
        HOSTILE: [[560, 550, 570], [710, 700, 720]],
        "a contender whose name is much longer than the name of a contender should be": [[2200, 2100, 2300], None],
    }
    made = table(f"http/{HOSTILE}", [f"32 {HOSTILE}", "sessions"], rows, "calls/s", "higher", reference=HOSTILE)
    made.title, made.about, made.unit = f"Title {HOSTILE}", f"About {HOSTILE}", f"{HOSTILE}/s"
    return made


def memory() -> Table:
    """A table whose columns are sizes."""
    sizes = ["100", "1000", "10000", "100000"]
    rows: dict[str, list[list[float] | None]] = {
        "typedmcp": [[27, 27.2], [28, 28.1], [36, 36.3], [120, 119]],
        REFERENCE: [[84, 84.5], [140, 141], [690, 700], [6800, 6900]],
        "TypeScript": [[1, 1], [100, 101], [10000, 10100], None],
    }
    return table("memory/growth", sizes, rows, unit="MB")
