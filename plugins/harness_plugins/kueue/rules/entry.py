"""The head of a queue in a cycle, and its outcome.

Upstream: `entry` in pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, final

from harness_plugins.kueue.rules.assignment import Assignment
from harness_plugins.kueue.state.second_passes import SecondPass
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload


@final
class Entry:
    """The head of a queue in a cycle.

    Attributes:
        workload: the workload at the head.
        assignment: the assignment of the workload.
        resumed: whether the scan continued after the flavors that earlier cycles tried.
        marked: whether this workload was the last one in its queue to issue preemptions.
        reason: why the workload is not admitted; "" while it can still be admitted. Serving an entry that
            starts with a reason changes nothing.
        reserved: whether quota or places are reserved for the workload.
        preempts: whether the workload caused evictions, not counting workloads that were already evicted.
        newly_marked: whether this workload has just become the last one in its queue to issue preemptions.
        inadmissible: whether the workload became inadmissible until quota is freed.
        second: the second pass; None for the head of a queue.
        placed: the new places of all pods in a second pass; () if there is no place for them.
    """

    __slots__ = (
        "assignment",
        "inadmissible",
        "marked",
        "newly_marked",
        "placed",
        "preempts",
        "reason",
        "reserved",
        "resumed",
        "second",
        "workload",
    )

    def __init__(self, workload: Workload, assignment: Assignment, *, resumed: bool, marked: bool) -> None:
        self.workload = workload
        self.assignment = assignment
        self.resumed = resumed
        self.marked = marked
        self.reason = ""
        self.reserved = False
        self.preempts = False
        self.newly_marked = False
        self.inadmissible = False
        self.second: SecondPass | None = None
        self.placed: tuple[Placed, ...] = ()


Order: TypeAlias = Callable[[list[Entry]], Iterator[Entry]]
"""Yields the entries of a cycle in the order in which they are served.

Each entry is chosen only after the previous one has been served, so the order can depend on what that entry
changed. Entries that start with a reason can be omitted if other entries do not depend on them.
"""
