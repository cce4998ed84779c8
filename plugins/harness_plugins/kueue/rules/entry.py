"""The entries of an admission cycle, which are the heads of queues, their outcomes, and reasons for failures.

Upstream: `entry` and `entryStatus` in pkg/scheduler, and `RequeueReason` in pkg/cache/queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, final

from harness_plugins.kueue.rules.flavor_assigner import Assignment
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.state.second_passes import SecondPass
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload


@final
class Entry:
    """The head of a queue in a cycle.

    Attributes:
        marked: whether this workload was the last one in its queue to issue preemptions (upstream's
            IsPreemptor).
        reason: why the workload is not admitted, or "" while it can still be admitted. If an entry already
            has a reason when it is served, the cycle does nothing with it.
        inadmissible: whether the workload became inadmissible, so that it is not tried until quota is freed.
        second: the second pass, or None for the head of a queue.
        placed: the new places of all pods in a second pass, or () if there is no place for them.
    """

    __slots__ = ("assignment", "inadmissible", "marked", "placed", "reason", "second", "workload")

    def __init__(self, workload: Workload, assignment: Assignment, *, marked: bool) -> None:
        self.workload = workload
        self.assignment = assignment
        self.marked = marked
        self.reason = ""
        self.inadmissible = False
        self.second: SecondPass | None = None
        self.placed: tuple[Placed, ...] = ()


Order: TypeAlias = Callable[[list[Entry]], Iterator[Entry]]
"""Yields the entries of a cycle in the order in which they are served.

Each entry is chosen only after the previous one has been served, so the order can depend on what that entry
changed. Entries that start with a reason can be omitted if other entries do not depend on them.
"""

# --- outcomes ---------------------------------------------------------------------------------------------

Victims: TypeAlias = Mapping[Workload, Workload | None]
"""Evicted workloads. Each is mapped to its preemptor, or to None if it was preempted in an earlier cycle."""

NOBODY: Victims = MappingProxyType({})

NO_QUOTA: Final = "NoFit"
NO_PREEMPTION_CANDIDATES: Final = "PreemptionNoCandidates"
PENDING_PREEMPTION: Final = "PendingPreemption"
FAILED_AFTER_NOMINATION: Final = "FailedAfterNomination"

INADMISSIBLE: Final = "Inadmissible"

NAMESPACE_MISMATCH = "Workload namespace doesn't match ClusterQueue selector"
NO_LONGER_FITS: Final = "Workload no longer fits after processing another workload"
OVERLAP = "Workload has overlapping preemption targets with another workload"
PENDING: Final = "Pending the preemption of its targets"
LIMITED = "Preempting its targets would exceed the preemption rate limit of their queue (preview)"
DEFERRED = "It fits after the targets of other workloads are gone"

NO_PLACE = "no place"


def why_not(assignment: Assignment, reason: str) -> str:
    """Returns the reason of a failure, or `NO_PLACE` if there is enough quota but no place in a topology."""
    return NO_PLACE if assignment.lacks_place else reason


class Admitted(NamedTuple):
    """A workload that was admitted or has reserved quota."""

    workload: Workload
    assignment: Assignment


class Preempted(NamedTuple):
    """The workloads that are preempted so that a head can be admitted in a later cycle.

    Attributes:
        targets: the workloads to preempt, excluding those that were already evicted.
    """

    preemptor: Workload
    assignment: Assignment
    targets: list[Target]


class Replaced(NamedTuple):
    """A workload that lost a node and continues in other places."""

    workload: Workload
    placed: tuple[Placed, ...]
    node: str


class Evicted(NamedTuple):
    """A workload that lost a node and is evicted because its pods have no other place."""

    workload: Workload
    node: str


Outcome: TypeAlias = Admitted | Preempted | Replaced | Evicted
