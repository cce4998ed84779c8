"""The preemption strategies of Kueue's fair sharing. A strategy decides whether a workload can be preempted.

Upstream: pkg/scheduler/preemption/fairsharing/strategy.go (KEP 1714, rules S2-a and S2-b).

The preemptor and the target belong to two ClusterQueues, which have a lowest common ancestor in the tree of
cohorts. The *side* of each is the child of this ancestor that contains its ClusterQueue. A strategy compares
the weighted shares of the two sides. To add a strategy, add it to `STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple, TypeAlias

_Share: TypeAlias = tuple[bool, float]  # whether the share is infinite, and its value


class Strategy(NamedTuple):
    """A condition under which a workload (the target) can be preempted.

    No strategy allows a preemption if the target's side has the smaller share before the preemption. A
    strategy that allows a preemption would also allow it if the shares of the target's side were larger.

    Attributes:
        name: the name of the strategy in Kueue's Configuration.
        allows: a function of three shares: that of the preemptor's side, including the preemptor, and those
            of the target's side before and after the preemption.
        refusal: a function that returns the comparison that failed, as text. Its arguments are those of
            `allows`, as texts, and the name of the target's side.
    """

    name: str
    allows: Callable[[_Share, _Share, _Share], bool]
    refusal: Callable[[str, str, str, str], str]


def less_than_or_equal_to_final_share(preemptor_new: _Share, target_old: _Share, target_new: _Share) -> bool:
    """S2-a: the preemptor's new share is at most the share of the target's side without the target."""
    return preemptor_new <= target_new


def less_than_initial_share(preemptor_new: _Share, target_old: _Share, target_new: _Share) -> bool:
    """S2-b: the preemptor's new share is smaller than the current share of the target's side."""
    return preemptor_new < target_old


def _above_final(new: str, old: str, final: str, theirs: str) -> str:
    return f"{new} > {final} of {theirs} without it"


def _not_below_initial(new: str, old: str, final: str, theirs: str) -> str:
    return f"{new} {'=' if new == old else '>'} {old} of {theirs} with it"


STRATEGIES = (
    Strategy("LessThanOrEqualToFinalShare", less_than_or_equal_to_final_share, _above_final),
    Strategy("LessThanInitialShare", less_than_initial_share, _not_below_initial),
)
"""All strategies, in the only order that Kueue accepts."""

TO_FINAL_SHARE, TO_INITIAL_SHARE = DEFAULT_STRATEGIES = tuple(strategy.name for strategy in STRATEGIES[:2])
"""The names of the strategies that apply by default."""

PERMITTED_STRATEGIES = tuple(
    names
    for count in range(1, len(STRATEGIES) + 1)
    for names in combinations([strategy.name for strategy in STRATEGIES], count)
)
"""The lists of names that Kueue accepts."""

PERMITTED_TEXT = ", ".join([*(strategy.name for strategy in STRATEGIES), "or a combination in this order"])


def strategies_of(names: tuple[str, ...]) -> tuple[Strategy, ...]:
    """Returns the strategies with these names, in the given order."""
    return tuple(strategy for name in names for strategy in STRATEGIES if strategy.name == name)
