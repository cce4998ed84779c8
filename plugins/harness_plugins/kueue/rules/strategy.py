"""The strategies of fair sharing, which compare shares to decide whether a workload can be preempted.

Upstream: pkg/scheduler/preemption/fairsharing/strategy.go (KEP 1714, rules S2-a and S2-b). A *side* is the
node right below the lowest common ancestor of the two ClusterQueues. The strategies compare the shares of the
two sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.models.cluster import TO_FINAL_SHARE, TO_INITIAL_SHARE
from harness_plugins.kueue.rules.dominant_resource_share import Share


class Strategy(NamedTuple):
    """A condition under which a workload can be preempted.

    Attributes:
        name: the name of the strategy in Kueue's Configuration.
        allows: compares the share of the preemptor's side, with the incoming workload, to the share of the
            target's side before and after the preemption.
    """

    name: str
    allows: Callable[[Share, Share, Share], bool]


def less_than_or_equal_to_final_share(preemptor_new: Share, target_old: Share, target_new: Share) -> bool:
    """S2-a: the preemptor's new share is at most the share of the target's side without the target."""
    return preemptor_new <= target_new


def less_than_initial_share(preemptor_new: Share, target_old: Share, target_new: Share) -> bool:
    """S2-b: the preemptor's new share is smaller than the current share of the target's side."""
    return preemptor_new < target_old


_STRATEGIES = (
    Strategy(TO_FINAL_SHARE, less_than_or_equal_to_final_share),
    Strategy(TO_INITIAL_SHARE, less_than_initial_share),
)


def strategies_of(names: tuple[str, ...]) -> tuple[Strategy, ...]:
    """Returns the strategies with these names, in the given order."""
    return tuple(strategy for name in names for strategy in _STRATEGIES if strategy.name == name)
