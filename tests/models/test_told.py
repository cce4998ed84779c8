"""Which reasons to wait are recorded: a rule on sequences of attempts."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from harness.models.told import NOTHING_TOLD, Told


def recorded(reasons: str) -> list[int]:
    """The attempts whose reasons are recorded; each attempt had another reason than the one before."""
    told, found = NOTHING_TOLD, []
    for number, reason in enumerate(reasons):
        before, told = told, told.then(reason)
        if before.tells(told):
            found.append(number)
    return found


def test_what_comes_and_goes_is_recorded_ever_more_rarely() -> None:
    """Two that are new, then the first, fourth and sixteenth return of either."""
    assert recorded("ab" * 12) == [0, 1, 2, 5, 17]


@given(st.integers(0, 300))
def test_reasons_return_quietly_until_one_must_be_recorded(returns: int) -> None:
    """However often they have returned."""
    told = Told("b", frozenset("ab"), returns)
    after = told.again("a", told.quiet)
    assert after == Told("a", frozenset("ab"), returns + told.quiet)
    assert after.tells(after.then("b"))
    assert not any(told.again("a", some).tells(told.again("b", some + 1)) for some in range(told.quiet))


@given(st.text("abcd", max_size=60))
def test_every_reason_is_recorded_when_it_is_new(text: str) -> None:
    """However often others come and go."""
    reasons = "".join(reason for reason, _ in groupby(text))
    assert {reasons.index(reason) for reason in set(reasons)} <= set(recorded(reasons))
