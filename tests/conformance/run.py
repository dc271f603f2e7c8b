"""Run the official conformance suite against our server and our client, and compare with `expected.toml`.

    python -m tests.conformance.run [LEG …] [--update]

For the suite, a scenario without a failure has passed, even if nothing was checked and the client crashed. Here a
scenario passes if as many checks succeed as the table says, at least one, none fails, and the client ends with exit
status 0. A failure must be a known gap of the table. A known gap that passes, and a missing or new scenario, are
failures, too. `--update` writes the table and prints the changes.

With `--url` the suite tests a server that is running already, with `--client` the client of a command, and with
`--table` the results are compared with another table: so this runner can be tried on others' servers and clients.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from tests.interop import install
from tests.listening import listening

HERE = Path(__file__).parent
TABLE = HERE / "expected.toml"
SUITE = install.INTEROP / "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"

LEGS = {
    "server-2025-11-25": ["server", "--requirements", "2025-11-25"],
    "server-2026-07-28": ["server", "--requirements", "2026-07-28"],
    "server-all-2025-06-18": ["server", "--suite", "all", "--spec-version", "2025-06-18"],
    "server-all-2025-03-26": ["server", "--suite", "all", "--spec-version", "2025-03-26"],
    "client-2025-11-25": ["client", "--requirements", "2025-11-25"],
    "client-2026-07-28": ["client", "--requirements", "2026-07-28"],
    "client-all-2025-06-18": ["client", "--suite", "all", "--spec-version", "2025-06-18"],
    "client-all-2025-03-26": ["client", "--suite", "all", "--spec-version", "2025-03-26"],
}
"""Options of the suite, by the name of the leg."""

SECONDS_OF_A_SCENARIO = 60
SECONDS_OF_A_LEG = 600

SERVER = [sys.executable, str(HERE / "server.py"), "http"]
CLIENT = shlex.join([sys.executable, str(HERE / "client.py")])

Expected: TypeAlias = int | str
"""The number of successful checks, or the name of the gap for which some fail."""


# What came out


@dataclass
class Outcome:
    """The outcome of a scenario."""

    passed: int = 0
    skipped: int = 0
    faults: list[str] = field(default_factory=list[str])
    """The failures, in the words of the suite."""

    @property
    def is_success(self) -> bool:
        return self.passed > 0 and not self.faults

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {len(self.faults)} failed{skipped}"


def outcome_of(folder: Path, role: str) -> Outcome:
    """Read the outcome of a scenario from its folder."""
    found = Outcome()
    checks: list[dict[str, Any]] = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    for check in checks:
        status = check["status"]
        found.passed += status == "SUCCESS"
        found.skipped += status == "SKIPPED"
        if status in ("FAILURE", "WARNING"):
            found.faults.append(f"{check['name']}: {check.get('errorMessage') or check['description']}")
    if role == "client":
        found.faults += _bad_end((folder / "stderr.txt").read_text(encoding="utf-8"))
    return found


def _bad_end(stderr: str) -> Iterator[str]:
    """Describe a failed exit of the client, with its last line of output."""
    said = ["it printed nothing", *stderr.splitlines()]
    found = re.fullmatch(r"exit status (\d+)", said[-1])
    if found is None:
        yield f"the client did not end by itself: {said[-1]}"
    elif found[1] != "0":
        yield f"the client ended with status {found[1]}: {said[-2]}"


def outcomes_in(folder: Path, role: str) -> dict[str, Outcome]:
    """Read the outcomes of all scenarios below a folder."""
    found: dict[str, Outcome] = {}
    for checks in sorted(folder.rglob("checks.json")):
        name = checks.parent.relative_to(folder).as_posix()
        name = re.sub(r"-\d{4}-\d\d-\d\dT[-\dZ]+$", "", name)
        found[name.removeprefix("server-") if role == "server" else name] = outcome_of(checks.parent, role)
    return found


# What is expected


@dataclass(frozen=True)
class Gap:
    """A known gap, for which scenarios of some names may fail."""

    scenarios: str
    why: str

    def __str__(self) -> str:
        return f"{{ scenarios = {_quoted(self.scenarios)}, why = {_quoted(self.why)} }}"


@dataclass
class Table:
    gaps: dict[str, Gap]
    legs: dict[str, dict[str, Expected]]

    @classmethod
    def read(cls, path: Path) -> Table:
        read = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        gaps = {name: Gap(**gap) for name, gap in read.pop("gaps", {}).items()}
        return cls(gaps, read)

    def __str__(self) -> str:
        parts = [HEADER, "[gaps]"]
        parts += [
            f"{n} = {{ scenarios = {_quoted(g.scenarios)}, why = {_quoted(g.why)} }}" for n, g in self.gaps.items()
        ]
        for leg, scenarios in self.legs.items():
            parts += ["", f"[{leg}]"]
            parts += [f"{_key(name)} = {json.dumps(expected)}" for name, expected in sorted(scenarios.items())]
        return "\n".join(parts) + "\n"

    def counts(self) -> Iterator[tuple[str, str, int, int, int]]:
        """Yield role, revision, number of scenarios, of those that pass, and of their checks."""
        for leg, scenarios in self.legs.items():
            role, *_, year, month, day = leg.split("-")
            passed = [checks for checks in scenarios.values() if isinstance(checks, int)]
            yield role, f"{year}-{month}-{day}", len(scenarios), len(passed), sum(passed)

    def gap_for(self, scenario: str) -> str | None:
        return next((name for name, gap in self.gaps.items() if fnmatchcase(scenario, gap.scenarios)), None)

    def idle(self) -> Iterator[str]:
        """List faults of the table itself: gaps without scenarios, and unknown names of gaps."""
        used = {found for scenarios in self.legs.values() for found in scenarios.values() if isinstance(found, str)}
        yield from (f"no scenario has the gap {name}" for name in self.gaps.keys() - used)
        yield from (f"there is no gap {name}" for name in used - self.gaps.keys())


HEADER = """\
# Outcomes of the scenarios of the official conformance suite: the number of successful checks if none fails, or the gap
# for which some fail. `python -m tests.conformance.run --update` writes the numbers; gaps are added by hand.
"""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else _quoted(name)


# Comparing


def judged(expected: Expected | None, outcome: Outcome | None) -> str | None:
    """Describe the difference between an outcome and the table, or return None."""
    if outcome is None:
        return "the suite did not run it"
    if expected is None:
        return "the table does not know it"
    if isinstance(expected, str):
        return f"passes, although it is a known gap: {expected}" if outcome.is_success else None
    if outcome.faults:
        return "fails"
    if outcome.passed == 0:
        return "nothing was checked"
    return None if outcome.passed == expected else f"{expected} checks were expected to pass"


def report(leg: str, expected: dict[str, Expected], found: dict[str, Outcome]) -> int:
    """Print each scenario of a leg with its failures, and return the number of differences."""
    print(f"\n{leg}: {sum(one.passed for one in found.values())} checks passed")
    bad = 0
    for name in sorted(expected.keys() | found.keys()):
        wanted, outcome = expected.get(name), found.get(name)
        wrong = judged(wanted, outcome)
        bad += wrong is not None
        mark = "FAIL" if wrong else "gap " if isinstance(wanted, str) else "ok  "
        print(f"  {mark} {name}: {outcome or 'no results'}{f' - {wrong}' if wrong else ''}")
        if wrong and outcome:
            print("".join(f"         {fault}\n" for fault in outcome.faults), end="")
    return bad


def updated(table: Table, found: dict[str, dict[str, Outcome]]) -> Table:
    """Make a table of the outcomes. Raises `SystemExit` for a failure that is not a known gap."""
    legs = dict(table.legs)
    for leg, outcomes in found.items():
        legs[leg] = {name: _now(table, leg, name, outcome) for name, outcome in outcomes.items()}
    return Table(table.gaps, {leg: legs[leg] for leg in LEGS if leg in legs})


def _now(table: Table, leg: str, name: str, outcome: Outcome) -> Expected:
    if outcome.is_success:
        return outcome.passed
    gap = table.gap_for(name)
    if gap is None:
        faults = "\n".join(outcome.faults or ["nothing was checked"])
        raise SystemExit(f"{leg}: {name} fails, and no gap of the table is about it: not updated\n{faults}")
    return gap


# Running


def run(leg: str, target: str, folder: Path) -> dict[str, Outcome]:
    """Run a leg of the suite against a URL or a client's command."""
    role = LEGS[leg][0]
    node = str(install.node() / "bin" / "node")
    command = [node, "--require", str(HERE / "loopback.cjs"), str(SUITE), *LEGS[leg], "--output-dir", str(folder)]
    command += ["--timeout", str(SECONDS_OF_A_SCENARIO * 1000)]
    command += ["--url", target] if role == "server" else ["--command", _saying_its_status(target)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_OF_A_LEG)
    if not folder.exists():
        raise SystemExit(f"the suite left no results:\n{ran.stdout}{ran.stderr}")
    return outcomes_in(folder, role)


