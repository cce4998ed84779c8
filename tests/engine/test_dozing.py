"""Policies that play idle wakes in a row by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from policies import Greedy

from harness import Decision, Wake
from harness.base.errors import DecisionError
from harness.base.units import SECOND
from harness.testing import Script, pool, replayed


class Dozing(Greedy):
    """Wants to be woken every second, and plays what it is allowed to."""

    wakes = 1
    passed, later = 1, SECOND
    asked: list[tuple[int, int]]

    def cycle(self, now: int) -> Iterator[Decision]:
        yield from super().cycle(now)
        for number in range(self.wakes):
            yield Wake(now + (number + 1) * SECOND, idle=True)

    def doze(self, at: int, before: int) -> tuple[int, int]:
        self.asked.append((at // SECOND, before // SECOND))
        return self.passed, at + self.later


def dozing(**about: Any) -> type[Dozing]:
    return type("Dozing", (Dozing,), {"asked": [], **about})


SCRIPT = Script().job("a", cpu=1, seconds=3).job("b", at=5, cpu=1, seconds=9)


def test_it_is_asked_up_to_the_next_thing_that_happens_and_its_cycles_count() -> None:
    """Of the first wake after each instant that is played, up to the next end or arrival."""
    policy = dozing()
    happened = replayed(policy, SCRIPT, pool(cpu=1))
    assert policy.asked == [(1, 3), (4, 5), (6, 14), (8, 14), (10, 14), (12, 14)]
    assert [(row.action, row.cycle) for row in happened.rows if row.job == "b"] == [
        ("submit", 5),
        ("admit", 6),
        ("finish", 14),
    ]


def test_nothing_is_played_after_the_end_of_the_replay() -> None:
    """What is due at that instant still is."""
    policy = dozing()
    replayed(policy, SCRIPT, pool(cpu=1), until=2)
    assert policy.asked == [(1, 2)]


def test_it_is_not_asked_while_it_wants_to_be_woken_more_than_once() -> None:
    """Which of the wakes it has played could not be told."""
    policy = dozing(wakes=2)
    replayed(policy, SCRIPT, pool(cpu=1))
    assert policy.asked == []


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"later": 0}, r"it dozes for 1 cycles, but not beyond \d+ us"),
        ({"later": -1}, r"it dozes for 1 cycles, but not beyond \d+ us"),
        ({"passed": -1}, "it dozes for -1 cycles"),
        (
            {"passed": None},
            r"its method doze answers \(None, \d+\), instead of the number of simulated cycles",
        ),
        (
            {"doze": lambda *_: None},
            "its method doze answers None, instead of the number of simulated cycles",
        ),
        (
            {"doze": lambda *_: (1, 2, 3)},
            r"its method doze answers \(1, 2, 3\), instead of the number of simulated cycles",
        ),
    ],
)
def test_what_is_no_time_to_come_is_refused(about: dict[str, Any], said: str) -> None:
    """Time goes on; what a policy answers is told as its mistake."""
    with pytest.raises(DecisionError, match=f"wrong decision at .*: {said}"):
        replayed(dozing(**about), SCRIPT, pool(cpu=1))
