"""The runner of the conformance suite reports differences."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import run
from tests.interop import install

GAP = run.Gap("auth/*", "it is not built")
TABLE = run.Table({"oauth": GAP}, {"client-2025-11-25": {"initialize": 2, "auth/dpop": "oauth"}})
NAME = "client-2025-11-25"

GOOD = {"initialize": run.Outcome(2), "auth/dpop": run.Outcome(1, faults=["no proof"])}


def verdict(found: dict[str, run.Outcome], table: run.Table = TABLE) -> int:
    return run.verdict(Path("a.toml"), table, {NAME: found})


def test_outcomes_as_in_the_table_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict(GOOD) == 0
    printed = capsys.readouterr().out
    assert "ok   initialize: 2 passed, 0 failed\n" in printed
    assert "gap  auth/dpop: 1 passed, 1 failed\n" in printed


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"initialize": run.Outcome(3)}, "2 checks were expected to pass"),
        ({"initialize": run.Outcome(1)}, "2 checks were expected to pass"),
        ({"initialize": run.Outcome(0)}, "nothing was checked"),
        ({"initialize": run.Outcome(0, skipped=2)}, "nothing was checked"),
        ({"initialize": run.Outcome(2, faults=["Ping: no answer"])}, "fails\n         Ping: no answer\n"),
        ({"auth/dpop": run.Outcome(2)}, "passes, although it is a known gap: oauth"),
        ({"a-new-one": run.Outcome(2)}, "the table does not know it"),
    ],
)
def test_an_outcome_that_differs_from_the_table_fails(
    changed: dict[str, run.Outcome], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict({**GOOD, **changed}) == 1
    printed = capsys.readouterr().out
    assert said in printed
    assert "1 scenario(s) are not as the table says" in printed


def test_a_scenario_that_was_not_run_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict({"initialize": run.Outcome(2)}) == 1
    assert "auth/dpop: no results - the suite did not run it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (run.Table({"oauth": GAP, "tasks": GAP}, TABLE.legs), "no scenario has the gap tasks"),
        (run.Table({}, TABLE.legs), "there is no gap oauth"),
    ],
)
def test_gaps_in_the_table_that_no_scenario_has_fail(
    table: run.Table, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict(GOOD, table) == 1
    assert f"a.toml: {said}" in capsys.readouterr().out


# Results


def check(status: str, **more: str) -> dict[str, Any]:
    return {"name": "Ping", "description": "the server answers", "status": status, **more}


def written(folder: Path, name: str, checks: list[dict[str, Any]], stderr: str = "exit status 0\n") -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "checks.json").write_text(json.dumps(checks), encoding="utf-8")
    (folder / name / "stderr.txt").write_text(stderr, encoding="utf-8")


def test_the_name_of_a_scenario_is_read_off_its_folder(tmp_path: Path) -> None:
    written(tmp_path / "server", "server-server-sse-polling-2026-11-21T19-51-27-678Z", [check("SUCCESS")])
    assert run.outcomes_in(tmp_path / "server", "server") == {"server-sse-polling": run.Outcome(1)}
    written(tmp_path / "client", "auth/basic-cimd-2026-11-21T19-51-44-902Z", [check("SUCCESS")])
    assert run.outcomes_in(tmp_path / "client", "client") == {"auth/basic-cimd": run.Outcome(1)}


def test_checks_are_counted_and_failures_are_kept(tmp_path: Path) -> None:
    written(
        tmp_path,
        "ping",
        [
            *map(check, ("SUCCESS", "SUCCESS", "SKIPPED", "INFO")),
            check("FAILURE", errorMessage="no answer"),
            check("WARNING"),
        ],
    )
    faults = ["Ping: no answer", "Ping: the server answers"]
    assert run.outcome_of(tmp_path / "ping", "server") == run.Outcome(2, skipped=1, faults=faults)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("Traceback\nKeyError: 'x'\nexit status 1\n", "the client ended with status 1: KeyError: 'x'"),
        ("exit status 1\n", "the client ended with status 1: it printed nothing"),
        ("still at work\n", "the client did not end by itself: still at work"),
        ("", "the client did not end by itself: it printed nothing"),
    ],
)
def test_a_client_with_an_exit_status_fails_its_scenario(tmp_path: Path, stderr: str, said: str) -> None:
    written(tmp_path, "ping", [check("SUCCESS")], stderr)
    assert run.outcome_of(tmp_path / "ping", "client").faults == [said]


# The table


def test_the_table_can_be_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(str(TABLE), encoding="utf-8")
    assert run.Table.read(path) == TABLE
    committed = run.TABLE.read_text(encoding="utf-8")
    assert str(run.Table.read(run.TABLE)) == committed


def test_updating_writes_the_outcomes_and_prints_the_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.toml"
    run.update(path, TABLE, {NAME: {**GOOD, "initialize": run.Outcome(7)}})
    assert run.Table.read(path).legs == {NAME: {"auth/dpop": "oauth", "initialize": 7}}
    printed = capsys.readouterr().out.splitlines()
    assert "-initialize = 2" in printed
    assert "+initialize = 7" in printed


def test_updating_does_not_accept_failures(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    with pytest.raises(SystemExit, match="initialize fails, and no gap of the table is about it"):
        run.update(path, TABLE, {NAME: {**GOOD, "initialize": run.Outcome(1, faults=["no"])}})
    assert not path.exists()


# The suite itself


@pytest.mark.long
def test_a_client_that_does_nothing_fails_scenarios_that_the_suite_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not run.SUITE.exists():
        pytest.skip("the suite is not installed: run `make conformance`")
    table = tmp_path / "a.toml"
    table.write_text(str(run.Table({"oauth": GAP}, run.Table.read(run.TABLE).legs)), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["run", NAME, "--client", "true", "--table", str(table)])
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    assert "FAIL initialize: " in printed
    assert "nothing was checked" in printed


def test_the_table_is_for_the_installed_version_of_the_suite() -> None:
    assert install.NODE_PACKAGES["conformance"] == ["@modelcontextprotocol/conformance@0.2.0-alpha.12"]