def _saying_its_status(command: str) -> str:
    """Return a shell command that prints the exit status on standard error, since the suite drops it."""
    return f"""sh -c '"$@"; echo "exit status $?" >&2' client {command}"""


def outcomes(legs: list[str], url: str | None, client: str, folder: Path) -> dict[str, dict[str, Outcome]]:
    """Run the legs, and return their outcomes."""
    roles = {leg: LEGS[leg][0] for leg in legs}
    with ExitStack() as stack:
        if url is None and "server" in roles.values():
            url = f"{stack.enter_context(listening(SERVER)).address}/mcp"
        return {leg: run(leg, str(url) if role == "server" else client, folder / leg) for leg, role in roles.items()}


def update(path: Path, table: Table, found: dict[str, dict[str, Outcome]]) -> None:
    before, after = str(table).splitlines(), str(updated(table, found))
    path.write_text(after, encoding="utf-8")
    print("\n".join(difflib.unified_diff(before, after.splitlines(), "before", "now", lineterm="", n=0)) or "no change")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("legs", nargs="*", metavar="LEG", help=f"one or more of {', '.join(LEGS)}; all without")
    parser.add_argument("--update", action="store_true", help="write the table anew")
    parser.add_argument("--url", help="of a server that is running")
    parser.add_argument("--client", default=CLIENT, help="command of a client")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args()
    if unknown := set(options.legs) - LEGS.keys():
        parser.error(f"no such leg: {', '.join(unknown)}")
    legs = [leg for leg in LEGS if not options.legs or leg in options.legs]
    table = Table.read(options.table)
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        found = outcomes(legs, options.url, options.client, Path(folder))
    if options.update:
        update(options.table, table, found)
    else:
        sys.exit(verdict(options.table, table, found))


def verdict(path: Path, table: Table, found: dict[str, dict[str, Outcome]]) -> int:
    """Print the outcomes, and return 1 if one differs from the table."""
    bad = sum(report(leg, table.legs.get(leg, {}), outcomes) for leg, outcomes in found.items())
    wrong = [f"{path.name}: {fault}" for fault in table.idle()]
    if bad:
        wrong.append(f"{bad} scenario(s) are not as the table says")
    print("\n" + "\n".join(wrong or ["all as the table says"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
