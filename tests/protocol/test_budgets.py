"""Budgets of bytes: shares, totals, and what is reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from typedmcp.limits import Limits
from typedmcp.protocol.budgets import Budgets, ByteBudget, Hold


class Reports(list[str]):
    """The texts that a budget has reported."""

    def __call__(self, name: str, text: str) -> None:
        self.append(f"{name}: {text}")


def test_a_client_that_holds_its_share_gets_nothing_more() -> None:
    reports = Reports()
    budget = ByteBudget("bytes", 100, 25, reports)
    assert budget.take("ann", 24)
    assert budget.take("ann", 60), "what crosses the line still fits"
    assert not budget.take("ann", 1)
    assert budget.take("bob", 1)
    assert reports == ["bytes: 'ann' holds 84 bytes; its share is 25 of 100"]
    budget.add(budget.use_of("ann"), -60)
    assert budget.take("ann", 1)


def test_nobody_gets_more_than_the_total() -> None:
    reports = Reports()
    budget = ByteBudget("bytes", 100, 100, reports)
    assert budget.take("ann", 60)
    assert budget.take(None, 60)
    assert not budget.take("bob", 1)
    assert not budget.take(None, 1)
    assert reports == ["bytes: all clients together hold 120 bytes; the limit is 100"]


def test_what_a_client_holds_beyond_its_share_need_not_be_missing_to_others() -> None:
    budget = ByteBudget("bytes", 100, 25, Reports(), counts_excess=False)
    assert budget.take("ann", 500)
    assert budget.take("bob", 20)
    budget.add(budget.use_of("ann"), 1000)
    assert budget.take("cyd", 25)
    assert budget.take("dan", 40)
    assert budget.take("eve", 10), "the four hold 25, 20, 25 and 25 of what is shared"
    assert not budget.take("eve", 1)
    budget.add(budget.use_of("ann"), -1495)
    assert budget.take("eve", 1)


def test_a_client_that_is_not_known_has_no_share() -> None:
    budget = ByteBudget("bytes", 100, 10, Reports())
    assert all(budget.take(None, 10) for _ in range(10))
    assert not budget.take(None, 1)


def test_a_limit_is_reported_again_only_after_the_use_has_halved() -> None:
    reports = Reports()
    budget = ByteBudget("bytes", 1000, 10, reports)
    for _ in range(3):
        budget.add(budget.use_of("ann"), 100 - budget.held_by("ann"))
        for _ in range(20):
            assert not budget.take("ann", 1)
            budget.add(budget.use_of("ann"), -49)
            budget.add(budget.use_of("ann"), 49)
        budget.add(budget.use_of("ann"), -50)
    assert len(reports) == 3


def test_text_of_clients_is_reported_without_control_characters() -> None:
    reports = Reports()
    budget = ByteBudget("bytes", 10, 10, reports)
    budget.add(budget.use_of("ann\n\x1b[2J\u202e"), 10)
    assert not budget.admits("ann\n\x1b[2J\u202e")
    assert reports[0].isprintable()
    assert reports[0].isascii()


@given(st.lists(st.tuples(st.sampled_from([None, "ann", "bob"]), st.integers(0, 40)), max_size=40))
def test_everything_that_was_taken_can_be_given_back(taken: list[tuple[str | None, int]]) -> None:
    budget = ByteBudget("bytes", 100, 50, Reports())
    holds = [Hold(budget, client) for client, _ in taken]
    for hold, (_, size) in zip(holds, taken, strict=True):
        before, was_full = budget.used, hold.is_full
        assert hold.take(size) is not was_full
        assert budget.used == before + hold.size
    assert budget.used == sum(hold.size for hold in holds)
    for client in ("ann", "bob"):
        held = sum(hold.size for hold, (owner, _) in zip(holds, taken, strict=True) if owner == client)
        assert budget.held_by(client) == held
        assert (client in budget.full) is (held >= 50)
    for hold in holds:
        hold.close()
        hold.close()
        hold.add(5)
        assert not hold.take(5)
    assert (budget.used, budget.full, budget.held_by("ann"), budget.held_by("bob")) == (0, set(), 0, 0)


def test_the_use_of_budgets_is_named_by_their_limits() -> None:
    budgets = Budgets(Limits(), Reports())
    assert {*budgets.in_use()} <= {*Limits.__struct_fields__}
    budgets.calls.add(budgets.calls.use_of("ann"), 5)
    assert budgets.in_use()["call_bytes"] == 5
