"""What comes of the entries of an admission cycle, and why some of them fail.

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
    """What tells apart why a workload fails: the reason, or that it lacks nothing but a place."""
    return _NO_PLACE if assignment.lacks_place else reason


class Admitted(NamedTuple):
    """A head gets its quota."""

    workload: Workload
    assignment: Assignment


class Preempted(NamedTuple):
    """Workloads have to go so that a head can be admitted in a later cycle.

    Attributes:
        preemptor: the head.
        assignment: what it is to get.
        targets: who is preempted; those that are going already are not preempted again.
    """

    preemptor: Workload
    assignment: Assignment
    targets: list[Target]


class Replaced(NamedTuple):
    """A workload that lost a node goes on in other places.

    Attributes:
        workload: the workload.
        placed: where all its pods are from now on.
        node: the node that failed.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    node: str


class Evicted(NamedTuple):
    """A workload that lost a node has to go, because there is no other place for its pods."""

    workload: Workload
    node: str


Outcome: TypeAlias = Admitted | Preempted | Replaced | Evicted


class Refused(NamedTuple):
    """A head goes back to its queue, for another reason than when it was tried last.

    Attributes:
        workload: the head.
        reason: the reason.
        figures: what the record says about it, as things stood when it failed.
    """

    workload: Workload
    reason: str
    figures: Mapping[str, Any]


class Failed(NamedTuple):
    """How an entry failed, while all is as it was then.

    Attributes:
        entry: the entry.
        message: Kueue's sentence, where the reason does not say it all.
        ahead: entries that were served before it and keep quota, with the amounts.
        waits_for: who is going or is to go, as far as that matters, with the entry's workload whose targets
            they are; None where that was in an earlier cycle.
        again: whether that was recorded before since it waits, with all figures.
    """

    entry: Entry
    message: str = ""
    ahead: Sequence[tuple[Workload, Amounts]] = ()
    waits_for: Mapping[Workload, Workload | None] = NOBODY
    again: bool = False


Figures: TypeAlias = Callable[[Failed], Mapping[str, Any]]
"""What the record says of a failure; asked at once, and only for what is recorded."""
