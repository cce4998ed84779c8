"""Examples 1 to 4 of Kubernetes' design of preemption, and what docs/reproduced.md says of them."""

from __future__ import annotations

import pytest

from harness.base.units import SECOND
from harness.studies.reproduced.preemption_design import example
from harness.testing import Decisions


def told(decisions: Decisions, *actions: str) -> list[tuple[float, str, str]]:
    """Seconds, what, and which pod."""
    return [(row.time / SECOND, row.action, row.pod or row.job) for row in decisions.of(*actions)]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_c_preempts_both_and_is_nominated(number: int) -> None:
    """In all of them; they leave after their grace periods."""
    decisions = example(number)
    assert {(row.pod, row.by) for row in decisions.of("preempt")} == {("A", "C"), ("B", "C")}
    assert (10, "nominate", "C") in told(decisions, "nominate")
    assert told(decisions, "gone") == [(40, "gone", "B"), (70, "gone", "A")]


def test_who_waits_for_room_keeps_it() -> None:
    """Example 1: D would fit in what B leaves, and waits; C is bound when A is gone."""
    bound = told(example(1), "bind")[2:]
    assert bound == [(70, "bind", "C")]


def test_room_elsewhere_is_taken_at_once() -> None:
    """Example 2: C goes where E ended. What B leaves goes to B's successor, which outranks D."""
    decisions = example(2)
    assert told(decisions, "bind")[3:] == [(15, "bind", "C"), (40, "bind", "B-r1"), (70, "bind", "A-r1")]
    nodes = {row.pod: row.node for row in decisions.of("bind")}
    assert nodes["C"] == nodes["E"] != nodes["A"]


def test_who_needs_no_reserved_room_is_bound() -> None:
    """Example 3: D fits beside E, while the others leave for C."""
    decisions = example(3)
    assert told(decisions, "bind")[3:] == [(10, "bind", "D"), (70, "bind", "C")]
    nodes = {row.pod: row.node for row in decisions.of("bind")}
    assert nodes["D"] == nodes["E"] != nodes["C"]


def test_a_more_important_one_takes_the_nomination() -> None:
    """Example 4: F is bound; C loses its nomination, and C and D wait."""
    decisions = example(4)
    assert told(decisions, "nominate", "unnominate") == [
        (10, "nominate", "C"),
        (20, "nominate", "F"),
        (70, "unnominate", "C"),
    ]
    assert told(decisions, "bind")[2:] == [(70, "bind", "F")]
