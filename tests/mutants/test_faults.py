"""The lists of seeded faults and of features fit the code, and the features fit the tables of the specification."""

from tests.mutants.faults import ROOT, load_faults
from tests.mutants.features import chosen_rows, find_row_problems, load_features, shown_rows


def test_every_fault_replaces_a_text_that_its_file_has_exactly_once() -> None:
    assert [problem for fault in load_faults() if (problem := fault.find_problem(ROOT))] == []


def test_every_feature_is_taken_out_by_replacing_a_text_that_its_file_has_exactly_once() -> None:
    assert [problem for feature in load_features() if (problem := feature.find_problem(ROOT))] == []


def test_every_feature_names_rows_of_the_specification_that_tests_show() -> None:
    assert [*find_row_problems(load_features())] == []


def test_every_row_about_tokens_sign_in_consent_and_headers_is_chosen_and_a_hundred_others_are() -> None:
    chosen = chosen_rows()
    assert {row for row in shown_rows() if "/authorization" in row.partition(": ")[0]} <= {*chosen}
    assert len(chosen) == len({*chosen}) > 300
