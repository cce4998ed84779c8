"""A head in a cycle, and what becomes of it.

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
    """A head in a cycle.

    Attributes:
        workload: the head.
        assignment: what it was assigned.
        resumed: whether the scan went on after flavors that were tried before.
        marked: whether it is the one of its queue that last issued preemptions.
        reason: why it is not admitted, "" as long as it may be. One that has a reason from the start changes
            nothing when it is served.
        reserved: whether those that are served after it see something as taken for it.
        preempts: whether workloads were told to go for it that were not going already.
        newly_marked: whether it became the one of its queue that last issued preemptions.
        inadmissible: whether it waits for quota to become free from now on.
        second: what is tried once more; None for a head.
        placed: where all pods of that are to be; () where they have no place.
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
"""Yields the entries of a cycle in the order in which they are served. It is asked for the next one only when
the one before was served, so that it may look at what that changed. It may leave out entries that have a
reason from the start, where their turn does not matter to others."""
