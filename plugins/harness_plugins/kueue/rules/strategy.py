"""The strategies of fair sharing: the conditions for preempting a workload of a larger share.

Upstream: pkg/scheduler/preemption/fairsharing/strategy.go (KEP 1714, rules S2-a and S2-b). Shares are those
of the nodes right below the lowest common ancestor of both ClusterQueues.
"""

from __future__ import annotations

from harness_plugins.kueue.rules.dominant_resource_share import Share


def less_than_or_equal_to_final_share(preemptor_new: Share, target_new: Share) -> bool:
    """S2-a: the preemptor's new share is not larger than the target side's share without the target."""
    return preemptor_new <= target_new


def less_than_initial_share(preemptor_new: Share, target_old: Share) -> bool:
    """S2-b: the preemptor's side with the incoming has a smaller share than the target's side has now."""
    return preemptor_new < target_old
