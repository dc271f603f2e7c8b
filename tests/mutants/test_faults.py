"""The list of seeded faults fits the code."""

from tests.mutants.faults import ROOT, load_faults


def test_every_fault_replaces_a_text_that_its_file_has_exactly_once() -> None:
    assert [problem for fault in load_faults() if (problem := fault.find_problem(ROOT))] == []
