"""Comparing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import compare_runs
from bench.results import Results, save
from tests.bench import sample_results

NAME = "stdio/echo, one at a time: typedmcp against TypeScript"


def run(*ours: float) -> Results:
    """Make results in which the other contender has the same figure in each round."""
    rows: dict[str, list[list[float] | None]] = {"typedmcp": [[*ours]], "TypeScript": [[1.0] * len(ours)]}
    table = sample_results.table("stdio/echo", ["one at a time"], rows, better="higher", reference="TypeScript")
    return sample_results.results([table])


@pytest.mark.parametrize(
    ("first", "second", "within"),
    [
        ((2, 3, 4), (2, 3, 4), 2),
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3, 4), (3.5, 3.5, 3.5), 1),
        ((2, 3, 4), (5, 6, 7), 0),
    ],
)
def test_a_median_must_lie_within_the_spread_of_the_other_run(
    first: tuple[float, ...], second: tuple[float, ...], within: int
) -> None:
    compared = compare_runs.compare(
        {"a": compare_runs.collect_ratios(run(*first)), "b": compare_runs.collect_ratios(run(*second))}
    )
    assert [each.name for each in compared] == [NAME] * 2
    assert sum(each.is_within_spread for each in compared) == within


def test_runs_are_compared_pairwise_in_common_ratios() -> None:
    runs = dict.fromkeys("abc", compare_runs.collect_ratios(run(1)))
    found = compare_runs.compare({**runs, "d": {"only in this run": compare_runs.collect_ratios(run(1))[NAME]}})
    assert [each.first + each.second for each in found] == ["ab", "ac", "ba", "bc", "ca", "cb"]


def test_ratios_compare_typedmcp_with_others() -> None:
    found = compare_runs.collect_ratios(sample_results.results([sample_results.stdio()]))
    assert [*found] == [
        f"stdio/echo, one at a time: typedmcp against {other}" for other in (sample_results.REFERENCE, "TypeScript")
    ]


def test_ratios_outside_the_spread_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, results in zip(files, (run(2, 3, 4), run(3.5, 3.5, 3.6)), strict=True):
        save(results, file)
    monkeypatch.setattr("sys.argv", ["compare_runs", *map(str, files)])
    compare_runs.main()
    assert capsys.readouterr().out.splitlines() == [
        f"{NAME}: 3.0× in {files[0]}, 3.5–3.6 in {files[1]}",
        "1 of 2 medians lie within the spread of another run",
    ]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (["good.json"], "expected at least two files"),
        (["good.json"] * 2, "expected at least two files"),
        (["good.json", "missing.json"], "missing.json"),
        (["good.json", "bad.json"], "bad.json: "),
        (["good.json", "empty.json"], "no ratio in common"),
    ],
)
def test_files_that_cannot_be_compared_are_rejected(
    files: list[str], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(run(1), tmp_path / "good.json")
    save(sample_results.results([]), tmp_path / "empty.json")
    (tmp_path / "bad.json").write_text("{")
    monkeypatch.setattr("sys.argv", ["compare_runs", *(str(tmp_path / file) for file in files)])
    with pytest.raises(SystemExit):
        compare_runs.main()
    assert error in capsys.readouterr().err
