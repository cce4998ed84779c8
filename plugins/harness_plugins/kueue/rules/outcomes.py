"""The outcomes of the entries of an admission cycle, and the reasons of failures.

Upstream: `entryStatus` and `RequeueReason` in pkg/scheduler and pkg/cache/queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from harness_plugins.kueue.rules.assignment import Assignment
from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

NOBODY: Mapping[Workload, Workload | None] = MappingProxyType({})

NO_QUOTA = "NoFit"
NO_PREEMPTION_CANDIDATES = "PreemptionNoCandidates"
PENDING_PREEMPTION = "PendingPreemption"
FAILED_AFTER_NOMINATION = "FailedAfterNomination"

INADMISSIBLE = "Inadmissible"

NAMESPACE_MISMATCH = "Workload namespace doesn't match ClusterQueue selector"
INVALID = "Workload has requests that exceed its limits"
NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAP = "Workload has overlapping preemption targets with another workload"
PENDING = "Pending the preemption of its targets"
LIMITED = "Its targets would exceed the rate limit of preemptions of their queue (preview)"
DEFERRED = "It fits when the targets of others are gone"

_NO_PLACE = "no place"


def why_not(assignment: Assignment, reason: str) -> str:
    """The key of a workload's failure: the reason, or that it lacks only a place."""
    return _NO_PLACE if assignment.lacks_place else reason


class Admitted(NamedTuple):
    """A head gets its quota."""

    workload: Workload
    assignment: Assignment


class Preempted(NamedTuple):
    """Workloads must leave so that a head can be admitted in a later cycle.

    Attributes:
        preemptor: the head.
        assignment: its assignment.
        targets: the preempted workloads; those that are already leaving are not preempted again.
    """

    preemptor: Workload
    assignment: Assignment
    targets: list[Target]


class Replaced(NamedTuple):
    """A workload that lost a node continues in other places.

    Attributes:
        workload: the workload.
        placed: the new places of all its pods.
        node: the node that failed.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    node: str


class Evicted(NamedTuple):
    """A workload that lost a node must leave, because there is no other place for its pods."""

    workload: Workload
    node: str


Outcome: TypeAlias = Admitted | Preempted | Replaced | Evicted


class Refused(NamedTuple):
    """A head goes back to its queue, for another reason than at its last try.

    Attributes:
        workload: the head.
        reason: the reason.
        figures: the record about it, of the time when it failed.
    """

    workload: Workload
    reason: str
    figures: Mapping[str, Any]


class Failed(NamedTuple):
    """The failure of an entry, with the state still as it was then.

    Attributes:
        entry: the entry.
        message: Kueue's sentence, if the reason does not say it all.
        ahead: entries that were served before it and keep quota, with the amounts.
        waits_for: workloads that are leaving or must leave, as far as that matters -> the entry's workload
            for which they leave; None if that was in an earlier cycle.
        again: whether the same was recorded before during this wait, with all figures.
    """

    entry: Entry
    message: str = ""
    ahead: Sequence[tuple[Workload, Amounts]] = ()
    waits_for: Mapping[Workload, Workload | None] = NOBODY
    again: bool = False


Figures: TypeAlias = Callable[[Failed], Mapping[str, Any]]
"""Writes the record of a failure; called at once, and only for recorded failures."""
