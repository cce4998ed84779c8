"""Lists changes to one policy field of a ClusterQueue that may admit more jobs, the mildest change first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

from harness.cluster.model import ClusterQueue

_LOWER, _EQUAL, _ANY, _NEVER = "LowerPriority", "LowerOrNewerEqualPriority", "Any", "Never"


class FieldChange(NamedTuple):
    """A ClusterQueue with one changed field.

    Attributes:
        field: the name of the field in texts.
        queue: the ClusterQueue with the new value.
        spec: the field as part of the `spec` in a manifest.
    """

    field: str
    value: str
    before: str
    queue: ClusterQueue
    spec: Mapping[str, Any]


class Below(NamedTuple):
    """Tells whether any jobs with lower priority than a given job hold quota.

    Attributes:
        own: whether the job's ClusterQueue has such jobs, including newer jobs of equal priority.
        others: whether another ClusterQueue has such jobs.
    """

    own: bool = True
    others: bool = True


ANYBODY = Below()


def field_changes(queue: ClusterQueue, below: Below = ANYBODY) -> Iterator[FieldChange]:
    """Yields the possible changes to the policies of a ClusterQueue for a job.

    Some fields of `preemption` have no effect unless `below` has jobs that could be preempted. These fields
    are left out.
    """
    if queue.stop_policy != "None":
        yield FieldChange(
            "stopPolicy",
            "None",
            queue.stop_policy,
            replace(queue, stop_policy="None"),
            {"stopPolicy": "None"},
        )
    if queue.queueing_strategy != "BestEffortFIFO":
        field, value = "queueingStrategy", "BestEffortFIFO"
        changed = replace(queue, queueing_strategy=value)
        yield FieldChange(field, value, queue.queueing_strategy, changed, {field: value})
    yield from _of_preemption(queue, below)
    yield from _of_fungibility(queue)


def _of_preemption(queue: ClusterQueue, below: Below) -> Iterator[FieldChange]:
    """Yields changes to the fields of `preemption`. Fields about other queues require a cohort."""
    now = queue.preemption
    orders = (
        ("withinClusterQueue", now.within_cluster_queue, (_NEVER, _LOWER, _EQUAL)),
        ("reclaimWithinCohort", now.reclaim_within_cohort, (_NEVER, _LOWER, _ANY)),
        ("borrowWithinCohort", now.borrow_within_cohort, (_NEVER, _LOWER)),
    )
    useful = (below.own, bool(queue.cohort), bool(queue.cohort) and below.others)
    for field, before, order in compress(orders, useful):
        for value in order[order.index(before) + 1 :]:
            if field == "withinClusterQueue":
                policies = replace(now, within_cluster_queue=value)
            elif field == "reclaimWithinCohort":
                policies = replace(now, reclaim_within_cohort=value)
            elif now.reclaim_within_cohort == _NEVER:
                continue  # Kueue rejects borrowWithinCohort unless this field is set.
            else:
                policies = replace(now, borrow_within_cohort=value)
            written: Any = {"policy": value} if field == "borrowWithinCohort" else value
            yield FieldChange(
                f"preemption.{field}", value, before, replace(queue, preemption=policies),
                {"preemption": {field: written}},
            )  # fmt: skip


def _of_fungibility(queue: ClusterQueue) -> Iterator[FieldChange]:
    """Yields changes to the fields of `flavorFungibility`, which have no effect with a single flavor."""
    now = queue.fungibility
    if all(len(group.flavors) < 2 for group in queue.resource_groups):
        return
    for field, before in (("whenCanBorrow", now.when_can_borrow), ("whenCanPreempt", now.when_can_preempt)):
        value = "TryNextFlavor" if before == "MayStopSearch" else "MayStopSearch"
        borrows = field == "whenCanBorrow"
        changed = replace(now, when_can_borrow=value) if borrows else replace(now, when_can_preempt=value)
        yield FieldChange(
            f"flavorFungibility.{field}", value, before, replace(queue, fungibility=changed),
            {"flavorFungibility": {field: value}},
        )  # fmt: skip
