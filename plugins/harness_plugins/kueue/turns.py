"""Runs the cycles of one tree at one time, without the engine and without the other trees.

Trees affect each other only if a workload releases its quota. A workload that is admitted and evicted at the
same time may be gone immediately, if it has no pods on nodes. This depends on the workloads of other trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from harness_plugins.kueue.rules.entry import Admitted, Preempted
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.state.workload import Workload

QUIET: Final = 3
"""The number of consecutive cycles without a change after which the policy stops running cycles."""


def turns_of(
    scheduler: Scheduler,
    asked: Sequence[Workload],
    now: int,
    stays: Callable[[Workload], bool],
    ends_at_once: Callable[[Workload], bool],
) -> list[tuple[bool, tuple[str, ...]]] | None:
    """Returns the decisions about pending workloads of one tree, from the cycles at this time. See `Policy`.

    The result is None if quota might be released. It is also None if the number of cycles might depend on
    other trees.

    Args:
        scheduler: the scheduler, which considers only this tree.
        asked: the workloads.
        now: the current time.
        stays: returns True if an evicted workload keeps its quota for some time.
        ends_at_once: returns True if a workload is evicted as soon as it is admitted.
    """
    victims: dict[Workload, dict[str, None]] = {each: {} for each in asked}
    standing = [scheduler.standing()]  # before each cycle since the last one that changed something
    while not scheduler.passes(0):
        admitted: list[Admitted] = []
        evicted: list[Target] = []
        before = scheduler.cycles
        for outcome in scheduler.cycle():
            if isinstance(outcome, Admitted) and not ends_at_once(outcome.workload):
                admitted.append(outcome)
            elif isinstance(outcome, Preempted) and all(stays(each.workload) for each in outcome.targets):
                evicted += outcome.targets
                if outcome.preemptor in victims:
                    names = sorted(each.workload.name for each in outcome.targets)
                    victims[outcome.preemptor].update(dict.fromkeys(names))
            else:
                return None
        for each in admitted:
            scheduler.reserve(each, now)
        for target in evicted:
            scheduler.evict(target, now)
        if scheduler.cycles == before:
            break
        if not scheduler.idle:
            if len(standing) > QUIET:
                return None
            standing.clear()
        standing.append(scheduler.standing())
        if standing[-1] in standing[:-1]:
            break
    return [(each.has_quota, tuple(victims[each])) for each in asked]
