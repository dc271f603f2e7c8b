"""Whether runs agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import agree
from bench.results import Results, save
from tests.bench import made_up

NAME = "stdio/echo, one at a time: typedmcp against TypeScript"


def run(*ours: float) -> Results:
    """One in which the other contender has the same in each round."""
    rows: dict[str, list[list[float] | None]] = {"typedmcp": [[*ours]], "TypeScript": [[1.0] * len(ours)]}
    table = made_up.table("stdio/echo", ["one at a time"], rows, better="higher", reference="TypeScript")
    return made_up.results([table])


@pytest.mark.parametrize(
    ("first", "second", "agreeing"),
    [
        ((2, 3, 4), (2, 3, 4), 2),
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3, 4), (3.5, 3.5, 3.5), 1),
        ((2, 3, 4), (5, 6, 7), 0),
    ],
)
def test_a_median_has_to_lie_within_the_spread_of_the_other_run(
    first: tuple[float, ...], second: tuple[float, ...], agreeing: int
) -> None:
    compared = agree.comparisons({"a": agree.ratios(run(*first)), "b": agree.ratios(run(*second))})
    assert [each.name for each in compared] == [NAME] * 2
    assert sum(each.agree for each in compared) == agreeing


def test_each_run_is_compared_with_each_other_by_what_both_have() -> None:
    runs = dict.fromkeys("abc", agree.ratios(run(1)))
    found = agree.comparisons({**runs, "d": {"what only this one has": agree.ratios(run(1))[NAME]}})
    assert [each.first + each.second for each in found] == ["ab", "ac", "ba", "bc", "ca", "cb"]


def test_ratios_are_of_ours_against_others() -> None:
    found = agree.ratios(made_up.results([made_up.stdio()]))
    assert [*found] == [
        f"stdio/echo, one at a time: typedmcp against {other}" for other in (made_up.REFERENCE, "TypeScript")
    ]


def test_what_disagrees_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, results in zip(files, (run(2, 3, 4), run(3.5, 3.5, 3.6)), strict=True):
        save(results, file)
    monkeypatch.setattr("sys.argv", ["agree", *map(str, files)])
    agree.main()
    assert capsys.readouterr().out.splitlines() == [
        f"{NAME}: 3.0× in {files[0]}, 3.5–3.6 in {files[1]}",
        "1 of 2 medians lie within the spread of another run",
    ]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["good.json"], "two files at least"),
        (["good.json"] * 2, "two files at least"),
        (["good.json", "missing.json"], "missing.json"),
        (["good.json", "bad.json"], "bad.json: "),
        (["good.json", "empty.json"], "nothing in common"),
    ],
)
def test_what_cannot_be_compared_is_said(
    files: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(run(1), tmp_path / "good.json")
    save(made_up.results([]), tmp_path / "empty.json")
    (tmp_path / "bad.json").write_text("{")
    monkeypatch.setattr("sys.argv", ["agree", *(str(tmp_path / file) for file in files)])
    with pytest.raises(SystemExit):
        agree.main()
    assert said in capsys.readouterr().err
